"""The names of tirlite for editors and type checkers; `tirlite/__init__.py` loads each when it is first used."""

# ruff: noqa: A001, A004

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar

from tirlite import analysis as analysis
from tirlite import graph as graph
from tirlite import ir as ir
from tirlite import plan as plan
from tirlite import rewrite
from tirlite import solver as solver
from tirlite.analysis import allocations as allocations
from tirlite.diag import CallError as CallError
from tirlite.diag import CallTypeError as CallTypeError
from tirlite.diag import CallValueError as CallValueError
from tirlite.diag import CapacityError as CapacityError
from tirlite.diag import GraphError as GraphError
from tirlite.diag import InternalError as InternalError
from tirlite.diag import KernelAssertionError as KernelAssertionError
from tirlite.diag import KernelError as KernelError
from tirlite.diag import KernelIndexError as KernelIndexError
from tirlite.diag import KernelRunError as KernelRunError
from tirlite.diag import PlanError as PlanError
from tirlite.diag import TirliteError as TirliteError
from tirlite.driver import Kernel as Kernel
from tirlite.dsl import buffer as buffer
from tirlite.dsl import dim as dim
from tirlite.dsl import dims as dims
from tirlite.dsl import out as out
from tirlite.dsl import parse as parse
from tirlite.graph import from_onnx as from_onnx
from tirlite.ir import Buffer, DType, Expr, TensorType
from tirlite.ir import PrimFunc as PrimFunc
from tirlite.ir import bf16 as bf16
from tirlite.ir import bool_ as bool_
from tirlite.ir import f16 as f16
from tirlite.ir import f32 as f32
from tirlite.ir import f64 as f64
from tirlite.ir import i8 as i8
from tirlite.ir import i16 as i16
from tirlite.ir import i32 as i32
from tirlite.ir import i64 as i64
from tirlite.ir import structural_equal as structural_equal
from tirlite.ir import u8 as u8
from tirlite.ir import u16 as u16
from tirlite.ir import u32 as u32
from tirlite.ir import u64 as u64
from tirlite.runtime import set_num_threads as set_num_threads
from tirlite.solver import compile as compile
from tirlite.solver import kernel as kernel
from tirlite.target import MemoryInfo as MemoryInfo
from tirlite.target import Target as Target

__all__: list[str]

passes = rewrite

Number: TypeAlias = Expr | bool | int | float
_F = TypeVar("_F", bound=Callable[..., object])
_T = TypeVar("_T")

def inline(function: _F) -> _F:
    """Lets kernels call a Python function, whose body is translated at each call. From Python, it runs as Python."""

def static(value: _T) -> _T:
    """`value`, evaluated by Python before the kernel runs; loops over it are written out, branches on it decided."""

def alloc(of: TensorType, *, scope: str = "global", alignment: int = 0, volatile: bool = False) -> Buffer:
    """A temporary: `t = tl.alloc(tl.f32[n, m])`. `alignment` is in bytes. Its elements have no value yet."""

def view(
    source: Buffer,
    of: TensorType,
    byte_offset: Number = 0,
    *,
    alignment: int = 0,
    volatile: bool = False,
    fresh: bool = False,
) -> Buffer:
    """Another window on the bytes of `source`: `v = tl.view(t, tl.u8[4 * n])`.

    A fresh one stands for an allocation in these bytes: what was written before is not to be read through it.
    """

def parallel(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[Expr]:
    """A range whose iterations may run at the same time, and may not conflict."""

def vectorized(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[Expr]:
    """A range whose iterations are one vector operation, where that is possible."""

def unroll(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[Expr]:
    """A range that the compiler writes out."""

def reduce(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[Expr]:
    """A range whose iterations combine values, and may be regrouped: `for i in tl.reduce(n): total += x[i]`."""

def argmax(best: tuple[Number, Number], other: tuple[Number, Number], /) -> tuple[Expr, Expr]:
    """The pair of a value and its place that has the larger value: `top, at = tl.argmax((top, at), (x[i], i))`.

    nan is larger than all else, and of equal values the one at the lower place is taken.
    """

def argmin(best: tuple[Number, Number], other: tuple[Number, Number], /) -> tuple[Expr, Expr]:
    """The pair of a value and its place that has the smaller value; nan is smaller than all else."""

def thread(tag: str, extent: Number) -> Iterator[Expr]:
    """The iterations from 0 to below `extent`, bound to a thread axis: `tl.thread("threadIdx.x", 32)`."""

def barrier(memory: str) -> Expr:
    """All threads wait here: `tl.barrier("shared")`."""

def attr(*about: Buffer | str | int) -> AbstractContextManager[None]:
    """Says something about a buffer or a block: `with tl.attr(x, "double_buffer"):`."""

def let(name: Number, value: Number, body: Number) -> Expr:
    """`body` with `name` for `value`, which is computed once."""

def select(condition: Number, if_true: Number, if_false: Number) -> Expr:
    """One of two values, both of which are computed; takes vectors."""

def if_then_else(condition: Number, if_true: Number, if_false: Number) -> Expr:
    """One of two values, the other is not computed: `if_true if condition else if_false`."""

def ramp(base: Number, stride: Number, lanes: int) -> Expr:
    """The vector base, base + stride, ..."""

def broadcast(value: Number, lanes: int) -> Expr:
    """The vector with `value` in each lane."""

def truncdiv(a: Number, b: Number) -> Expr:
    """The quotient of integers, rounded to 0."""

def truncmod(a: Number, b: Number) -> Expr:
    """The remainder of `truncdiv`, with the sign of `a`."""

def checked(index: Number) -> Expr:
    """An index that the kernel checks against its axis where it is used: `x[tl.checked(k)]`."""

def address_of(element: Number) -> Expr:
    """The address of an element: `tl.address_of(x[i])`."""

def access_ptr(of: Buffer, offset: Number, extent: Number, mask: str) -> Expr:
    """The address of `extent` elements from `offset` on, which are read or written: "r", "w" or "rw"."""

def call(kernel: Kernel | PrimFunc, *args: Number | Buffer, **named: Number | Buffer) -> None:
    """Calls a kernel that stays a function of its own: `tl.call(smooth, x, y)`. Plain `smooth(x, y)` splices it in."""

def call_extern(dtype: str | DType, function: str | int | Callable[..., Any], *args: Number | Buffer | str) -> Expr:
    """A call of a C function, by name, by address or as a function of ctypes."""

def abs(x: Number) -> Expr:
    """The size of a number, of its type."""

def sqrt(x: Number) -> Expr:
    """The square root, correctly rounded."""

def rsqrt(x: Number, *, fast: bool = False) -> Expr:
    """1 / sqrt(x)."""

def exp(x: Number, *, fast: bool = False) -> Expr:
    """e to the power x."""

def exp2(x: Number, *, fast: bool = False) -> Expr:
    """2 to the power x."""

def expm1(x: Number, *, fast: bool = False) -> Expr:
    """e to the power x, less 1; exact near 0."""

def log(x: Number, *, fast: bool = False) -> Expr:
    """The natural logarithm."""

def log2(x: Number, *, fast: bool = False) -> Expr:
    """The logarithm to base 2."""

def log10(x: Number, *, fast: bool = False) -> Expr:
    """The logarithm to base 10."""

def log1p(x: Number, *, fast: bool = False) -> Expr:
    """The natural logarithm of 1 + x; exact near 0."""

def sin(x: Number, *, fast: bool = False) -> Expr:
    """The sine of radians."""

def cos(x: Number, *, fast: bool = False) -> Expr:
    """The cosine of radians."""

def tan(x: Number, *, fast: bool = False) -> Expr:
    """The tangent of radians."""

def asin(x: Number, *, fast: bool = False) -> Expr:
    """The arc sine, in radians."""

def acos(x: Number, *, fast: bool = False) -> Expr:
    """The arc cosine, in radians."""

def atan(x: Number, *, fast: bool = False) -> Expr:
    """The arc tangent, in radians."""

def atan2(y: Number, x: Number, *, fast: bool = False) -> Expr:
    """The angle of the point (x, y), in radians."""

def sinh(x: Number, *, fast: bool = False) -> Expr:
    """The hyperbolic sine."""

def cosh(x: Number, *, fast: bool = False) -> Expr:
    """The hyperbolic cosine."""

def tanh(x: Number, *, fast: bool = False) -> Expr:
    """The hyperbolic tangent."""

def erf(x: Number, *, fast: bool = False) -> Expr:
    """The error function."""

def sigmoid(x: Number, *, fast: bool = False) -> Expr:
    """1 / (1 + exp(-x))."""

def pow(x: Number, y: Number, *, fast: bool = False) -> Expr:
    """x to the power y."""

def floor(x: Number) -> Expr:
    """The greatest whole number up to x."""

def ceil(x: Number) -> Expr:
    """The least whole number from x on."""

def round(x: Number) -> Expr:
    """The nearest whole number, halves to even."""

def trunc(x: Number) -> Expr:
    """The whole number towards 0."""

def fma(x: Number, y: Number, z: Number) -> Expr:
    """x * y + z, rounded once."""

def isnan(x: Number) -> Expr:
    """Whether x is not a number."""

"""The names of tirlite for editors and type checkers; `tirlite/__init__.py` loads each when it is first used."""

# ruff: noqa: A001, A002, A004, N801, N804
# mypy: disable-error-code="override, misc"

from collections.abc import Callable, Iterator
from contextlib import AbstractContextManager
from typing import Any, TypeAlias, TypeVar

from tirlite import (
    analysis as analysis,
    graph as graph,
    ir as ir,
    plan as plan,
    rewrite,
    schedules as schedules,
    solver as solver,
)
from tirlite.analysis import allocations as allocations
from tirlite.diag import (
    CallError as CallError,
    CallTypeError as CallTypeError,
    CallValueError as CallValueError,
    CapacityError as CapacityError,
    GraphError as GraphError,
    InternalError as InternalError,
    KernelAssertionError as KernelAssertionError,
    KernelError as KernelError,
    KernelIndexError as KernelIndexError,
    KernelRunError as KernelRunError,
    PlanError as PlanError,
    TirliteError as TirliteError,
)
from tirlite.driver import Kernel as Kernel
from tirlite.dsl import buffer as buffer, parse as parse
from tirlite.dsl.parameters import ParamType
from tirlite.graph import from_onnx as from_onnx
from tirlite.ir import Buffer, DType, Expr, PrimFunc as PrimFunc, TensorType, Var, structural_equal as structural_equal
from tirlite.runtime import set_num_threads as set_num_threads
from tirlite.schedules import Schedule as Schedule, schedule as schedule
from tirlite.solver import compile as compile, kernel as _kernel
from tirlite.target import MemoryInfo as MemoryInfo, Target as Target
from tirlite.tune import autotune as autotune

__version__: str

# fmt: off
__all__ = [
    "CallError", "CallTypeError", "CallValueError", "CapacityError", "GraphError", "InternalError", "Kernel",
    "KernelAssertionError", "KernelError", "KernelIndexError", "KernelRunError", "MemoryInfo", "PlanError",
    "PrimFunc", "Schedule", "Target", "TirliteError", "abs", "access_ptr", "acos", "address_of", "alloc", "allocations",
    "allow", "analysis", "argmax", "argmin", "array", "asin", "atan", "atan2", "attr", "autotune", "barrier", "bf16",
    "bool_",
    "broadcast", "buffer", "call", "call_extern", "ceil", "checked", "compile", "cos", "cosh", "dim", "dims",
    "erf", "exp", "exp2", "expm1", "f16", "f32", "f64", "floor", "fma", "from_onnx", "graph", "i16", "i32", "i64",
    "i8", "if_then_else", "inline", "ir", "isnan", "kernel", "let", "log", "log10", "log1p", "log2", "out",
    "parallel", "parse", "passes", "plan", "pow", "ramp", "reciprocal", "reduce", "round", "rsqrt", "schedule",
    "schedules", "select",
    "set_num_threads", "sigmoid", "sin", "sinh",
    "solver", "sqrt", "static", "structural_equal", "tan", "tanh", "thread", "trunc", "truncdiv",
    "truncmod", "u16", "u32", "u64", "u8", "unchecked", "unroll", "vectorized", "view",
]
# fmt: on

passes = rewrite

Number: TypeAlias = Expr | bool | int | float
_F = TypeVar("_F", bound=Callable[..., object])
_T = TypeVar("_T")

class _Number(Var):
    """A number in a kernel, or a dim. Only type checkers see this class."""

    def __add__(self, other: Number, /) -> _Number: ...
    def __radd__(self, other: Number, /) -> _Number: ...
    def __sub__(self, other: Number, /) -> _Number: ...
    def __rsub__(self, other: Number, /) -> _Number: ...
    def __mul__(self, other: Number, /) -> _Number: ...
    def __rmul__(self, other: Number, /) -> _Number: ...
    def __truediv__(self, other: Number, /) -> _Number: ...
    def __rtruediv__(self, other: Number, /) -> _Number: ...
    def __floordiv__(self, other: Number, /) -> _Number: ...
    def __rfloordiv__(self, other: Number, /) -> _Number: ...
    def __mod__(self, other: Number, /) -> _Number: ...
    def __rmod__(self, other: Number, /) -> _Number: ...
    def __pow__(self, other: Number, /) -> _Number: ...
    def __rpow__(self, other: Number, /) -> _Number: ...
    def __and__(self, other: Number, /) -> _Number: ...
    def __rand__(self, other: Number, /) -> _Number: ...
    def __or__(self, other: Number, /) -> _Number: ...
    def __ror__(self, other: Number, /) -> _Number: ...
    def __xor__(self, other: Number, /) -> _Number: ...
    def __rxor__(self, other: Number, /) -> _Number: ...
    def __lshift__(self, other: Number, /) -> _Number: ...
    def __rlshift__(self, other: Number, /) -> _Number: ...
    def __rshift__(self, other: Number, /) -> _Number: ...
    def __rrshift__(self, other: Number, /) -> _Number: ...
    def __neg__(self) -> _Number: ...
    def __pos__(self) -> _Number: ...
    def __invert__(self) -> _Number: ...
    def __abs__(self) -> _Number: ...
    def __lt__(self, other: Number, /) -> bool: ...
    def __le__(self, other: Number, /) -> bool: ...
    def __gt__(self, other: Number, /) -> bool: ...
    def __ge__(self, other: Number, /) -> bool: ...
    def __index__(self) -> int: ...
    def __int__(self) -> int: ...
    def __float__(self) -> float: ...

class _Array(_Number):
    """An array in a kernel: its elements are numbers, and so is one without axes."""

    @property
    def shape(self) -> tuple[_Number, ...]: ...
    def __len__(self) -> int: ...
    def __getitem__(self, index: Any, /) -> _Number: ...
    def __setitem__(self, index: Any, value: Number, /) -> None: ...

class _Type(DType, type):
    """The type of the types of elements: `tl.f32[n, m]` is a type of arrays, and `tl.f32(x)` a cast."""

    def __call__(self, value: Number | str, /) -> _Array: ...

class _Value(_Array, metaclass=_Type):
    """What a parameter with such a type is in a kernel: an array or a number."""

    def __class_getitem__(cls, shape: Any, /) -> Any: ...

class bool_(_Value):
    """True or False, one byte."""

class i8(_Value):
    """Integers from -128 to 127."""

class i16(_Value):
    """Integers of 16 bits."""

class i32(_Value):
    """Integers of 32 bits."""

class i64(_Value):
    """Integers of 64 bits, the type of indices."""

class u8(_Value):
    """Integers from 0 to 255."""

class u16(_Value):
    """Integers from 0 to 65535."""

class u32(_Value):
    """Integers from 0 on, of 32 bits."""

class u64(_Value):
    """Integers from 0 on, of 64 bits."""

class f16(_Value):
    """Floats of 16 bits."""

class bf16(_Value):
    """Floats of 16 bits with the exponents of f32."""

class f32(_Value):
    """Floats of 32 bits."""

class f64(_Value):
    """Floats of 64 bits."""

class array(_Array):
    """What type checkers take a parameter for that is an array: `x: Annotated[tl.array, tl.f32[n, m]]`."""

class out(_Array):
    """An array that the caller may leave out: `y: tl.out[tl.f32[n]]`. It is then allocated, and returned."""

    def __new__(cls, kind: TensorType | ParamType, /) -> ParamType: ...
    def __class_getitem__(cls, kind: TensorType | ParamType, /) -> Any: ...

def dim(name: str, *, min: int = 1, max: int | None = None, multiple_of: int = 1) -> _Number:
    """A symbolic extent called `name`: an integer that is known when the kernel is called.

    Facts that hold at every call help the planner: `min` (inclusive), `max` (inclusive), `multiple_of`.
    Raises KernelError for facts that no integer obeys.
    """

def dims(names: str) -> tuple[_Number, ...]:
    """A dim for each of the names, which are separated by blanks or commas: `n, m = tl.dims("n m")`."""

# mypy is to leave functions under @tl.inline and a plain @tl.kernel alone: it finds no type in `tl.f32[n, m]`.
MYPY = False
if MYPY:
    from typing import no_type_check as inline, no_type_check as kernel
else:
    kernel = _kernel

    def inline(function: _F) -> _F:
        """Lets kernels call a Python function: its body is translated at each call. From Python, it runs as Python."""

def allow(*permissions: str) -> Any:
    """What passes may do in a block, `with tl.allow("contract"):`, or in a kernel, as a decorator under its own."""

def unchecked() -> AbstractContextManager[None]:
    """A block in which no access is checked, at the author's own risk: `with tl.unchecked():`."""

def static(value: _T) -> _T:
    """`value`, evaluated by Python at compile time; loops over it are unrolled, branches on it resolved."""

def alloc(of: TensorType, *, scope: str = "global", alignment: int = 0, volatile: bool = False) -> _Array:
    """A temporary: `t = tl.alloc(tl.f32[n, m])`. `alignment` is in bytes. Its elements are uninitialised."""

def view(
    source: Buffer | _Array,
    of: TensorType,
    byte_offset: Number = 0,
    *,
    alignment: int = 0,
    volatile: bool = False,
    fresh: bool = False,
) -> _Array:
    """The bytes of `source` with another type or shape: `v = tl.view(t, tl.u8[4 * n])`.

    A fresh view stands for an allocation in these bytes: what was written before must not be read through it.
    """

def parallel(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[_Number]:
    """A range whose iterations may run at the same time, and must not conflict."""

def vectorized(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[_Number]:
    """A range whose iterations become lanes of a vector, where that is possible."""

def unroll(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[_Number]:
    """A range that the compiler unrolls."""

def reduce(start: Number, stop: Number = ..., step: int = 1, /) -> Iterator[_Number]:
    """A range whose iterations combine values, and may be regrouped: `for i in tl.reduce(n): total += x[i]`."""

def argmax(best: tuple[Number, Number], other: tuple[Number, Number], /) -> tuple[_Number, _Number]:
    """The pair of a value and its place that has the larger value: `top, at = tl.argmax((top, at), (x[i], i))`.

    nan is larger than all else, and of equal values the one at the lower place is taken.
    """

def argmin(best: tuple[Number, Number], other: tuple[Number, Number], /) -> tuple[_Number, _Number]:
    """The pair of a value and its place that has the smaller value; nan is smaller than all else."""

def thread(tag: str, extent: Number) -> Iterator[_Number]:
    """The iterations from 0 to below `extent`, bound to a thread axis: `tl.thread("threadIdx.x", 32)`."""

def barrier(memory: str) -> _Number:
    """All threads wait here: `tl.barrier("shared")`."""

def attr(*about: Buffer | Number | str) -> AbstractContextManager[None]:
    """An attribute of a buffer or a block: `with tl.attr(x, "double_buffer"):`."""

def let(name: Number, value: Number, body: Number) -> _Number:
    """`body` with `name` for `value`, which is computed once."""

def select(condition: Number, if_true: Number, if_false: Number) -> _Number:
    """One of two values, both of which are computed; takes vectors."""

def if_then_else(condition: Number, if_true: Number, if_false: Number) -> _Number:
    """One of two values; the other is not evaluated: `if_true if condition else if_false`."""

def ramp(base: Number, stride: Number, lanes: int) -> _Number:
    """The vector base, base + stride, ..."""

def broadcast(value: Number, lanes: int) -> _Number:
    """The vector with `value` in each lane."""

def truncdiv(a: Number, b: Number) -> _Number:
    """The quotient of integers, rounded to 0."""

def truncmod(a: Number, b: Number) -> _Number:
    """The remainder of `truncdiv`, with the sign of `a`."""

def checked(index: Number) -> _Number:
    """An index that the kernel checks against its axis where it is used: `x[tl.checked(k)]`."""

def address_of(element: Number) -> _Number:
    """The address of an element: `tl.address_of(x[i])`."""

def access_ptr(of: Buffer | _Array, offset: Number, extent: Number, mask: str) -> _Number:
    """The address of `extent` elements from `offset` on, which are read or written: "r", "w" or "rw"."""

def call(kernel: Kernel | PrimFunc, *args: Number | Buffer, **named: Number | Buffer) -> None:
    """Calls a kernel without inlining it: `tl.call(smooth, x, y)`. Plain `smooth(x, y)` inlines it."""

def call_extern(dtype: str | DType, function: str | int | Callable[..., Any], *args: Number | Buffer | str) -> _Number:
    """A call of a C function, by name, by address or as a function of ctypes."""

def abs(x: Number) -> _Number:
    """The absolute value, of the type of x."""

def sqrt(x: Number) -> _Number:
    """The square root, correctly rounded."""

def reciprocal(x: Number, *, fast: bool = False) -> _Number:
    """1 / x."""

def rsqrt(x: Number, *, fast: bool = False) -> _Number:
    """1 / sqrt(x)."""

def exp(x: Number, *, fast: bool = False) -> _Number:
    """e to the power x."""

def exp2(x: Number, *, fast: bool = False) -> _Number:
    """2 to the power x."""

def expm1(x: Number, *, fast: bool = False) -> _Number:
    """e to the power x, less 1; exact near 0."""

def log(x: Number, *, fast: bool = False) -> _Number:
    """The natural logarithm."""

def log2(x: Number, *, fast: bool = False) -> _Number:
    """The logarithm to base 2."""

def log10(x: Number, *, fast: bool = False) -> _Number:
    """The logarithm to base 10."""

def log1p(x: Number, *, fast: bool = False) -> _Number:
    """The natural logarithm of 1 + x; exact near 0."""

def sin(x: Number, *, fast: bool = False) -> _Number:
    """The sine of radians."""

def cos(x: Number, *, fast: bool = False) -> _Number:
    """The cosine of radians."""

def tan(x: Number, *, fast: bool = False) -> _Number:
    """The tangent of radians."""

def asin(x: Number, *, fast: bool = False) -> _Number:
    """The arc sine, in radians."""

def acos(x: Number, *, fast: bool = False) -> _Number:
    """The arc cosine, in radians."""

def atan(x: Number, *, fast: bool = False) -> _Number:
    """The arc tangent, in radians."""

def atan2(y: Number, x: Number, *, fast: bool = False) -> _Number:
    """The angle of the point (x, y), in radians."""

def sinh(x: Number, *, fast: bool = False) -> _Number:
    """The hyperbolic sine."""

def cosh(x: Number, *, fast: bool = False) -> _Number:
    """The hyperbolic cosine."""

def tanh(x: Number, *, fast: bool = False) -> _Number:
    """The hyperbolic tangent."""

def erf(x: Number, *, fast: bool = False) -> _Number:
    """The error function."""

def sigmoid(x: Number, *, fast: bool = False) -> _Number:
    """1 / (1 + exp(-x))."""

def pow(x: Number, y: Number, *, fast: bool = False) -> _Number:
    """x to the power y."""

def floor(x: Number) -> _Number:
    """The greatest whole number up to x."""

def ceil(x: Number) -> _Number:
    """The least whole number from x on."""

def round(x: Number) -> _Number:
    """The nearest whole number, halves to even."""

def trunc(x: Number) -> _Number:
    """The whole number towards 0."""

def fma(x: Number, y: Number, z: Number) -> _Number:
    """x * y + z, rounded once."""

def isnan(x: Number) -> _Number:
    """Whether x is not a number."""

"""Makes the variable or buffer of a parameter from its type. `out` and `buffer` are words for annotations."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.diag import Message, PlanError, Span
from tirlite.ir.dtype import DType, TensorType, i64
from tirlite.ir.expr import Buffer, Expr, IntImm, Var
from tirlite.ir.func import PrimFunc
from tirlite.ir.validate_buffers import can_align
from tirlite.plan.scope import StorageScope
from tirlite.record import record, replace
from tirlite.show import shown
from tirlite.sizes import Dim, Poly


class BadAnnotation(Message):
    """A parameter's annotation is not a type of the kernel language.

    Example: `def f(x: float):`.
    """

    title = "parameter `{name}` is annotated with {given}"
    label = "no type of a parameter"
    help = "write `tl.f32[n, m]` for an array, `tl.f32` for a scalar, `tl.out[tl.f32[n, m]]` for an output"


class NoArrayType(Message):
    """`tl.out` or `tl.buffer` is given something other than the type of an array.

    Example: `y: tl.out[tl.f32]`.
    Fix: An output of one number is an array of one element: `tl.out[tl.f32[1]]`.
    """

    title = "tl.{word} takes the type of an array, and is given {given}"
    help = "an array is `tl.f32[n]`; of one number, `tl.f32[1]`"


class BadExtent(Message):
    """An extent is neither an integer nor an expression of dims.

    Example: `x: tl.f32[n, 0.5]`.
    Fix: Write an integer of at least 0, a dim, or arithmetic of these.
    """

    code = "bad-shape"
    title = "extent {axis} of `{name}` is {given}"
    help = "an extent is an integer of at least 0, or an integer expression of dims"


class UnsupportedType(Message):
    """An address as the type of an element or a parameter.

    Example: An array of tl.handle.
    Fix: Use addresses where they are made: tl.call_extern("f32", "name", tl.address_of(x[0])).
    """

    title = "tl.{dtype} cannot be computed with"
    help = "an address may only be used in calls: tl.address_of, tl.access_ptr, tl.call_extern"


class BadScope(Message):
    """A storage scope that does not exist.

    Example: `tl.alloc(tl.f32[n], scope="locl")`.
    Fix: Write a rank, and a tag after it if need be: `local`, `shared`, `local.UB`.
    """

    title = "{reason}"
    help = "{advice}"


class BadOption(Message):
    """An option of a buffer has a value that it cannot have.

    Example: `tl.alloc(tl.f32[n], alignment=3)`.
    Fix: Give the option a value that the help line names.
    """

    title = "{option}={given} of a buffer"
    help = "{option} is {wanted}"


@record
class ParamType:
    """A tensor type with further properties of a parameter."""

    tensor: TensorType | DType
    is_output: bool = False
    scope: str = "global"
    alignment: int = 0
    volatile: bool = False
    strides: tuple[Expr, ...] = ()
    least: object = 0
    below: object = None


class array:  # noqa: N801
    """The type of an array parameter for type checkers: `x: Annotated[tl.array, tl.f32[n, m]]`.

    The second part is its type; for checkers, elements of the first are numbers.
    """


class Out:
    """`tl.out[tl.f32[n]]` or `tl.out(tl.f32[n])`: an array that is allocated and returned if the caller omits it."""

    def __getitem__(self, kind: TensorType | ParamType) -> ParamType:
        return output(kind, None)

    def __call__(self, kind: TensorType | ParamType) -> ParamType:
        return output(kind, None)


out = Out()


def output(kind: object, span: Span | None) -> ParamType:
    if isinstance(kind, TensorType):
        return ParamType(kind, is_output=True)
    if isinstance(kind, ParamType):
        return replace(kind, is_output=True)
    raise NoArrayType("out", described(kind), span=span).error()


def buffer(
    tensor: TensorType,
    *,
    scope: str = "global",
    alignment: int = 0,
    volatile: bool = False,
    strides: Sequence[object] = (),
    least: object = 0,
    below: object = None,
) -> ParamType:
    """The type of an array parameter that promises more than its element type and shape, or has strides of its own.

    `alignment` is in bytes. `strides` are in elements, one for each axis: integers, or i64 parameters before this one,
    in an annotation that is a string. With `below`, which may be a dim, all elements must be at least `least` and less
    than `below`, which each call checks first. Raises KernelError for a scope that does not exist.
    """
    if not isinstance(tensor, TensorType):
        raise NoArrayType("buffer", described(tensor)).error()
    check_options(scope, alignment, volatile, None)
    given = stride_exprs(strides, None)
    return ParamType(
        tensor, scope=scope, alignment=alignment, volatile=volatile, strides=given, least=least, below=below
    )


def stride_exprs(given: object, span: Span | None) -> tuple[Expr, ...]:
    """Strides as i64 expressions."""
    found: list[Expr] = []
    for each in given if isinstance(given, (tuple, list)) else (given,):
        if isinstance(each, int) and not isinstance(each, bool) and i64.min <= each <= i64.max:
            found.append(IntImm(i64, each))
        elif isinstance(each, Expr) and each.dtype == i64:
            found.append(each)
        else:
            wanted = "an integer or a parameter of type i64 for each axis"
            raise BadOption("strides", described(each), wanted, span=span).error()
    return tuple(found)


def check_options(scope: object, alignment: object, volatile: object, span: Span | None) -> None:
    """Raises KernelError for invalid options of a buffer."""
    if not isinstance(scope, str):
        raise BadOption("scope", described(scope), 'a text like "local"', span=span).error()
    try:
        StorageScope.parse(scope)
    except PlanError as error:
        (message,) = error.messages
        raise BadScope(message.say(message.title), message.say(message.help), span=span).error() from None
    if isinstance(alignment, bool) or not isinstance(alignment, int) or not can_align(alignment):
        raise BadOption("alignment", described(alignment), "a power of two in bytes, up to 2**32", span=span).error()
    if not isinstance(volatile, bool):
        raise BadOption("volatile", described(volatile), "True or False", span=span).error()


def parameter(name: str, kind: object, span: Span) -> tuple[Var | Buffer, bool]:
    """The variable or buffer of a parameter, and whether it is an output."""
    if isinstance(kind, DType):
        return Var(name, checked(kind, span)), False
    if isinstance(kind, TensorType):
        kind = ParamType(kind)
    if not isinstance(kind, ParamType) or not isinstance(kind.tensor, TensorType):
        raise BadAnnotation(name, described(kind), span=span).error()
    made = Buffer(
        name,
        checked(kind.tensor.dtype, span),
        extents(name, kind.tensor.shape, span),
        kind.scope,
        kind.alignment,
        kind.volatile,
        kind.strides,
    )
    return made, kind.is_output


def checked(dtype: DType, span: Span) -> DType:
    """`dtype`, if kernels can compute with it."""
    if dtype.is_handle:
        raise UnsupportedType(dtype, span=span).error()
    return dtype


def extents(name: str, shape: Sequence[object], span: Span) -> tuple[Expr, ...]:
    """The extents of a shape as i64 expressions."""
    return tuple(_extent(name, axis, extent, span) for axis, extent in enumerate(shape))


def _extent(name: str, axis: int, extent: object, span: Span) -> Expr:
    if isinstance(extent, Expr) and extent.dtype.is_integer and extent.dtype.lanes == 1:
        if not isinstance(extent, IntImm) or extent.value >= 0:
            return extent.astype(i64)
    elif isinstance(extent, Dim):
        return Var(extent.name, i64, extent)
    elif isinstance(extent, Poly):
        from tirlite.ir.size import expr_over_dims

        return expr_over_dims(extent)
    elif hasattr(extent, "__index__") and not isinstance(extent, bool):
        value = int(extent.__index__())
        if 0 <= value <= i64.max:
            return IntImm(i64, value)
    raise BadExtent(axis, name, described(extent), span=span).error()


def described(value: object) -> str:
    """A description of a value for messages."""
    if isinstance(value, Expr):
        return f"an expression of type {value.dtype}"
    if isinstance(value, Buffer):
        return f"the buffer `{value.name}`"
    if isinstance(value, DType):
        return f"tl.{value}"
    if isinstance(value, (TensorType, ParamType)):
        return "the type of an array"
    if isinstance(value, PrimFunc):
        return f"the kernel `{value.name}`"
    from tirlite.dsl.inline import Inline  # only for messages

    if isinstance(value, Inline):
        return f"the function `{value.name}`"
    if isinstance(value, type):
        return f"the Python type {value.__name__}"
    if value is None or isinstance(value, (bool, int, float, str)):
        return shown(value)
    return f"a value of type {type(value).__name__}"

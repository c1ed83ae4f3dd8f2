"""Translates calls of the language's words to expressions."""

from __future__ import annotations

from _ctypes import CFuncPtr
from collections.abc import Callable, Mapping

from tirlite.diag import Span
from tirlite.dsl.convert import condition, constant, integer, is_literal, number, together
from tirlite.dsl.host_functions import native_address
from tirlite.dsl.operators import OperandType
from tirlite.dsl.parameters import check_options, described
from tirlite.dsl.vocabulary import MIN, CallSite, WrongArgument, misplaced
from tirlite.ir import expr as e
from tirlite.ir.dtype import DType, bool_, dtype_of, f64, handle, i32, i64
from tirlite.ir.expr import Buffer, BufferRef, Call, Expr, IntImm, Load, StringImm, widened
from tirlite.ir.op import Op
from tirlite.ir.validate_calls import ACCESS_MASKS, CallArgument, check_call


def call(site: CallSite) -> object:
    rule = _RULES.get(site.word.name)
    if rule is None and site.word.op is not None:
        rule = _math
    if rule is None:
        raise misplaced(site.word, site.span)
    site.only(*(("fast",) if site.word.op is not None and site.word.op.takes_fast else ()))
    return rule(site)


def _math(site: CallSite) -> object:
    op = site.word.op
    assert op is not None
    assert op.arity is not None
    site.count(op.arity, op.arity, "one argument" if op.arity == 1 else f"{op.arity} arguments")
    if op is Op.ABS:
        return _abs(site)
    if all(is_literal(arg) for arg in site.args):
        args: tuple[Expr, ...] = tuple(_f64(arg, span) for arg, span in zip(site.args, site.spans, strict=True))
    else:
        args = together(site.args, site.spans)
    if not args[0].dtype.is_float:
        args = tuple(arg.astype(f64.with_lanes(arg.dtype.lanes)) for arg in args)
    dtype = args[0].dtype
    op = op.fast if _is_fast(site) else op
    return Call(bool_.with_lanes(dtype.lanes) if op is Op.ISNAN else dtype, op, args)


def _is_fast(site: CallSite) -> bool:
    """Whether `fast=True` is given, which must be a constant."""
    if "fast" not in site.keywords:
        return False
    value, span = site.keywords["fast"]
    if not isinstance(value, bool):
        raise WrongArgument(site.name, "`fast=True` or `fast=False`", described(value), span=span).error()
    return value


def _f64(literal: object, span: Span) -> Expr:
    assert isinstance(literal, (bool, int, float))
    return constant(literal, f64, span)


def _abs(site: CallSite) -> object:
    value = number(site.args[0], site.spans[0])
    if value.dtype.is_bool:
        raise OperandType("abs", value.dtype, "cast to a number first: tl.i64(...)", span=site.spans[0]).error()
    return Call(value.dtype, Op.ABS, (value,))


def _extremum(site: CallSite) -> object:
    site.count(2, None, "two arguments or more", "write a loop over the elements of a buffer")
    if all(is_literal(arg) for arg in site.args):
        return (min if site.word is MIN else max)(site.args)  # type: ignore[type-var]
    kind = e.Min if site.word is MIN else e.Max
    first, *rest = together(site.args, site.spans)
    for value in rest:
        first = kind(first, value)
    return first


def _len(site: CallSite) -> object:
    site.count(1, 1, "one argument")
    of = site.args[0]
    if isinstance(of, tuple):
        return len(of)
    if not isinstance(of, Buffer) or not of.shape:
        raise site.wrong(0, "an array with an axis")
    return of.shape[0]


def _trunc(site: CallSite) -> object:
    site.count(2, 2, "2 arguments")
    a, b = together(site.args, site.spans)
    if not a.dtype.is_integer:
        raise OperandType(site.name, a.dtype, "cast to an integer first", span=site.spans[0]).error()
    return e.TruncDiv(a, b) if site.word.name == "truncdiv" else e.TruncMod(a, b)


def _select(site: CallSite) -> object:
    site.count(3, 3, "3 arguments")
    test = number(site.args[0], site.spans[0])
    if not test.dtype.is_bool:
        raise site.wrong(0, "a condition")
    if_true, if_false = together(site.args[1:], site.spans[1:])
    lanes = test.dtype.lanes
    if lanes > 1 and if_true.dtype.lanes == 1:
        dtype = if_true.dtype.with_lanes(lanes)
        if_true, if_false = widened(if_true, dtype), widened(if_false, dtype)
    elif lanes not in (1, if_true.dtype.lanes):
        raise site.wrong(0, f"a condition of {if_true.dtype.lanes} lanes")
    return e.Select(test, if_true, if_false)


def _if_then_else(site: CallSite) -> object:
    site.count(3, 3, "3 arguments")
    return conditional(site.args, site.spans)


def conditional(args: tuple[object, ...], spans: tuple[Span, ...]) -> Expr:
    """`if_true if test else if_false`, of (test, if_true, if_false)."""
    test = condition(args[0], spans[0])
    if_true, if_false = together(args[1:], spans[1:])
    return Call(if_true.dtype, Op.IF_THEN_ELSE, (test, if_true, if_false))


def _lanes(site: CallSite, position: int) -> int:
    lanes = site.args[position]
    if isinstance(lanes, bool) or not isinstance(lanes, int) or not 2 <= lanes <= 1024:
        raise site.wrong(position, "a constant number of lanes from 2 to 1024")
    return lanes


def _ramp(site: CallSite) -> object:
    site.count(3, 3, "base, stride and lanes")
    base, stride = together(site.args[:2], site.spans[:2])
    return e.Ramp(
        integer(base, "the base of a ramp", site.spans[0]),
        integer(stride, "the stride of a ramp", site.spans[1]),
        _lanes(site, 2),
    )


def _broadcast(site: CallSite) -> object:
    site.count(2, 2, "a value and lanes")
    value = number(site.args[0], site.spans[0])
    if value.dtype.lanes != 1:
        raise site.wrong(0, "a scalar")
    return e.Broadcast(value, _lanes(site, 1))


# The arguments wanted by calls whose arguments are all numbers, for messages about their count.
_OF_NUMBERS: Mapping[str, str] = {
    "any": "a vector of bools",
    "dot": "a sum and two vectors",
    "interleave_low": "two vectors",
    "interleave_high": "two vectors",
    "checked": "one argument",
    "masked": "an index and a mask",
}


def _of_numbers(site: CallSite) -> object:
    """A call whose arguments are all numbers; violations of the IR's rules become messages about its arguments."""
    op = Op[site.word.name.upper()]
    assert op.arity is not None
    site.count(op.arity, op.arity, _OF_NUMBERS[site.word.name])
    args = tuple(number(value, span) for value, span in zip(site.args, site.spans, strict=True))
    made = Call(bool_ if op is Op.ANY else args[0].dtype, op, args)
    if isinstance(wrong := check_call(made), CallArgument):
        raise site.wrong(wrong.position, wrong.wanted)
    return made


def _address_of(site: CallSite) -> object:
    site.count(1, 1, "one argument")
    element = site.args[0]
    if not isinstance(element, Load):
        raise site.wrong(0, "an element of a buffer, as in x[i]")
    return Call(handle, Op.ADDRESS_OF, (element,))


def _access_ptr(site: CallSite) -> object:
    site.count(4, 4, "a buffer, an offset, an extent and a mask")
    buffer, offset, extent, mask = site.args
    if not isinstance(buffer, Buffer):
        raise site.wrong(0, "a buffer")
    if not isinstance(mask, str) or mask not in ACCESS_MASKS:
        raise site.wrong(3, '"r", "w" or "rw"')
    start = integer(offset, "the offset", site.spans[1])
    length = integer(extent, "the extent", site.spans[2])
    return Call(handle, Op.ACCESS_PTR, (BufferRef(buffer), start, length, StringImm(mask)))


def _call_extern(site: CallSite) -> object:
    site.count(2, None, "a type, a name and arguments")
    dtype, name = site.args[:2]
    made = dtype_of(dtype) if isinstance(dtype, str) else dtype
    if not isinstance(made, DType):
        raise site.wrong(0, 'a type, as in "f32"')
    function = _extern_function(name)
    if function is None:
        raise site.wrong(1, 'the name of a function, as in "f", a function of ctypes, or an address')
    rest = zip(site.args[2:], site.spans[2:], strict=True)
    args = tuple(_extern_argument(value, span) for value, span in rest)
    return Call(made, Op.CALL_EXTERN, (function, *args))


def _extern_function(value: object) -> Expr | None:
    """An external function, by name or by its address in this process."""
    if isinstance(value, str) and value:
        return StringImm(value)
    if isinstance(value, CFuncPtr):
        value = native_address(value)
    if isinstance(value, int) and not isinstance(value, bool) and 0 < value <= i64.max:
        return IntImm(i64, value)
    return None


def _extern_argument(value: object, span: Span) -> Expr:
    if isinstance(value, Buffer):
        return BufferRef(value)
    if isinstance(value, str):
        return StringImm(value)
    if isinstance(value, Expr) and value.dtype.is_handle:
        return value
    return number(value, span)


def _barrier(site: CallSite) -> object:
    site.count(1, 1, "the rank of a memory")
    if not isinstance(site.args[0], str):
        raise site.wrong(0, 'a text, as in "shared"')
    check_options(site.args[0], alignment=0, volatile=False, span=site.spans[0])
    return Call(i32, Op.BARRIER, (StringImm(site.args[0]),))


_RULES: Mapping[str, Callable[[CallSite], object]] = {
    "min": _extremum,
    "max": _extremum,
    "len": _len,
    "truncdiv": _trunc,
    "truncmod": _trunc,
    "select": _select,
    "if_then_else": _if_then_else,
    "ramp": _ramp,
    "broadcast": _broadcast,
    **dict.fromkeys(_OF_NUMBERS, _of_numbers),
    "address_of": _address_of,
    "access_ptr": _access_ptr,
    "call_extern": _call_extern,
    "barrier": _barrier,
}

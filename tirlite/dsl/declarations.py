"""Makes the buffer or type declared by a call of `tl.alloc`, `tl.view` or `tl.buffer`."""

from __future__ import annotations

from tirlite.diag import Span
from tirlite.dsl.convert import constant, integer, is_literal
from tirlite.dsl.parameters import BadOption, ParamType, check_options, checked, described, extents, stride_exprs
from tirlite.dsl.vocabulary import CallSite
from tirlite.ir.dtype import TensorType, i64
from tirlite.ir.expr import Buffer, Expr
from tirlite.ir.stmt import Allocate, View

_OPTIONS = ("scope", "alignment", "volatile")


def allocation(name: str, site: CallSite, span: Span) -> Allocate:
    """`name = tl.alloc(tl.f32[n], scope="global", alignment=0, volatile=False)`."""
    site.count(1, 1, "one argument, a tensor type as in tl.f32[n, m]")
    site.only(*_OPTIONS)
    return Allocate(_buffer(name, site, 0, {}), span=span)


def view(name: str, site: CallSite, span: Span) -> View:
    """`name = tl.view(source, tl.f32[n], byte_offset=0, fresh=False)`."""
    site.count(2, 3, "a buffer, a tensor type, and perhaps byte_offset")
    site.only("byte_offset", "alignment", "volatile", "fresh")
    source = site.args[0]
    if not isinstance(source, Buffer):
        raise site.wrong(0, "a buffer")
    buffer = _buffer(name, site, 1, {"scope": source.scope, "volatile": source.volatile})
    return View(buffer, source, _offset(site), _is_fresh(site), span=span)


def _is_fresh(site: CallSite) -> bool:
    value, span = site.keywords.get("fresh", (False, site.span))
    if not isinstance(value, bool):
        raise BadOption("fresh", described(value), "True or False", span=span).error()
    return value


def _offset(site: CallSite) -> Expr:
    given = (site.args[2], site.spans[2]) if len(site.args) == 3 else site.keywords.get("byte_offset", (0, site.span))
    value, span = given
    if is_literal(value) and not isinstance(value, float):
        assert isinstance(value, int)
        return constant(int(value), i64, span)
    return integer(value, "the byte offset", span).astype(i64)


def _buffer(name: str, site: CallSite, position: int, defaults: dict[str, object]) -> Buffer:
    tensor = site.args[position]
    if not isinstance(tensor, TensorType):
        raise site.wrong(position, "a tensor type, as in tl.f32[n, m]")
    span = site.spans[position]
    dtype, shape = checked(tensor.dtype, span), extents(name, tensor.shape, span)
    scope, alignment, volatile = _options(site, defaults)
    return Buffer(name, dtype, shape, scope, alignment, volatile)


def _options(site: CallSite, defaults: dict[str, object]) -> tuple[str, int, bool]:
    given = {"scope": "global", "alignment": 0, "volatile": False, **defaults}
    for option in _OPTIONS:
        if option in site.keywords:
            value, span = site.keywords[option]
            given[option] = value
            check_options(**{"scope": "global", "alignment": 0, "volatile": False, option: value}, span=span)
    scope, alignment, volatile = given["scope"], given["alignment"], given["volatile"]
    assert isinstance(scope, str)
    assert isinstance(alignment, int)
    assert isinstance(volatile, bool)
    return scope, alignment, volatile


def promised(site: CallSite) -> ParamType:
    """`tl.buffer(tl.f32[n], scope=..., alignment=..., volatile=..., strides=..., least=..., below=...)`."""
    site.only(*_OPTIONS, "strides", "least", "below")
    tensor = site.args[0]
    if not isinstance(tensor, TensorType):
        raise site.wrong(0, "a tensor type, as in tl.f32[n, m]")
    scope, alignment, volatile = _options(site, {})
    strides, span = site.keywords.get("strides", ((), site.span))
    least, below = (site.keywords.get(name, (usual, None))[0] for name, usual in (("least", 0), ("below", None)))
    return ParamType(tensor, False, scope, alignment, volatile, stride_exprs(strides, span), least, below)

"""What every kind of node declares about itself: each field counts, and changing any of them is noticed."""

from __future__ import annotations

from collections.abc import Iterator

import pytest
from every import every

from tirlite import ir
from tirlite.ir import f32, f64, i32, i64, structural_equal

one, two = ir.const(1, i64), ir.const(2, i64)
k, m = ir.Var("k"), ir.Var("m")
yes, no = ir.LT(k, one), ir.LT(k, two)
half = ir.const(0.5, f32)
x, y = ir.Buffer("x", f32, (k,)), ir.Buffer("y", f64, (k,))
full, empty = ir.seq(ir.Evaluate(k)), ir.seq()
idle, busy = ir.PrimFunc("idle", (m,), empty), ir.PrimFunc("busy", (m,), full)

# For each kind of node one of it, and for each field another value.
SAMPLES: list[tuple[ir.Node, dict[str, object]]] = [
    (ir.IntImm(i64, 1), {"dtype": i32, "value": 2}),
    (ir.FloatImm(f32, 0.5), {"dtype": f64, "value": 0.25}),
    (ir.StringImm("a"), {"value": "b"}),
    (ir.Cast(i32, k), {"dtype": f32, "value": m}),
    *((kind(k), {"a": m}) for kind in ir.Unary.__subclasses__()),
    *((kind(k, one), {"a": m, "b": two}) for kind in (*ir.Binary.__subclasses__(), *ir.Compare.__subclasses__())),
    (ir.Select(yes, k, one), {"condition": no, "if_true": m, "if_false": two}),
    (ir.Load(x, (k,)), {"buffer": y, "indices": (one,)}),
    (ir.BufferRef(x), {"buffer": y}),
    (ir.Ramp(k, one, 4), {"base": m, "stride": two, "lanes": 8}),
    (ir.Broadcast(k, 4), {"value": m, "lanes": 8}),
    (ir.Call(f32, ir.Op.EXP, (half,)), {"dtype": f64, "op": ir.Op.LOG, "args": (half, half)}),
    (ir.LetExpr(k, one, k), {"var": m, "value": two, "body": one}),
    (ir.SeqStmt((ir.Evaluate(k),)), {"stmts": ()}),
    (ir.Store(x, (k,), half), {"buffer": y, "indices": (one,), "value": ir.const(1.0, f32)}),
    (ir.Evaluate(k), {"value": m}),
    (ir.Allocate(x), {"buffer": y}),
    (ir.KernelCall(idle, (k,)), {"callee": busy, "args": (one,)}),
    (ir.View(x, y, one), {"buffer": ir.Buffer("w", f32, (k, k)), "source": x, "byte_offset": two, "fresh": True}),
    (ir.Let(k, one), {"var": ir.Var("k", f32), "value": two}),
    (ir.Assert(yes, "a"), {"condition": no, "message": "b", "values": (one,)}),
    (
        ir.For(m, one, k, ir.seq(ir.Evaluate(m)), ir.ForKind.SERIAL, 1, "a"),
        {
            "var": k,
            "start": two,
            "stop": one,
            "body": empty,
            "kind": ir.ForKind.PARALLEL,
            "step": 2,
            "thread_tag": "b",
        },
    ),
    (ir.While(yes, full), {"condition": no, "body": empty}),
    (ir.IfThenElse(yes, full, full), {"condition": no, "then_body": empty, "else_body": empty}),
    (
        ir.AttrStmt(ir.AttrKey.PRAGMA, full, None, "a"),
        {"key": ir.AttrKey.EXTERN_SCOPE, "body": empty, "buffer": x, "value": "b"},
    ),
    (
        ir.PrimFunc("f", (x, y, k), full, (x,), (None, None, 1)),
        {"params": (x, x, k), "body": empty, "outputs": (y,), "defaults": (None, None, 2)},
    ),
]

# What is not part of the meaning.
FREE = {"span", "name"}


def kinds(base: type[ir.Node]) -> Iterator[type[ir.Node]]:
    """The kinds of nodes that have no kinds below them."""
    below = base.__subclasses__()
    if not below:
        yield base
    for kind in below:
        yield from kinds(kind)


def test_there_is_a_sample_of_each_kind() -> None:
    # `dataclass(slots=True)` makes a class anew, and the first one lives on until it is collected.
    names = {kind.__name__ for kind in kinds(ir.Node)} - {
        "Function",
        "Expr",
        "Stmt",
        "Unary",
        "Binary",
        "Compare",
        "Var",
    }
    assert {type(node).__name__ for node, _ in SAMPLES} == names


@every("node, others", SAMPLES)
def test_each_field_counts(node: ir.Node, others: dict[str, object]) -> None:
    assert set(others) == set(node.FIELDS) - FREE
    assert structural_equal(node, node.replaced())
    for field, other in others.items():
        changed = node.replaced(**{field: other})
        assert not structural_equal(node, changed), field


@every("node, others", SAMPLES)
def test_data_holds_no_part_of_the_program(node: ir.Node, others: dict[str, object]) -> None:
    for field in node.DATA:
        value = getattr(node, field)
        parts = value if isinstance(value, tuple) else (value,)
        assert not any(isinstance(part, (ir.Node, ir.Buffer)) for part in parts), field


@every("node, others", SAMPLES)
def test_children_are_read_as_they_are_declared(node: ir.Node, others: dict[str, object]) -> None:
    assert node.children() == ir.Node.children(node)


@every("node, others", SAMPLES)
def test_nodes_are_immutable(node: ir.Node, others: dict[str, object]) -> None:
    for field, other in others.items():
        with pytest.raises(AttributeError):
            setattr(node, field, other)

"""Counts the accesses that a call makes, by how it is made sure that each stays in its buffer."""

from __future__ import annotations

from collections import Counter
from collections.abc import Sequence

import numpy as np

from tirlite import driver
from tirlite.analysis.facts import Facts
from tirlite.analysis.guarded import guarded_accesses
from tirlite.analysis.safety import Verdict, safety_of
from tirlite.ir import (
    Add,
    Allocate,
    Buffer,
    Call,
    Evaluate,
    For,
    ForKind,
    IfThenElse,
    Load,
    Node,
    Op,
    PrimFunc,
    SeqStmt,
    Stmt,
    Store,
    Var,
    View,
    While,
    const,
    i64,
    rewrite,
)
from tirlite.ir.rewrite import Rule
from tirlite.ir.size import value_of
from tirlite.rewrite.normalize import Normalize


def executed(kernel: driver.Kernel, arguments: Sequence[object]) -> Counter[str]:
    """How many accesses of a call, without those of what it calls, are "proved", "decided" or "checked".

    Those of a statement count as often as it runs, whatever its conditions leave out, on loops as they are written.
    """
    facts = Facts(Normalize()(kernel.ir))
    verdicts: dict[Node, Verdict] = {}
    for each in safety_of(facts, at_entry=True).judged:
        is_worse = verdicts.get(each.access.node) is not Verdict.CHECKED
        verdicts[each.access.node] = each.verdict if is_worse else Verdict.CHECKED
    of_stmt: dict[Stmt, Counter[str]] = {}
    for access in guarded_accesses(facts.func, facts.space):
        if access.node.buffer.shape and not isinstance(access.node, View):
            found = verdicts.get(access.node, Verdict.PROVED)
            of_stmt.setdefault(access.stmt, Counter())[found.value] += 1
    runs = _runs(facts.func, list(of_stmt), arguments)
    total: Counter[str] = Counter()
    for times, counted in zip(runs, of_stmt.values(), strict=True):
        total.update({how: int(times) * number for how, number in counted.items()})
    return total


def _runs(func: PrimFunc, stmts: Sequence[Stmt], arguments: Sequence[object]) -> np.ndarray:
    """How often each of some statements runs in a call."""
    counts = Buffer("times_run", i64, (const(max(len(stmts), 1), i64),))
    places = {stmt: place for place, stmt in enumerate(stmts)}
    met: list[Stmt] = []

    def counted(node: Stmt) -> Stmt | tuple[Stmt, ...]:
        place = places.get(met.pop())
        serial = node.replaced(kind=ForKind.SERIAL, thread_tag="") if isinstance(node, For) else node
        if place is None:
            return serial
        index = (const(place, i64),)
        count = Store(counts, index, Add(Load(counts, index), const(1, i64)))
        if isinstance(serial, While):
            return serial.replaced(body=SeqStmt((count, *serial.body.stmts)))
        return count, serial

    kinds = {*map(type, stmts), For, While, IfThenElse} - {Allocate}
    rules: dict[type[Node], Rule] = {Evaluate: _without_barrier, **dict.fromkeys(kinds, counted)}
    body = rewrite(func.body, rules, enter=dict.fromkeys(kinds, met.append))
    assert isinstance(body, SeqStmt)
    made = func.replaced(params=(*func.params, counts), body=body, defaults=())
    found = np.zeros(max(len(stmts), 1), np.int64)
    driver.compile(made, unchecked=True, schedule=None)(*arguments, times_run=found)
    return found[: len(stmts)]


def _without_barrier(node: Evaluate) -> Stmt:
    """Threads run one after another here: what they compute is not looked at."""
    return SeqStmt() if isinstance(node.value, Call) and node.value.op is Op.BARRIER else node


def plain_arguments(func: PrimFunc, extent: int) -> list[object]:
    """Arguments of a function without its outputs, whose dims are all `extent`: integers rise, and stay below it."""
    values = dict.fromkeys(func.dims, extent)
    found: list[object] = []
    for param in func.params:
        if isinstance(param, Var):
            found.append(2)
        elif param not in func.outputs:
            shape = [value_of(each, values) or 0 for each in param.shape]
            rising = np.linspace(0, min(extent, 255) - 1, int(np.prod(shape)))
            found.append(rising.reshape(shape).astype(param.dtype.numpy))
    return found

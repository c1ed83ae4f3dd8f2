"""SplitWebs splits buffers that hold unrelated values one after the other: one buffer for each."""

from __future__ import annotations

from collections.abc import Sequence
from itertools import pairwise
from typing import TYPE_CHECKING

from tirlite.analysis import lifetimes_of
from tirlite.analysis.access import AccessKind, Allocation, LinearSequence
from tirlite.analysis.facts import Facts
from tirlite.ir.expr import Buffer, BufferRef, Expr, Load
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.node import Node
from tirlite.ir.rewrite import rewrite
from tirlite.ir.stmt import Allocate, For, IfThenElse, SeqStmt, Stmt, Store, View, While
from tirlite.record import replace
from tirlite.rewrite.pipeline import FactsPass
from tirlite.rewrite.storage.storage_problem import left_alone

if TYPE_CHECKING:
    from tirlite.analysis.coverage.webs import Web
    from tirlite.analysis.integers.definitions import Definitions


class SplitWebs(FactsPass):
    """Splits buffers that are overwritten as a whole, so that each lifetime can be planned by itself.

    If a statement writes all elements, in loops of its own or by a call, before any is read again, the buffer continues
    as another one of the same name, type and shape, in the innermost body with all its uses. Buffers stay if the
    planner leaves them alone, if they are volatile, opaque or have an attribute, and if their parts would be live at
    the same time. For functions in normal form (see `Normalize`).
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        reused = [each for each in facts.sequence.allocations if _is_reused(each)]
        if not reused:
            return facts.func
        from tirlite.analysis.coverage.overwrites import CallCoverage
        from tirlite.analysis.coverage.webs import webs_of
        from tirlite.ir.shapes import loads_in_shapes

        calls = CallCoverage(facts)
        in_shapes = frozenset(loads_in_shapes(facts.func))
        views_of = _views(facts.definitions)
        splits = _Splits()
        for allocation in reused:
            if _may_split(allocation, facts) and not any(touch.node in in_shapes for touch in allocation.touches):
                views = views_of.get(allocation.buffer, {})
                webs = webs_of(allocation, facts, views, calls)
                if len(webs) > 1 and _take_turns(allocation.buffer, webs):
                    splits.add(allocation, webs, views)
        return splits.apply(facts.func)


def _is_reused(allocation: Allocation) -> bool:
    """Whether something is written after something was read; otherwise there is only one web."""
    first: int | None = None
    for touch in allocation.touches:
        if first is None:
            first = touch.position if touch.kind is AccessKind.READ else None
        elif touch.kind is AccessKind.WRITE and touch.position > first:
            return True
    return False


def _may_split(allocation: Allocation, facts: Facts) -> bool:
    """Whether the planner plans an allocation, and all its accesses are plain."""
    from tirlite.analysis.regions import is_plain

    buffer = allocation.buffer
    if buffer.volatile or left_alone(buffer, facts.extents.bytes(buffer)) is not None:
        return False
    if any(facts.definitions.root(remarked) is buffer for remarked in facts.definitions.remarked):
        return False
    return is_plain(allocation.home, None) and all(
        isinstance(touch.node, Load | Store | KernelCall)
        and touch.kind is not AccessKind.OPAQUE
        and not touch.buffer.volatile
        and is_plain(touch.region, allocation.home)
        for touch in allocation.touches
    )


def _views(definitions: Definitions) -> dict[Buffer, dict[Buffer, Buffer]]:
    """For each buffer with views, a map from these to the view made directly of the buffer."""
    found: dict[Buffer, dict[Buffer, Buffer]] = {}
    for view in definitions.views:
        last = definitions.path(view)[-1]
        found.setdefault(last.source, {})[view] = last.buffer
    return found


def _take_turns(buffer: Buffer, webs: Sequence[Web]) -> bool:
    """Whether no two webs are live at the same time, so that they never need more storage than the whole."""
    parts = LinearSequence((), tuple(Allocation(buffer, web.home, touches=web.touches) for web in webs))
    spans = sorted(span for lifetime in lifetimes_of(parts) for span in lifetime.live)
    return all(before[1] <= after[0] for before, after in pairwise(spans))


class _Splits:
    """The buffers to split, and the replacement for each of their uses."""

    def __init__(self) -> None:
        self.uses: dict[tuple[Node, Buffer], Buffer] = {}  # by Load, Store or KernelCall, and the allocation
        self.sources: dict[Buffer, Buffer] = {}  # the new source of each view of a split allocation
        self.beside: dict[Buffer, list[Buffer]] = {}  # by allocation, those in its place
        self.inside: dict[tuple[Stmt, bool], list[Buffer]] = {}  # by composite, and whether in its else branch
        self.pending: list[Buffer | None] = []  # the new buffer of each access being rewritten
        self.called: list[KernelCall] = []  # the original of each call being rewritten
        self.opened: list[Stmt] = []  # the original of each composite being rewritten

    def add(self, allocation: Allocation, webs: Sequence[Web], views: dict[Buffer, Buffer]) -> None:
        original = allocation.buffer
        self.beside[original] = []
        for number, web in enumerate(webs):
            buffer = original if number == 0 else replace(original)
            if web.home is allocation.home:
                self.beside[original].append(buffer)
            else:
                assert web.home.composite is not None
                self.inside.setdefault((web.home.composite, web.home.then is not None), []).append(buffer)
            for touch in web.touches:
                if touch.buffer is original:
                    self.uses[touch.node, original] = buffer
                else:
                    self.sources[views[touch.buffer]] = buffer

    def apply(self, func: PrimFunc) -> PrimFunc:
        if not self.beside:
            return func
        return rewrite(
            func,
            {
                Allocate: self.allocate,
                View: self.view,
                Load: self.use,
                Store: self.use,
                KernelCall: self.call,
                For: self.loop,
                While: self.loop,
                IfThenElse: self.branches,
            },
            enter={
                Load: self.note,
                Store: self.note,
                KernelCall: self.called.append,
                For: self.open,
                While: self.open,
                IfThenElse: self.open,
            },
        )

    def note(self, node: Load | Store) -> None:
        self.pending.append(self.uses.get((node, node.buffer)))

    def use(self, node: Load | Store) -> Node:
        buffer = self.pending.pop()
        return node if buffer is None or buffer is node.buffer else node.replaced(buffer=buffer)

    def call(self, node: KernelCall) -> Node:
        original = self.called.pop()

        def renamed(arg: Expr) -> Expr:
            buffer = self.uses.get((original, arg.buffer)) if isinstance(arg, BufferRef) else None
            return arg if buffer is None else BufferRef(buffer)

        args = tuple(map(renamed, node.args))
        is_same = all(new is old for new, old in zip(args, node.args, strict=True))
        return node if is_same else node.replaced(args=args)

    def allocate(self, node: Allocate) -> Node | tuple[Stmt, ...]:
        if node.buffer not in self.beside:
            return node
        return tuple(Allocate(buffer) for buffer in self.beside[node.buffer])

    def view(self, node: View) -> Node:
        source = self.sources.get(node.buffer, node.source)
        return node if source is node.source else node.replaced(source=source)

    def open(self, node: For | While | IfThenElse) -> None:
        self.opened.append(node)

    def loop(self, node: For | While) -> Node:
        original = self.opened.pop()
        return node.replaced(body=_with(new, node.body)) if (new := self.inside.get((original, False))) else node

    def branches(self, node: IfThenElse) -> Node:
        original = self.opened.pop()
        if (new := self.inside.get((original, False))) is not None:
            node = node.replaced(then_body=_with(new, node.then_body))
        if (new := self.inside.get((original, True))) is not None:
            node = node.replaced(else_body=_with(new, node.else_body))
        return node


def _with(buffers: Sequence[Buffer], body: SeqStmt) -> SeqStmt:
    return SeqStmt((*(Allocate(buffer) for buffer in buffers), body), span=body.span)

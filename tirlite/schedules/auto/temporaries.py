"""Shrinks temporaries: joins the loops that fill them with those that read them, and keeps what is still needed.

Large ones shrink to a few lines, or a scalar. The proofs of the steps guarantee that each access sees the same value.
"""

from __future__ import annotations

from tirlite.analysis.allocations import temporaries
from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError
from tirlite.ir import Buffer, For, ForKind, SeqStmt, Store, Var, statements, statements_of
from tirlite.ir.walk import allocated_in, loads_in, mentions
from tirlite.rewrite.remove_no_ops import RemoveNoOps
from tirlite.schedules.auto.trace import Trace
from tirlite.schedules.handle import BufferName, name_of
from tirlite.schedules.join import Join, Joined, can_be_passed
from tirlite.schedules.shrink import Shrink
from tirlite.schedules.store_at import StoreAt, lines_of, loop_around

# The greatest delay of a joined loop, in iterations.
_MOST_SHIFT = 4
# How many following loops are searched for a common reader.
_MOST_LATER = 8
# Loops with more statements are not joined, since each proof visits all of them.
_MOST_STATEMENTS = 64
# A larger window is not folded, as it would not stay in a near cache.
_MOST_LINES = 16


def scheduled(facts: Facts) -> Trace:
    """The steps that shrink the temporaries of a function."""
    trace = Trace(facts)
    # Before joining: in separate loops it is easily seen that each iteration fills a temporary anew.
    # After joining: more temporaries have all their uses in one loop.
    trace.attempt(lambda: trace.takes([Shrink()]))
    join_loops(trace)
    trace.attempt(lambda: trace.takes([Shrink()]))
    keep_lines(trace)
    trace.attempt(lambda: _without_no_ops(trace))
    return trace


def join_loops(trace: Trace) -> None:
    """Joins loops from the outside in: joining makes inner loops adjacent."""
    tried: set[tuple[Var, Var]] = set()
    while found := _joined(trace.facts, tried):
        for each in found:
            loops, behind = zip(*each.parts, strict=True)
            same = behind[1:] == behind[1:2] * (len(behind) - 1)
            step = Join(tuple(trace.name(loop.var) for loop in loops), behind[1] if same else behind[1:])
            trace.keep(step, each.placed(trace.facts.func))


def keep_lines(trace: Trace) -> None:
    """Folds temporaries of which a loop uses a few lines at a time."""
    found = dict[Var, list[BufferName]]()
    for each in temporaries(trace.facts):
        loop = loop_around(each)
        lines = None if loop is None else lines_of(each, loop, trace.facts)
        if loop and lines and lines[1] <= _MOST_LINES:
            found.setdefault(loop.var, []).append(name_of(trace.facts.func, each.buffer))
    for var, names in found.items():
        trace.apply(StoreAt(tuple(names), trace.name(var)))


def _without_no_ops(trace: Trace) -> bool:
    before = trace.facts
    trace.apply(RemoveNoOps())
    return trace.facts is not before


def _joined(facts: Facts, tried: set[tuple[Var, Var]]) -> list[Joined]:
    """Adjacent loops that can be joined; loops inside of these are left to the next call."""
    finder, found = _Finder(facts, tried), list[Joined]()
    todo = [facts.func.body]
    while todo:
        block = todo.pop()
        joined = finder.joined(block)
        found += joined
        taken = {loop for each in joined for loop, _ in each.parts}
        todo += [body for stmt in block.stmts if stmt not in taken for body in stmt.bodies]
    return found


class _Finder:
    """Finds loops of a function that are worth joining, skipping the pairs in `tried`."""

    def __init__(self, facts: Facts, tried: set[tuple[Var, Var]]) -> None:
        self.facts = facts
        self.allocated = allocated_in(facts.func.body)
        self.tried = tried

    def joined(self, block: SeqStmt) -> list[Joined]:
        """The joined loops of a block, each of two or more."""
        later = [stmt for stmt in block.stmts if isinstance(stmt, For)]
        chains: list[Joined] = []
        goes_on = False
        for stmt in block.stmts:
            if isinstance(stmt, For):
                later.remove(stmt)
                longer = self._longer(chains[-1], stmt, later[:_MOST_LATER]) if goes_on else None
                if longer is not None:
                    chains.pop()
                chains.append(longer or Joined.of(stmt))
                goes_on = True
            elif not can_be_passed(stmt):
                goes_on = False
        return [each for each in chains if len(each.parts) > 1]

    def _longer(self, chain: Joined, second: For, later: list[For]) -> Joined | None:
        """A chain extended by one more loop, if that is worthwhile and possible."""
        first = chain.loop
        pair = (first.var, second.var)
        if pair in self.tried:
            return None
        self.tried.add(pair)
        if not (self._feeds(first, second) or self._feed_together(first, second, later)):
            return None
        is_long = sum(1 for loop in (first, second) for _ in statements(loop.body)) > _MOST_STATEMENTS
        if is_long or _sums_up(first) != _sums_up(second):
            return None
        for behind in range(_MOST_SHIFT + 1 if second.kind is ForKind.SERIAL else 1):
            try:
                longer = chain.with_loop("join", self.facts, second, behind)
            except KernelError:
                continue
            if not (longer.is_guarded and _is_innermost(second)):
                return longer
        return None

    def _feeds(self, first: For, second: For) -> bool:
        """Whether the second loop reads an allocation that the first one writes."""
        return not self._written(first).isdisjoint(self._read(second))

    def _feed_together(self, first: For, second: For, later: list[For]) -> bool:
        """Whether a following loop reads what both of them write."""
        mine, others = self._written(first), self._written(second)
        return any(not (mine.isdisjoint(read) or others.isdisjoint(read)) for read in map(self._read, later))

    def _written(self, loop: For) -> set[Buffer]:
        """The allocations of the function that a loop writes."""
        root = self.facts.definitions.root
        return {root(stmt.buffer) for stmt in statements_of(loop, Store)} & self.allocated

    def _read(self, loop: For) -> set[Buffer]:
        return {self.facts.definitions.root(node.buffer) for node in loads_in(loop)}


def _is_innermost(loop: For) -> bool:
    return next(statements_of(loop.body, For), None) is None


def _sums_up(loop: For) -> bool:
    """Whether an innermost loop repeatedly stores to one place outside of it.

    It is not joined with a loop that does not, as the latter can be vectorized.
    """
    own = allocated_in(loop.body)
    return _is_innermost(loop) and any(
        stmt.buffer not in own and not mentions(stmt.indices, loop.var) for stmt in statements_of(loop.body, Store)
    )

"""The passes that keep accesses in bounds and iterations free of races: checks, and errors where a fault is certain.

CheckBounds adds a check of each access that is not proved to lie in its buffer. CheckRaces leaves a function as it is,
or raises the error that two iterations of a loop conflict.
"""

from __future__ import annotations

from collections.abc import Collection, Iterator
from typing import TYPE_CHECKING

from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError, Message
from tirlite.ir.expr import Binary, Buffer, Expr, FloatImm, IntImm, Load, Var
from tirlite.ir.faults import IterationConflict
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import calls_in
from tirlite.ir.node import Node
from tirlite.ir.stmt import Allocate, AttrKey, AttrStmt, For, IfThenElse, Store, View, While
from tirlite.ir.walk import allocated_in, conjuncts, defined_in, loads_in, mentions, walk
from tirlite.rewrite.forms import NEVER
from tirlite.rewrite.pipeline import FactsPass, Rewritten

if TYPE_CHECKING:
    from tirlite.analysis.access import Region, Touch
    from tirlite.analysis.trials.races import Race

# The most frequent nodes, which contain no accesses.
_ATOMS: frozenset[type[Node]] = frozenset((IntImm, FloatImm, Var, Allocate))
# Below this number, searching a list is as fast as a set.
_FEW = 8
_DECLARE = "the iterations combine values: declare it by `tl.reduce` in place of `{}`, and workers share them"


class CheckBounds(FactsPass):
    """Marks with `tl.checked` the indices, and byte offsets of views, that are not proved in bounds.

    Conditions around an access are used in proofs. Compiled code stops at a failing mark with the interpreter's fault.
    Nothing is marked under `tl.unchecked`.

    `at_entry`: accesses that conditions on dims and scalar parameters decide get no mark; an assert at the top tests
    these, and a call that fails it runs a version without `at_entry`. Only with it are callees checked as well.
    `at_loops`: an innermost loop whose accesses a condition before it decides gets a second copy, without marks.
    `at_gathers`: rows bounded by memory check their indices as vectors gather them, not all at the top.
    `by_blocks`: innermost loops check the indices of many iterations first. `by_nests`: so do nests, where each index
    depends on one of their loops.
    `shared_from`: with this many elements to check at the top, a call is for the version `LARGE`, in which it is 0, and
    workers share the check.
    `plainly`: marks all that is not proved at a glance, for a function that is to find the fault of a call.

    For functions in normal form.
    """

    at_entry: bool = False
    at_loops: bool = False
    at_gathers: bool = False
    by_blocks: bool = False
    by_nests: bool = False
    shared_from: int = NEVER
    plainly: bool = False

    def on(self, facts: Facts) -> Rewritten:
        func = facts.func
        stmts = func.body.stmts
        if len(stmts) == 1 and isinstance(stmts[0], AttrStmt) and stmts[0].key is AttrKey.UNCHECKED:
            return Rewritten(func.replaced(body=stmts[0].body))
        # Callees are checked as well.
        if is_plainly_inside(func) and not (self.at_entry and calls_in(func.body)):
            return Rewritten(func, facts=facts)
        from tirlite.rewrite.checks.marks import with_checks, with_marks

        if self.plainly:
            return Rewritten(with_marks(facts))
        return with_checks(
            facts,
            at_entry=self.at_entry,
            at_loops=self.at_loops,
            at_gathers=self.at_gathers,
            by_blocks=self.by_blocks,
            by_nests=self.by_nests,
            shared_from=self.shared_from,
        )


def is_plainly_inside(func: PrimFunc) -> bool:
    """Whether each index is a constant below a constant, or a counter up to its extent, seen at a glance.

    False also if there are views or unchecked blocks, or an allocation is read that nothing is seen to initialize.
    """
    ends: dict[Var, tuple[Expr, ...]] = {}
    loaded: set[Buffer] = set()
    stored: set[Buffer | Var] = {*func.params}
    stack: list[Node] = [func.body]
    while stack:
        node = stack.pop()
        if isinstance(node, (Load, Store)):
            if not _are_inside(node, ends):
                return False
            if isinstance(node, Load):
                loaded.add(node.buffer)
                continue
            found = _loaded_by(node.value, ends)
            if found is None:
                return False
            loaded.update(found)
            # A store whose value reads the buffer does not initialize it.
            if node.buffer not in found:
                stored.add(node.buffer)
            continue
        stack += [each for each in node.children() if type(each) not in _ATOMS]
        if isinstance(node, For):
            if node.step > 0 and isinstance(node.start, IntImm) and node.start.value >= 0:
                ends[node.var] = (node.stop,)
        elif (isinstance(node, View) and not node.fresh) or _says_unchecked(node):
            return False
    return loaded <= stored


def _loaded_by(value: Expr, ends: dict[Var, tuple[Expr, ...]]) -> Collection[Buffer] | None:
    """The buffers that a value loads from; None if an index is not seen to be in bounds."""
    found: list[Buffer] = []
    stack: list[Node] = [value]
    while stack:
        node = stack.pop()
        kind = type(node)
        if kind in _ATOMS:
            continue
        if isinstance(node, Load):
            if not _are_inside(node, ends):
                return None
            found.append(node.buffer)
        elif isinstance(node, Binary):
            stack += (node.a, node.b)
        else:
            stack += node.children()
    return found if len(found) < _FEW else set(found)


def _are_inside(access: Load | Store, ends: dict[Var, tuple[Expr, ...]]) -> bool:
    for index, extent in zip(access.indices, access.buffer.shape, strict=True):
        if not _is_inside(index, extent, ends):
            return False
    return True


def _says_unchecked(node: Node) -> bool:
    return isinstance(node, AttrStmt) and node.key is AttrKey.UNCHECKED


def _is_inside(index: Expr, extent: Expr, ends: dict[Var, tuple[Expr, ...]]) -> bool:
    if type(index) is IntImm:
        if type(extent) is IntImm:
            return 0 <= index.value < extent.value
        return type(extent) is Var and extent.dim is not None and 0 <= index.value < extent.dim.min
    for stop in ends.get(index, ()) if type(index) is Var else ():
        if stop is extent or (type(stop) is IntImm and type(extent) is IntImm and stop.value <= extent.value):
            return True
    return False


class ParallelRace(IterationConflict):
    """Two iterations of a parallel or vectorized loop touch one element, whatever the arguments are, and one writes it.

    Example: `total[0] += x[i]` in `for i in tl.parallel(n):`.
    Fix: Where iterations combine values, declare it by `tl.reduce`. Else make the loop serial with `range`, or let each
    iteration write an element of its own.
    """

    raises = KernelError
    title = IterationConflict.title + "{sizes}"
    help = "{advice}"

    sizes: str = ""
    advice: str = IterationConflict.help


class ParallelUpdate(Message):
    """Iterations of a parallel loop change one element where a condition on memory holds, and read it, too.

    Example: `if x[i] > 0: total[0] += x[i]` in `for i in tl.parallel(n):`, which loses what two iterations add at once.
    Fix: Where iterations combine values, declare it by `tl.reduce`. Else make the loop serial with `range`, or let each
    iteration write an element of its own.
    """

    title = "`{element}` is changed by iterations of `{loop}` where a condition holds, and read by others meanwhile"
    label = "changed here by any of them"
    help = "{advice}"


class CheckRaces(FactsPass):
    """Refuses a function with a parallel or vectorized loop in which two iterations are seen to conflict.

    Raises KernelError with both places, and two iterations that meet; two writes of the same value conflict too. Also
    if a condition on memory decides whether iterations update one element, or write one that all read: a loop for which
    only one iteration does so would be pointless. What cannot be decided passes: the interpreter finds it.
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        if facts.doubtful_loops:
            from tirlite.analysis.trials.races import find_race  # and what tries programs at points

            race = find_race(facts)
            if race is not None:
                raise _message(race, _advice(race.loop, facts, race)).error()
            for loop in facts.doubtful_loops:
                for store in _changes_by_memory(loop, facts):
                    element = str(Load(store.buffer, store.indices)).removesuffix("[()]")
                    raise ParallelUpdate(element, loop.var.name, _advice(loop, facts), span=store.span).error()
        return facts.func


def _advice(loop: For, facts: Facts, race: Race | None = None) -> str:
    from tirlite.analysis.loops.regrouping import updates_in

    updates = updates_in(loop, facts)
    if isinstance(updates, tuple) and updates:
        return _DECLARE.format(loop.kind.value)
    if race is not None and race.second.is_write and race.first.buffer in allocated_in(facts.func.body):
        name = race.first.buffer.name  # a temporary that each iteration fills anew
        return f"allocate `{name}` in the loop, so that each iteration has one, or make the loop serial with `range`"
    return IterationConflict.help


def _changes_by_memory(loop: For, facts: Facts) -> Iterator[Store]:
    """The stores to an element common to all iterations that a condition on memory guards, and that iterations read."""
    from tirlite.analysis.loops.reductions import update_of

    inside = defined_in(loop)
    for allocation, touches in facts.touches_in.get(loop, {}).items():
        for touch in touches:
            store = touch.node
            if not isinstance(store, Store) or store.buffer is not allocation.buffer:
                continue
            nodes = [*walk(*store.indices)]
            if any(node in inside or isinstance(node, Load) for node in nodes) or not _is_by_memory(touch, loop, facts):
                continue
            if update_of(store) is not None or any(_is_read_by_all(each, store, loop) for each in touches):
                yield store


def _is_read_by_all(touch: Touch, store: Store, loop: For) -> bool:
    from tirlite.rewrite.vectors.lanes import is_same_element

    is_first = touch.region.composite is loop
    return is_first and isinstance(touch.node, Load) and is_same_element(store, touch)


def _is_by_memory(touch: Touch, loop: For, facts: Facts) -> bool:
    """Whether conditions on memory alone decide which iterations of a loop make an access."""
    region: Region | None = touch.region
    is_by_memory = False
    while region is not None and region.composite is not loop:
        composite = region.composite
        if isinstance(composite, IfThenElse):
            parts = [composite.condition] if region.then is not None else [*conjuncts(composite.condition)]
            if not all(_is_of_memory(part, touch, facts) for part in parts):
                return False
            is_by_memory = True
        elif isinstance(composite, While):
            return False
        elif isinstance(composite, For):
            bounds = (composite.start, composite.stop)
            if mentions(bounds, loop.var):
                return False
        region = region.parent
    return is_by_memory


def _is_of_memory(condition: Expr, touch: Touch, facts: Facts) -> bool:
    """Whether a condition is on a parameter, or on the element itself."""
    loads = loads_in(condition)
    return any(load.buffer is touch.buffer or facts.definitions.root(load.buffer) in facts.params for load in loads)


def _message(race: Race, advice: str) -> ParallelRace:
    first, second = race.first, race.second
    at = ", ".join(f"{name} = {value}" for name, value in race.sizes)
    return ParallelRace(
        first.element,
        race.loop.var.name,
        "written",
        first.iteration,
        "written" if second.is_write else "read",
        second.iteration,
        f"; for example at {at}" if at else "",
        advice,
        span=first.span,
        related=None if second.span == first.span else second.span,
    )

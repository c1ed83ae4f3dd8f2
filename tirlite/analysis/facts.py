"""Facts holds the results of all analyses of a function: each is computed once, when it is first needed.

A function never changes, so facts stay valid. A pipeline passes the facts of a function from one pass to the next as
long as the function stays the same object.
"""

from __future__ import annotations

from collections.abc import Callable, Iterator, Mapping
from functools import wraps
from typing import TYPE_CHECKING, Concatenate, ParamSpec, TypeAlias, TypeVar, cast

from tirlite.analysis.loops.patterns import has_elements_apart, has_much_to_do, is_written_out
from tirlite.diag import boundary
from tirlite.ir import (
    Allocate,
    AttrKey,
    AttrStmt,
    Buffer,
    For,
    ForKind,
    Function,
    Node,
    PrimFunc,
    Store,
    TypeCode,
    View,
    statements_of,
)
from tirlite.ir.demand import demand_prim_func
from tirlite.ir.walk import ATOMS, accesses_in, aliased_in, composites, mentions
from tirlite.record import cached_method, cached_property

if TYPE_CHECKING:
    from tirlite.analysis.access import Allocation, LinearSequence, Touch
    from tirlite.analysis.addresses import Addresses
    from tirlite.analysis.in_bounds.bounds import Bounds
    from tirlite.analysis.integers.definitions import Definitions, Loop
    from tirlite.analysis.integers.extents import Extents
    from tirlite.analysis.integers.index_space import IndexSpace
    from tirlite.analysis.lifetimes import Lifetime
    from tirlite.analysis.loops.dependence import Dependence

P = ParamSpec("P")
R = TypeVar("R")
Sign: TypeAlias = type[Node] | ForKind | AttrKey | TypeCode

# The loops that the language says may run in any order, and at once.
INDEPENDENT = (ForKind.PARALLEL, ForKind.VECTORIZED)


class Facts:
    """What is known of `func`, a function in normal form (see `Normalize`). Nothing in it changes."""

    def __init__(self, func: PrimFunc) -> None:
        self.func = func
        self._others: dict[Function, Facts] = {}
        self._first_touched: dict[Loop, dict[Allocation, list[Touch]]] | None = None

    @cached_property
    def signs(self) -> frozenset[Sign]:
        """The signs by which passes see that there is nothing for them: the classes of its statements and of nodes in
        loops, the kinds of its loops, the keys of attributes, and the families of the types that loops store.
        """
        found: set[Sign] = set()
        blocks = [self.func.body]
        while blocks:
            block = blocks.pop()
            found |= block.kinds
            for stmt in composites(block):
                if isinstance(stmt, For):
                    inside: list[Node] = [stmt]
                    while inside:
                        node = inside.pop()
                        kind = type(node)
                        found.add(kind)
                        if kind not in ATOMS:
                            if kind in _TELLING:
                                found.update(_signs_of(node))
                            inside += node.children()
                else:
                    found.update(_signs_of(stmt))
                    blocks += stmt.bodies
        return frozenset(found)

    @cached_property
    def sequence(self) -> LinearSequence:
        """Its accesses in program order, and the bodies around them."""
        from tirlite.analysis.access import linear_sequence

        return linear_sequence(self.func)

    @cached_property
    def params(self) -> dict[Buffer, Allocation]:
        """Its buffer parameters with their accesses."""
        return {each.buffer: each for each in self.sequence.params}

    @cached_property
    def alone(self) -> frozenset[Buffer]:
        """Its arrays and allocations that have only one name: no view or other parameter touches these."""
        given = (param for param in self.func.params if isinstance(param, Buffer))
        allocated = (stmt.buffer for stmt in statements_of(self.func.body, Allocate))
        return frozenset((*given, *allocated)) - aliased_in(self.func.body)

    @cached_property
    def lifetimes(self) -> list[Lifetime]:
        """The lifetime of each allocation of `sequence`, in order."""
        from tirlite.analysis.lifetimes import lifetimes_of

        return lifetimes_of(self.sequence)

    @cached_property
    def definitions(self) -> Definitions:
        """The definitions of its variables and views."""
        from tirlite.analysis.integers.definitions import Definitions

        return Definitions(self.func)

    @cached_property
    def extents(self) -> Extents:
        """The extents that are known on entry, as sizes."""
        from tirlite.analysis.integers.extents import Extents

        return Extents(self.func)

    @cached_property
    def space(self) -> IndexSpace:
        """The values of its integer expressions, as sizes over counters and other unknowns."""
        from tirlite.analysis.integers.index_space import IndexSpace

        return IndexSpace(self.func, self.extents, self.definitions)

    @cached_property
    def bounds(self) -> Bounds:
        """Which of its indices are in bounds."""
        from tirlite.analysis.in_bounds.bounds import Bounds

        return Bounds(self.space)

    @cached_property
    def addresses(self) -> Addresses:
        """The place of each access in its allocation."""
        from tirlite.analysis.addresses import Addresses

        return Addresses(self.space)

    @cached_property
    def dependences(self) -> tuple[Dependence, ...]:
        """Its dependences: pairs of accesses that may touch one byte, in order, of which one writes."""
        from tirlite.analysis.loops.dependence import dependences_of

        return tuple(dependences_of(self.sequence, self.addresses))

    @cached_property
    def touches_in(self) -> dict[Loop, dict[Allocation, list[Touch]]]:
        """For each loop the accesses inside of it, by buffer, of those that are allocated outside."""
        from tirlite.analysis.access import touches_in

        return touches_in(self.sequence)

    @cached_property
    def written_out_along(self) -> Mapping[Buffer, set[For]]:
        """For each buffer the loops along it that LLVM unrolls, except for innermost ones with much work."""
        found: dict[Buffer, set[For]] = {}
        for loop in filter(is_written_out, statements_of(self.func.body, For)):
            if next(statements_of(loop.body, For), None) or not has_much_to_do(loop):
                for node in accesses_in(loop.body):
                    if mentions(node, loop.var):
                        found.setdefault(node.buffer, set()).add(loop)
        return found

    def touched_in(self, loop: Loop) -> Mapping[Allocation, list[Touch]]:
        """`touches_in` of one loop. The first such question walks only that loop: a step asks for no other."""
        if self._first_touched is None and "sequence" not in vars(self) and isinstance(loop, For):
            from tirlite.analysis.access import touches_within

            self._first_touched = touches_within(self.func, loop)
        if self._first_touched is not None and loop in self._first_touched:
            return self._first_touched[loop]
        return self.touches_in.get(loop, {})

    def carried_by(self, loop: Loop, *, by_statement: bool = False) -> Iterator[Dependence]:
        """The dependences that a loop carries in one execution of it: none where its iterations may run in any order.

        Of accesses that are alike, those of one, or of one for each statement. Buffers that are allocated in the loop
        are each iteration's own. The loop is not bound to threads.
        """
        from tirlite.analysis.loops.dependence import carried_by

        return carried_by(loop, self.touched_in(loop), self.addresses, by_statement=by_statement)

    @cached_method
    def is_independent(self, loop: Loop) -> bool:
        """Whether no two iterations of a loop may touch a byte that one of them writes: they may run at once.

        False, too, where that takes too long, and for loops that are bound to threads.
        """
        if isinstance(loop, For) and loop.kind is ForKind.THREAD:
            return False
        if isinstance(loop, For) and has_elements_apart(loop, self.alone):
            return True
        from tirlite.analysis.loops.independence import is_independent

        return is_independent(loop, self.touched_in(loop), self.addresses)

    def shared_in(self, loop: Loop) -> dict[Allocation, list[Touch]]:
        """The buffers in which one iteration of a loop may write what another one accesses, with their accesses."""
        from tirlite.analysis.loops.independence import is_independent

        inside = self.touches_in.get(loop, {}).items()
        return {each: touches for each, touches in inside if not is_independent(loop, {each: touches}, self.addresses)}

    @cached_property
    def doubtful_loops(self) -> tuple[For, ...]:
        """The loops that the author declares to have independent iterations, and that are not proved to."""
        declared = [loop for loop in statements_of(self.func.body, For) if loop.kind in INDEPENDENT]
        # Planned storage of a vectorized loop that has stayed a loop is used by its iterations in turn.
        return tuple(
            loop
            for loop in declared
            if not self.is_independent(loop)
            and (loop.kind is ForKind.PARALLEL or next(statements_of(loop.body, View), None) is None)
        )

    def replaces_nothing(self, loop: Loop) -> bool:
        """Whether a loop writes what is allocated outside of it, and none of that could lie in place of what it reads.

        A temporary takes the place of another one alone, which its loop reads and does not write.
        """
        from tirlite.analysis.loops.dependence import writes

        touches = self.touches_in.get(loop, {})
        written = {each for each, found in touches.items() if any(map(writes, found))}
        is_free = all(each.buffer in self.params for each in written)
        return bool(written) and (is_free or all(each in written or each.buffer in self.params for each in touches))

    def writes_tiles(self, loop: Loop) -> bool:
        """Whether a loop writes only parameters, and buffers that outer loops allocate in each iteration."""
        from tirlite.analysis.loops.dependence import writes

        touches = self.touches_in.get(loop, {})
        written = [each for each, found in touches.items() if any(map(writes, found))]
        return all(each.buffer in self.params or each.home.composite is not None for each in written)

    def of(self, func: Function) -> Facts:
        """The facts of a function that this one calls, also made once."""
        if func is self.func:
            return self
        if func not in self._others:
            assert isinstance(func, PrimFunc)
            self._others[func] = Facts(func)
        return self._others[func]


# The classes of nodes that tell more than what they are.
_TELLING: frozenset[type[Node]] = frozenset((For, Store, AttrStmt))


def _signs_of(node: Node) -> tuple[Sign, ...]:
    kind = type(node)
    if kind is For:
        return kind, node.kind  # type: ignore[attr-defined]
    if kind is Store:
        return kind, node.buffer.dtype.code  # type: ignore[attr-defined]
    return (kind, node.key) if kind is AttrStmt else (kind,)  # type: ignore[attr-defined]


def of_facts(analysis: Callable[Concatenate[Facts, P], R]) -> Callable[Concatenate[PrimFunc | Facts, P], R]:
    """A decorator that makes an analysis of facts a public function, which receives these or a function."""

    @wraps(analysis)
    def bounded(func: PrimFunc | Facts, *args: P.args, **options: P.kwargs) -> R:
        with boundary:
            if isinstance(func, Facts):
                return analysis(func, *args, **options)
            demand_prim_func(func, f"{analysis.__name__}()")
            return analysis(Facts(func), *args, **options)

    return cast(Callable[Concatenate[PrimFunc | Facts, P], R], bounded)


@of_facts
def dependences(facts: Facts) -> tuple[Dependence, ...]:
    """All dependences of a function in normal form (see `Normalize`): pairs of accesses whose order may matter.

    There is one for each kind of order in which two accesses may meet at a byte that one of them writes: `flow` reads
    what was written, `anti` writes what was read, `output` writes again. Each says for each loop around both, the
    outermost first, whether the second access comes in a later iteration (`<`), in the same (`=`), in an earlier one
    (`>`) or in any of several (`*`), and by how many steps, where that is always the same. The first one that is not
    `=` is `<`: loops are taken to run in order, whatever their kind. What is not listed never happens; what is may.

    >>> import tirlite as tl
    >>> n = tl.dim("n")
    >>> @tl.kernel
    ... def running(x: tl.f32[n], y: tl.f32[n]):
    ...     for i in range(1, n):
    ...         y[i] = y[i - 1] + x[i]
    >>> for each in tl.analysis.dependences(running.ir):
    ...     print(each)
    flow: y[i] -> y[i - 1], (<1)
    """
    return facts.dependences

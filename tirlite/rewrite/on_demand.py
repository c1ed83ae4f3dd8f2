"""The passes that few functions need: what each does, and the sign by which a function that needs it is recognized.

Their implementations are imported only for such functions. They are listed in the order in which pipelines run them.
"""

from __future__ import annotations

from typing import ClassVar

from tirlite.analysis.facts import Facts, Sign
from tirlite.analysis.loops.patterns import is_done_at_once, may_be_window, only_branch, takes_extremes, widens_integers
from tirlite.ir.dtype import TypeCode
from tirlite.ir.expr import Cast, FloorDiv, FloorMod, TruncDiv
from tirlite.ir.func import PrimFunc
from tirlite.ir.stmt import Allocate, AttrKey, Evaluate, For, ForKind
from tirlite.ir.walk import statements_of
from tirlite.rewrite.pipeline import FactsPass, Rewritten
from tirlite.target.processor import HOST

_INTEGERS = frozenset((TypeCode.INT, TypeCode.UINT, TypeCode.BOOL))


class OnDemand(FactsPass):
    """A pass that only changes functions with one of the signs that it `needs`."""

    needs: ClassVar[frozenset[Sign]]

    def on(self, facts: Facts) -> Rewritten:
        if self.needs.isdisjoint(facts.signs):
            return Rewritten(facts.func, facts=facts)
        return self.needed(facts)

    def needed(self, facts: Facts) -> Rewritten:
        """What the pass makes of a function with such a sign."""
        return Rewritten(self.rewritten(facts))


class NameValues(FactsPass):
    """Gives each value of a local scalar a name of its own, where one block sets it several times, one after the other.

    `v = x[i]; v = v * 2; y[i] = max(v, 0)` computes what `v = x[i]; v_1 = v * 2; y[i] = max(v_1, 0)` does, in which
    other passes see what depends on what. For functions in normal form (see `Normalize`).
    """

    def rewritten(self, facts: Facts) -> PrimFunc:
        if all(stmt.buffer.shape for stmt in statements_of(facts.func.body, Allocate)):
            return facts.func
        from tirlite.rewrite.named_values import rewritten

        return rewritten(facts.func)


class TightenLoops(FactsPass):
    """Narrows a loop to the iterations that meet a condition around its whole body.

    `for j in range(n): if j >= w[i]: ...` becomes `for j in range(max(0, w[i]), n): ...`, so the body has no branch,
    can be vectorized, and the other iterations never run. The condition must compare the counter, or its sum with other
    terms, with something loop-invariant, without overflow. A condition on outer counters moves in front of the loop,
    where it may narrow those loops. If an innermost loop does something else in the other iterations, these become a
    loop of their own.

    A loop over a window that moves with an outer counter counts from there: `for j in range(i - 1, i + 2)` over x[j]
    becomes `for j in range(-1, 2)` over x[i + j], with a condition at ends that are cut off. If a scalar parameter
    gives the width, the nest is there twice: for numbers within limits, and as it was.

    Loads are moved if they are proved in bounds and the function does not write their parameter; never with `called`,
    for functions that others call, where two parameters may be one array.

    For functions in normal form (see `Normalize`), before reductions are found and accesses checked.
    """

    called: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        loops = [*statements_of(facts.func.body, For)]
        if any(map(may_be_window, loops)):
            from tirlite.rewrite.loops import windows

            counted = windows.rewritten(facts)
            facts = facts if counted is facts.func else Facts(counted)
        if not any(map(only_branch, loops)):
            return facts.func
        from tirlite.rewrite.loops.tightened import rewritten

        return rewritten(facts, called=self.called)


class FindReductions(OnDemand):
    """Marks serial loops as reductions, as over `tl.reduce`, if results stay the same or `reassociate` is granted.

    Iterations must combine values as in a reduction (see `CheckReductions`), and contain no loops but reductions: of
    `y[i] += a[i, p] * b[p]` the one over `p` is marked, not those around it. Without the permission, `integers` marks
    loops that combine integers, which give the same result in any order, and are in no other loop, so that workers can
    share them. With `shared_from`, innermost loops of such functions stay: calls with that many elements run the
    version `LARGE`. For functions in normal form (see `Normalize`), before reductions are split.
    """

    needs: ClassVar = frozenset((AttrKey.ALLOW, *_INTEGERS))

    integers: bool = False
    shared_from: int = 0

    def needed(self, facts: Facts) -> Rewritten:
        from tirlite.rewrite.reductions import found

        return found(facts, integers=self.integers, shared_from=self.shared_from)


class UnmarkLoops(OnDemand):
    """Turns `tl.vectorized` loops into loops over `range`, if their iterations are proved independent.

    Loops with a constant number of up to 64 iterations and only stores, lets and branches stay: these become vectors.
    For functions in normal form (see `Normalize`).
    """

    needs: ClassVar = frozenset((ForKind.VECTORIZED,))

    def rewritten(self, facts: Facts) -> PrimFunc:
        marked = (loop for loop in statements_of(facts.func.body, For) if loop.kind is ForKind.VECTORIZED)
        made = {loop for loop in marked if not is_done_at_once(loop) and facts.is_independent(loop)}
        if not made:
            return facts.func
        from tirlite.ir import rewrite

        return rewrite(facts.func, {For: lambda loop: loop.replaced(kind=ForKind.SERIAL) if loop in made else loop})


class InjectVirtualThreads(OnDemand):
    """Interleaves virtual threads: each statement runs for all of them before the next one.

    Allocations get a first axis with a copy for each virtual thread. Loops and branches that are the same for all move
    outside; barriers are passed once. With `windows`, a copied buffer keeps its name and axes, as in `SplitThreads`.
    The function is in normal form (see `Normalize`).

    Raises KernelError for a barrier that not all virtual threads reach alike.
    """

    needs: ClassVar = frozenset((ForKind.THREAD,))

    windows: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.threads import without_virtual

        return without_virtual(facts, windows=self.windows)


class SplitThreads(OnDemand):
    """Makes loops over blocks parallel, and loops over threads serial, one for each stretch between two barriers.

    Loops and branches around a barrier move outside of the loops over threads; they must be the same in all threads.
    Shared memory is declared once, and what a thread carries past a barrier gets a copy per thread. With `windows`, a
    copied buffer keeps its name and axes, as a view of the thread's part: for code that names elements in errors. The
    function is in normal form (see `Normalize`), with its virtual threads injected (see `InjectVirtualThreads`).

    Raises KernelError for a barrier that not all threads reach alike, and for thread-bound loops in a wrong order.
    """

    needs: ClassVar = frozenset((ForKind.THREAD, Evaluate))

    windows: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.threads import without_threads

        return without_threads(facts, windows=self.windows)


class CheckReductions(OnDemand):
    """Refuses a function in normal form with a `tl.reduce` loop that may not be regrouped, naming the accesses."""

    needs: ClassVar = frozenset((ForKind.REDUCE,))

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.reductions import checked

        return checked(facts)


class ComputeOnce(OnDemand):
    """Computes an elementary function once that a reduction and the loop that fills a row of a parameter both need.

    In a softmax, for example, the sum and the results need the same exponentials. A loop of its own stores them before
    the reduction, in the places of the results: the reduction loads them there, and the last loop computes the results
    from them. All results stay the same to the last bit.

    With `called`, for functions that others call, parameters may be read only in the places of the results: so two
    parameters may still be one array.

    A quotient by an extent or a number, such as `j * w // m` where an image is resized, is the same in each row: a loop
    before all rows stores those of one, except in functions that others call. Vectors have no division of 64 bits.

    For functions in normal form (see `Normalize`).
    """

    needs: ClassVar = frozenset((ForKind.REDUCE, FloorDiv, TruncDiv))

    called: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.compute_once import rewritten

        return rewritten(facts, called=self.called)


class DivideLoops(OnDemand):
    """`for i in range(n * 64)` with `i // 64` and `i % 64` inside becomes a loop over rows, and one within a row.

    Then `x[i] * scale[i % 64]` can be vectorized, and what depends only on the row is loaded once. Short rows are
    unrolled if quotients are indices of loads: `y[j] = x[j // 2]` stores each element twice. The loop must be an
    innermost one with independent iterations, whose counter is divided by multiples of the smallest divisor, and that
    one must divide the number of iterations; a remainder of short rows is a loop of its own. The order stays; both
    loops are parallel if the loop was, and only stores.
    """

    needs: ClassVar = frozenset((FloorDiv, FloorMod))

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.loops.divide_loops import rewritten

        return rewritten(facts)


class NarrowIntegers(OnDemand):
    """Has loops compute in i16 or u16 if that suffices: vectors hold twice as many values.

    `abs(tl.i32(x[i]) - tl.i32(y[i]))` of bytes is less than 256. Sums are as wide as their number of terms requires,
    if loops around them have constant counts. A loop changes only if all its computations on data become narrow, since
    its widest type decides the number of lanes. No value changes, since none exceeds its type. Minima and maxima in i64
    that are stored as i32 are taken in i32.
    For functions in normal form (see `Normalize`), before loops are vectorized.
    """

    needs: ClassVar = frozenset((Cast,))

    def rewritten(self, facts: Facts) -> PrimFunc:
        func = facts.func
        if takes_extremes(func.body):
            from tirlite.rewrite import narrowed_extremes

            func = narrowed_extremes.rewritten(func)
        if not widens_integers(func.body):
            return func
        from tirlite.rewrite.narrowed import rewritten

        return rewritten(facts if func is facts.func else Facts(func))


class BlockReductions(OnDemand):
    """Splits `tl.reduce` loops into a parallel loop over blocks, and a loop over the results of these.

    That is done for loops of many iterations, inside of no parallel loop and at most one serial one, that update
    fixed elements, or elements of a small array (a histogram), of which each block has a copy; without `sparing`
    also of a row with a dim that inner loops update (a gradient). Inside of a loop, a reduction of a single block
    stays whole. The blocks depend only on the number of iterations, and so does the last bit of a sum. If a loop
    consists of an update by `tl.argmax` or `tl.argmin` with the iteration as its place, blocks find only the value;
    its place is looked up in the block that has it. With `serial`, blocks run in order in the calling thread. For
    functions in normal form (see `Normalize`) that pass `CheckReductions`; the result is in it, too.
    """

    needs: ClassVar = frozenset((ForKind.REDUCE,))

    serial: bool = False
    sparing: bool = False

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.reductions import in_order_of_blocks

        return in_order_of_blocks(facts, serial=self.serial, sparing=self.sparing)


class SplitReductions(OnDemand):
    """Turns `tl.reduce` loops into serial ones, and vectorizes those over adjacent elements.

    A loop that combines values into fixed elements becomes a loop over vectors of partial results, which are combined
    pairwise at its end; the last few iterations are a vector under a mask, or run in order if they have no such form. A
    nest of such loops combines them once, at its own end. If a loop consists of an update by `tl.argmax` or `tl.argmin`
    with the iteration as its place, the value is found first, and then its first place. Values that are computed from
    integers of other widths than a word are left to LLVM: flags, distances, counts of bits. Sums of differences of
    bytes, serial ones too, are dot products of these with ones, or else use whole vectors first. Loops with other
    statements than stores and lets, with steps other than 1, or without a vector form run in order as they are written.
    For functions in normal form (see `Normalize`) that pass `CheckReductions`; the result is in it, too.
    """

    needs: ClassVar = frozenset((ForKind.REDUCE, Cast))

    target: str = HOST

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.reductions import split

        return split(facts, self.target)


class UsePermissions(OnDemand):
    """Turns sums of products into `tl.fma` under `contract`, and functions into fast forms under `approximate`.

    Under `approximate`, quotients by loop-invariant numbers in an innermost loop become products with a reciprocal. A
    product that has a name of its own stays one. Halves stay as they are: they are computed in f32 anyway. Vectors of
    f32 are multiplied by approximate reciprocals in an innermost loop that does little but divide.
    """

    needs: ClassVar = frozenset((AttrKey.ALLOW,))

    target: str = HOST

    def rewritten(self, facts: Facts) -> PrimFunc:
        from tirlite.rewrite.use_permissions import rewritten

        return rewritten(facts, self.target)

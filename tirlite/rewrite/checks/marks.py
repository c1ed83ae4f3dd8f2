"""Puts the checks of accesses into a function: marks on indices, and an assert of the conditions at entry."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator, Mapping, Sequence
from functools import reduce
from typing import TYPE_CHECKING, Any, TypeVar

from tirlite.analysis.entry_space import ORDINARY, Scan
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.safety import (
    Demand,
    Judged,
    Safety,
    Verdict,
    apart,
    find_outside,
    find_unwritten,
    plain_safety_of,
    safety_of,
)
from tirlite.diag import Message
from tirlite.ir.checked import ELSE_IN_ORDER, bare, checked, is_checked
from tirlite.ir.dtype import i64
from tirlite.ir.expr import GT, LE, And, Buffer, BufferRef, Call, Cast, Expr, Load, Max, Min, Or, Var, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import Function, KernelCall, calls_in
from tirlite.ir.node import Node
from tirlite.ir.op import Op
from tirlite.ir.rewrite import Renamer, Rule, Substitution, rewrite
from tirlite.ir.stmt import (
    Allocate,
    Assert,
    AttrKey,
    AttrStmt,
    For,
    ForKind,
    IfThenElse,
    Let,
    SeqStmt,
    Stmt,
    Store,
    View,
    counting,
    nested,
)
from tirlite.ir.walk import statements_of
from tirlite.rewrite.forms import NEVER, FormLimits
from tirlite.rewrite.pipeline import Rewritten
from tirlite.sizes import Size
from tirlite.sizes.poly import of_terms, terms_of

if TYPE_CHECKING:
    from tirlite.rewrite.checks.lifted_checks import Lifted

N = TypeVar("N", bound=Node)


class AlwaysOutside(Message):
    """An access lies outside of its buffer in every call of the kernel.

    Example: `y[i] = 0` in `for i in range(n + 1):`, where `y` has `n` elements.
    Fix: Shorten the loop, or bound the index: `y[min(i, n - 1)]`.
    """

    code = "always-out-of-bounds"
    title = "index {index} of axis {axis} of `{buffer}` is out of bounds in every call"
    label = "{example}"
    help = "an index of this axis is at least 0 and less than {extent}"


class NeverWritten(Message):
    """What a kernel stores for its caller depends on a temporary that nothing writes, or that is only updated.

    Example: `t = tl.alloc(tl.f32[n])`, and then `y[i] = t[i]` with no store to `t` but `t[i] += x[i]`.
    Fix: Write to the temporary before it is read, or take it out: fresh memory has no value, and is not zero.
    """

    title = "`{buffer}` is read, and nothing gives it a first value"
    label = "read here"
    help = "store into `{buffer}` first, in a loop: fresh memory has no value"


def with_marks(facts: Facts) -> PrimFunc:
    """The function with marks on all that is not proved at a glance."""
    return _marked(facts.func, plain_safety_of(facts).judged)


def with_checks(
    facts: Facts,
    *,
    at_entry: bool,
    at_loops: bool,
    at_gathers: bool,
    by_blocks: bool,
    by_nests: bool,
    shared_from: int,
) -> Rewritten:
    """The function with marks on what is checked in place, and an assert of what is decided at entry."""
    if not at_entry:
        return Rewritten(_marked(facts.func, safety_of(facts, at_loops=at_loops).judged))
    func = facts.func
    if calls_in(func.body):
        from tirlite.rewrite.checks.lifted_checks import lifted_safety
        from tirlite.rewrite.fit_callees import fit_callees

        func = fit_callees(func)
        facts = facts if func is facts.func else Facts(func)
        lifted = lifted_safety(facts, at_loops=at_loops)
        safety = lifted.outermost
        _refuse_certain_faults(facts, safety)
        func = _with_callees(_marked(func, safety.judged), lifted)
    else:
        safety = safety_of(facts, at_entry=True, at_loops=at_loops)
        if at_gathers and safety.scans:
            from tirlite.rewrite.checks.checked_gathers import checked_at_gathers

            safety = checked_at_gathers(facts, safety)
        _refuse_certain_faults(facts, safety)
        func = _marked(func, safety.judged)
    if (by_blocks or by_nests) and any(each.verdict is Verdict.CHECKED for each in safety.judged):
        from tirlite.rewrite.checks.checked_blocks import in_blocks

        func = in_blocks(func, rows=by_blocks, nests=by_nests)
    if not safety.demands and not safety.scalars:
        return Rewritten(func)
    condition = reduce(And, [*_ordinary(safety.scalars), *(condition_of(each, safety) for each in safety.demands)])
    looks = [stmt for each in safety.scans for stmt in _look(each, is_shared=shared_from == 0)]
    stmts = (*looks, Assert(condition, ELSE_IN_ORDER), *func.body.stmts)
    size = min((each.buffer.dtype.bytes for each in safety.scans), default=0) if shared_from < NEVER else 0
    func = func.replaced(body=SeqStmt(stmts, span=func.body.span))
    return Rewritten(func, limits=FormLimits(large_from=size * shared_from))


def _with_callees(func: PrimFunc, lifted: Lifted) -> PrimFunc:
    """The function with checks in all its callees, which are then marked as done."""
    checked: dict[Function, PrimFunc] = {}

    def replace(call: KernelCall) -> KernelCall:
        return call.replaced(callee=checked[call.callee])

    for callee, safety in lifted.callees.items():
        marked = rewrite(_marked(lifted.facts[callee].func, safety.judged), {KernelCall: replace})
        checked[callee] = marked.replaced(body=SeqStmt((AttrStmt(AttrKey.UNCHECKED, marked.body),)))
    return rewrite(func, {KernelCall: replace})


def _look(scan: Scan, *, is_shared: bool) -> Iterator[Stmt]:
    """Finds the least and the greatest element of a parameter, as a reduction if workers share it."""
    buffer, dtype = scan.buffer, scan.buffer.dtype
    indices = tuple(Var(f"i{axis}", i64) for axis in range(len(buffer.shape)))
    updates: list[Stmt] = []
    for var, pick, start in ((scan.least, Min, dtype.max), (scan.greatest, Max, dtype.min)):
        cell = Buffer(var.name, dtype, (), scope="local")
        yield Allocate(cell)
        yield Store(cell, (), const(start, dtype))
        updates.append(Store(cell, (), pick(Load(cell, ()), Load(buffer, indices))))
    kind = ForKind.REDUCE if is_shared else ForKind.SERIAL
    yield from nested([each.replaced(kind=kind) for each in counting(indices, buffer.shape)], *updates).stmts
    for var, update in zip((scan.least, scan.greatest), updates, strict=True):
        assert isinstance(update, Store)
        value = Load(update.buffer, ())
        yield Let(var, value if dtype == i64 else Cast(i64, value))


def _refuse_certain_faults(facts: Facts, safety: Safety) -> None:
    """Raises KernelError for an access that is out of bounds in every call, or that reads what nothing writes."""
    doubtful = (each.access for each in safety.judged if each.verdict is not Verdict.UNCHECKED)
    outside = find_outside(facts, dict.fromkeys(doubtful))
    if outside is not None:
        node = outside.access.node
        assert not isinstance(node, View)
        index, extent = str(node.indices[outside.axis]), str(node.buffer.shape[outside.axis])
        at = ", ".join(f"{name} = {value}" for name, value in outside.sizes)
        example = f"at {at} it reaches {outside.index}" if at else f"it reaches {outside.index}"
        span = outside.access.stmt.span
        raise AlwaysOutside(index, outside.axis, node.buffer.name, example, extent, span=span).error()
    unwritten = find_unwritten(facts)
    if unwritten is not None:
        store, buffer = unwritten
        raise NeverWritten(buffer.name, span=store.span).error()


def _ordinary(scalars: Iterable[Var]) -> Iterator[Expr]:
    for each in scalars:
        yield And(LE(const(-ORDINARY, i64), each), LE(each, const(ORDINARY, i64)))


def condition_of(demand: Demand, safety: Safety) -> Expr:
    """That a demand is met, or that its access is never reached."""
    sizes: list[Expr] = [LE(*_sides(size, safety)) for size in demand.sizes]
    unless: list[Expr] = [GT(*_sides(size, safety)) for size in demand.reached]
    return reduce(Or, unless, reduce(And, sizes))


def _sides(size: Size, safety: Safety) -> tuple[Expr, Expr]:
    """Two sums of which the second is at least the first exactly if `size` is not negative.

    A number that may have any value stands alone on its side, so that no sum overflows.
    """
    wide, rest = apart(size)
    if wide is not None:
        taken = size - rest == wide + 0
        return (safety.expr(-rest), safety.expr(wide + 0)) if taken else (safety.expr(wide + 0), safety.expr(rest))
    less = {product: -factor for product, factor in terms_of(size).items() if factor < 0}
    more = {product: factor for product, factor in terms_of(size).items() if factor > 0}
    return safety.expr(of_terms(less)), safety.expr(of_terms(more))


def _marked(func: PrimFunc, judged: Sequence[Judged]) -> PrimFunc:
    """`func` with marks on all that is checked in place."""
    checked = _axes(each for each in judged if each.verdict is Verdict.CHECKED)
    says_unchecked = any(stmt.key is AttrKey.UNCHECKED for stmt in statements_of(func.body, AttrStmt))
    hoisted = [each for each in judged if each.hoisted is not None]
    if not hoisted:
        return _Marks(checked).applied(func) if checked or says_unchecked else func
    conditions: dict[For, dict[str, Expr]] = {}
    for each in hoisted:
        assert each.hoisted is not None
        conditions.setdefault(each.hoisted.loop, {})[str(each.hoisted.condition)] = each.hoisted.condition
    either = {loop: reduce(And, found.values()) for loop, found in conditions.items()}
    return Renamer().rename(_Marks(checked, either, _axes([*judged])).applied(func))


def _axes(judged: Iterable[Judged]) -> dict[Node, set[int]]:
    axes: dict[Node, set[int]] = {}
    for each in judged:
        is_open = each.verdict is Verdict.CHECKED or each.hoisted is not None
        if is_open and not _is_marked(each):
            axes.setdefault(each.access.node, set()).add(each.axis)
    return axes


def _is_marked(judged: Judged) -> bool:
    node = judged.access.node
    return is_checked(node.byte_offset if isinstance(node, View) else node.indices[judged.axis])


class _Marks(Substitution):
    """Puts marks on axes of accesses, also in the extents of buffers.

    A loop with a condition gets a second copy for when that fails, with marks on `all_axes`.
    """

    def __init__(
        self,
        axes: Mapping[Node, set[int]],
        conditions: Mapping[For, Expr] | None = None,
        all_axes: Mapping[Node, set[int]] | None = None,
    ) -> None:
        super().__init__({}, {})
        self._axes = axes
        self._conditions = conditions or {}
        self._all_axes = all_axes or {}
        self._loops: list[For] = []  # the original of each loop being rewritten
        self._met: list[Node] = []  # the original of each access being rewritten

    def applied(self, root: N) -> N:
        note = self._met.append
        rules: dict[type[Node], Rule] = {**self.rules(), Call: _address}
        enter: dict[type[Node], Callable[[Any], None]] = {Load: note, Store: note, View: note}
        if self._conditions:
            rules[For] = self._loop
            enter[For] = self._loops.append
        result = rewrite(root, rules, enter=enter)
        assert isinstance(result, type(root))
        return result

    def _loop(self, clean: For) -> Stmt:
        loop = self._loops.pop()
        if loop not in self._conditions:
            return clean
        checked = _Marks(self._all_axes).applied(loop)
        return IfThenElse(self._conditions[loop], SeqStmt((clean,)), SeqStmt((checked,)), span=loop.span)

    def shape(self, buffer: Buffer) -> tuple[Expr, ...]:
        return tuple(map(self.applied, buffer.shape))

    def use(self, node: Load | Store | BufferRef | AttrStmt) -> Node:
        if isinstance(node, AttrStmt) and node.key is AttrKey.UNCHECKED:
            return node.body
        if not isinstance(node, Load | Store):
            return super().use(node)
        axes = self._axes.get(self._met.pop(), ())
        used = super().use(node)
        assert isinstance(used, Load | Store)
        if not axes:
            return used
        return used.replaced(indices=tuple(checked(i) if axis in axes else i for axis, i in enumerate(used.indices)))

    def view(self, node: View) -> Stmt:
        is_open = self._met.pop() in self._axes
        view = super().view(node)
        assert isinstance(view, View)
        return view.replaced(byte_offset=checked(view.byte_offset)) if is_open else view


def _address(node: Call) -> Call:
    """Removes marks from an address, which is no access and may be the end of a buffer."""
    element = node.args[0] if node.op is Op.ADDRESS_OF else None
    if not isinstance(element, Load):
        return node
    indices = tuple(map(bare, element.indices))
    return node if indices == element.indices else node.replaced(args=(element.replaced(indices=indices),))

"""Importers of operators with subgraphs: If, Loop and Scan."""

from __future__ import annotations

from collections.abc import Mapping, Sequence

import numpy as np

from tirlite.diag import GraphError
from tirlite.graph.builder.builder import LoopBody
from tirlite.graph.expr import Call, Constant, Expr, If, TupleGetItem, operands_first
from tirlite.graph.extents import is_equal
from tirlite.graph.loop import LoopFunction, LoopSteps
from tirlite.graph.onnx.computed import scalar
from tirlite.graph.onnx.contents import contents, operator
from tirlite.graph.onnx.importers.selection import backwards, first_rows
from tirlite.graph.onnx.node import OnnxNode, Subgraph, Unsupported
from tirlite.graph.onnx.translation import Importer, Translation
from tirlite.graph.op import Op, Reshape
from tirlite.graph.run_dims import greatest, run_dims
from tirlite.graph.types import TensorType, TupleType
from tirlite.ir import i64
from tirlite.sizes import Dim, Size, as_size, is_at_most, maximum, substitute
from tirlite.sizes.poly import Atom, atom_of

# The most steps of a loop that are unrolled, each as a copy of the body.
_MOST_STEPS = 1024
# Results of more steps than these get storage only when the run has counted the steps.
_MOST_ROOM = 1 << 16


def _if(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    for name in ("then_branch", "else_branch"):
        if (count := len(node.body(name).proto.output)) != len(node.outputs):
            raise Unsupported(f"its `{name}` gives {count} results, and it has {len(node.outputs)}")
    condition = t.fold(t.b.reshape(node.first, ()))
    if isinstance(condition, Constant):
        return t.inside(node.body("then_branch" if condition.value else "else_branch"), [], node, runs=True)
    before = t.mark()
    (then, of_then), (other, of_other) = (
        _apart(t, node, node.body(name), []) for name in ("then_branch", "else_branch")
    )
    known = {**of_then, **of_other}
    for a, b in zip(then, other, strict=True):
        if a.tensor.rank != b.tensor.rank:
            t.back_to(before)
            return t.inside(node.body(_demanded_branch(t, condition, node, a.tensor, b.tensor)), [], node)
    for a, b in zip(then, other, strict=True):
        _join_dims(t, node, a.tensor, b.tensor)
    if (renewal := t.b.renewal) is not None:
        then, other = ([renewal.value(each) for each in branch] for branch in (then, other))
    types, opened = zip(*(_either(t, condition, a, b, known) for a, b in zip(then, other, strict=True)), strict=True)
    ends = [(place, axis) for place, axes in enumerate(opened) for axis in axes]
    if len(then) == 1 and not ends:
        return [t.b.if_(condition, then[0], other[0], given=types[0])]
    both = [t.b.tuple(*each, *(t.b.length(each[place], axis) for place, axis in ends)) for each in (then, other)]
    given = TupleType((*types, *(TensorType((), i64) for _ in ends)))
    chosen = t.b.if_(condition, both[0], both[1], given=given)
    values = [t.b.item(chosen, number) for number in range(len(given.fields))]
    lengths = iter(values[len(then) :])
    return [t.b.found(value, axes, lengths) for value, axes in zip(values, opened, strict=False)]


def _apart(
    t: Translation, node: OnnxNode, body: Subgraph, operands: Sequence[Expr], states: Sequence[Expr] = ()
) -> tuple[list[Expr], dict[Atom, Size]]:
    """Imports a branch or a loop body. Demands made inside it are checked where it runs, and unknown outside.

    A dim that must have a minimum inside is replaced there by a run-time extent with that minimum, since storage is
    planned for it. These extents are returned too, with their dims. A value that a step makes of one of `states`, and
    whose extents are equal to its by demand, gets its extents.
    """
    before, *_ = marked = t.mark()
    values = t.inside(body, operands, node)
    if not t.b.demands.has_asked_since(before):
        return values, {}
    found: dict[Atom, Size] = {}
    limits = t.b.demands.limits_since(before)
    for dim, (demand, least) in limits.items():
        with t.b.at(demand.span, dim.name):
            size = t.b.extent(scalar(t, dim + 0), maximum(dim, least), dim.name, least=least)
        found |= dict.fromkeys(atom_of(size, Dim), dim + 0)
    if limits:
        t.back_to(marked)
        t.b.demands.put({dim: size + 0 for size, dim in zip(found, limits, strict=True)})
        values = t.inside(body, operands, node)
    if t.b.renewal is not None:
        values = [t.b.renewal.value(each) for each in values]
    alike = [(place, state) for place, state in enumerate(states) if _are_alike(t, values[place], state)]
    t.b.demands.back_to(before)
    values = [_known_again(t, each, found) for each in values]
    for place, state in alike:
        values[place] = t.b.call("assume", values[place], attrs=Reshape(state.shape))
    return values, found


def _are_alike(t: Translation, value: Expr, state: Expr) -> bool:
    """Whether the two have the same extents by the demands so far, but not without them."""
    if value.shape == state.shape or value.tensor.rank != state.tensor.rank:
        return False
    return all(is_equal(*map(t.b.demands.now, pair)) for pair in zip(value.shape, state.shape, strict=True))


def _known_again(t: Translation, value: Expr, found: Mapping[Atom, Size]) -> Expr:
    """The value with run-time extents replaced by their dims, if no extent can then be negative."""
    shape = tuple(substitute(extent, found) for extent in value.shape)
    is_known = found and all(is_at_most(0, each) for each in shape)
    return t.b.assume(value, shape) if is_known else value


def _demanded_branch(t: Translation, condition: Expr, node: OnnxNode, then: TensorType, other: TensorType) -> str:
    """The name of the branch taken if two extents are equal: exporters write `squeeze` of an axis of extent 1 so.

    The branches differ in rank, so all calls must take the same one: the equality becomes a demand.
    """
    why = f"its `then_branch` gives {then}, its `else_branch` {other}: which number of axes it has is decided by data"
    branches = ["then_branch", "else_branch"]
    while operator(condition) in ("reshape", "cast", "identity", "logical_not", "assume"):
        if operator(condition) == "logical_not":
            branches.reverse()
        condition = condition.operands[0]
    if operator(condition) == "not_equal":
        branches.reverse()
    elif operator(condition) != "equal":
        raise Unsupported(why)
    found = [contents(each) for each in condition.operands]
    sizes = [each.reshape(-1)[0] for each in found if each is not None and each.size == 1]
    ranks = [then.rank, other.rank] if branches[0] == "then_branch" else [other.rank, then.rank]
    asked_by = f"{node.outputs[0]} = {node.op}, of {ranks[0]} axes where that holds, else of {ranks[1]}"
    if len(sizes) != 2 or not t.b.demands.ask(sizes[0], sizes[1], asked_by, node.span):
        raise Unsupported(why)
    return branches[0]


def _join_dims(t: Translation, node: OnnxNode, then: TensorType, other: TensorType) -> None:
    """Demands that two dims are equal if the branches' results have them at one place; exporters name them apart."""
    for a, b in zip(then.shape, other.shape, strict=False):
        if t.b.renewal is not None and atom_of(a, Dim) and atom_of(b, Dim):
            t.b.renewal.demands.ask(a, b, f"{node.outputs[0]} = {node.op}", node.span)


def _either(
    t: Translation, condition: Expr, then: Expr, other: Expr, known: Mapping[Atom, Size]
) -> tuple[TensorType, list[int]]:
    """The type of the result of two branches, and the axes whose extent has no bound.

    Other extents in which the branches differ become run-time extents, chosen by the condition.
    """
    a, b = then.tensor, other.tensor
    if a.dtype != b.dtype or a.rank != b.rank:
        raise Unsupported(f"its branches give {a} and {b}")
    shape, opened = list(a.shape), []
    for axis, (left, right) in enumerate(zip(a.shape, b.shape, strict=True)):
        if not is_equal(left, right):
            limits = [each for each in map(greatest, (left, right)) if each is not None]
            if len(limits) < 2:
                opened.append(axis)
            else:
                # In terms of dims: run-time extents of a branch are only visible inside of it.
                first, second = (scalar(t, substitute(each, known)) for each in (left, right))
                found = t.b.if_(condition, first, second)
                shape[axis] = t.extent(found, maximum(*limits), "taken")
    made = TensorType(tuple(shape), a.dtype)
    return (t.b.left(made, opened) if opened else made), opened


class _Open(Unsupported):
    """The number of steps of a loop depends on data."""


def _loop(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    """A loop of the graph; with few steps known at import, results that are then known become constants."""
    count = None if node.maybe(0) is None else contents(node.x(0))
    steps = None if count is None else as_size(count.item())
    if node.maybe(0) is None or (isinstance(steps, int) and steps <= _MOST_STEPS):
        try:
            return _known_steps(t, node, steps)
        except _Open:
            pass
    return _looped(t, node, steps)


def _known_steps(t: Translation, node: OnnxNode, limit: Size | None) -> Sequence[Expr]:
    """A loop of the graph if it is plain, else the unrolled steps; results known at import are constants either way."""
    condition = node.maybe(1)
    carried = [node.x(number) for number in range(2, len(node.operands))]
    steps: list[list[Expr]] = []
    body = node.body("body")
    while (len(steps) < limit if isinstance(limit, int) else True) and (condition is None or _holds(condition)):
        if len(steps) >= _MOST_STEPS:
            raise _Open
        flag = condition if condition is not None else t.b.constant(np.array(True))
        condition, *results = t.inside(body, [t.b.constant(np.int64(len(steps))), flag, *carried], node, runs=True)
        carried, made = results[: len(carried)], results[len(carried) :]
        steps.append(made)
        if len(steps) == 1 and isinstance(limit, int) and limit > 1:
            loop = None if any(map(_is_known, results)) else _plain_loop(t, node, limit)
            if loop is not None:
                return loop
    if not steps and len(node.outputs) > len(carried):
        return _looped(t, node, 0, all_run=True)
    columns = zip(*steps, strict=True)
    found = [*carried, *(t.b.concat([t.b.unsqueeze(each, 0) for each in column], 0) for column in columns)]
    found = list(map(t.fold, found))
    if len(steps) < 2 or all(map(_is_known, found)) or (loop := _plain_loop(t, node, len(steps), all_run=True)) is None:
        return found
    return [each if _is_known(each) else left for each, left in zip(found, loop, strict=True)]


def _is_known(value: Expr) -> bool:
    return isinstance(value, Constant) or contents(value) is not None


def _plain_loop(t: Translation, node: OnnxNode, count: int, *, all_run: bool = False) -> Sequence[Expr] | None:
    """The loop of the graph, or None if it is not plain."""
    before = t.mark()
    try:
        found = _looped(t, node, count, all_run=all_run)
        if _is_plain(found, count):
            return found
    except Unsupported:
        pass
    t.back_to(before)
    return None


def _is_plain(results: Sequence[Expr], count: int) -> bool:
    """Whether a loop has no run-time extents, and unrolling it would not be better.

    A few elementwise operators are better unrolled, since several steps then fuse into one function.
    """
    loop = next(
        (each.value.op for each in results if isinstance(each, TupleGetItem) and isinstance(each.value, Call)), None
    )
    if not isinstance(loop, LoopFunction) or any(run_dims(each.shape) for each in results):
        return False
    inside = [each for each in operands_first(loop.body) if isinstance(each, Call | If)]
    others = [each for each in inside if not (isinstance(each, Call) and each.is_view)]
    by_elements = all(isinstance(each, Call) and isinstance(each.op, Op) and each.op.is_elementwise for each in others)
    is_one_pass = by_elements and len(results) == loop.carried and len(others) * count <= _MOST_STEPS
    return not is_one_pass and not any(each.sources for each in inside)


def _looped(t: Translation, node: OnnxNode, count: Size | None, *, all_run: bool = False) -> Sequence[Expr]:
    """A loop of the graph. `count`: the most steps, None if found during the run. `all_run`: no condition ends it."""
    carried = [node.x(number) for number in range(2, len(node.operands))]
    has_results = len(node.outputs) > len(carried)
    always = t.b.constant(np.array(True))
    going = t.fold(t.b.reshape(node.x(1), ())) if node.has(1) and not all_run else always
    limit = t.fold(scalar(t, t.b.reshape(node.x(0), ()))) if node.has(0) else t.b.constant(np.iinfo(np.int64).max)
    if all_run and count is not None:
        limit = scalar(t, count)
    is_whole = isinstance(going, Constant) and bool(going.value)

    def step(number: Expr, going: Expr, states: list[Expr]) -> tuple[Expr, list[Expr], list[Expr]]:
        nonlocal is_whole
        (goes, *results), _ = _apart(t, node, node.body("body"), [number, going, *states], [going, *states])
        goes = always if all_run else goes
        is_whole = is_whole and (goes is going or (isinstance(goes, Constant) and bool(goes.value.all())))
        return t.b.reshape(goes, ()), results[: len(carried)], results[len(carried) :]

    def without_results(number: Expr, going: Expr, states: list[Expr]) -> tuple[Expr, list[Expr], list[Expr]]:
        goes, after, _ = step(number, going, states)
        return goes, after, []

    most: Size = 0 if count is None else maximum(0, count)
    if has_results and (count is None or (isinstance(most, int) and most > _MOST_ROOM)):
        # Run the loop once without results, to count its steps and thus know the results' extent.
        steps, _, _ = _repeated(t, without_results, limit, carried, going, 0)
        most = t.extent(t.b.maximum(limit, 0) if is_whole else steps, None, "steps")
        _, after, rows = _repeated(t, step, limit, carried, going, most)
        return [*after, *rows]
    steps, after, rows = _repeated(t, step, limit, carried, going, most if has_results else 0)
    if not rows or is_whole:
        return [*after, *rows]
    found = t.extent(steps, most, "steps")
    return [*after, *(first_rows(t, each, found) for each in rows)]


def _repeated(
    t: Translation, step: LoopBody, limit: Expr, carried: Sequence[Expr], going: Expr, most: Size
) -> tuple[Expr, list[Expr], list[Expr]]:
    """The loop, imported again if a step changes extents of a carried value, or returns one unchanged.

    An unchanged value is then not carried.
    """
    given: list[Expr] = []
    made: list[Expr] = []
    kept: dict[int, Expr] = {}

    def with_kept(others: Sequence[Expr]) -> list[Expr]:
        rest = iter(others)
        return [kept[place] if place in kept else next(rest) for place in range(len(carried))]

    def noted(number: Expr, going: Expr, states: list[Expr]) -> tuple[Expr, Sequence[Expr], Sequence[Expr]]:
        given[:] = with_kept(states)
        goes, made[:], rows = step(number, going, given)
        return goes, [each for place, each in enumerate(made) if place not in kept], rows

    changing: dict[int, set[int]] = {}
    while True:
        before = t.mark()
        try:
            others = [each for place, each in enumerate(carried) if place not in kept]
            steps, left, rows = t.b.loop(noted, limit, others, going=going, most=most, changing=changing)
            alike = [place for place, each in enumerate(made) if each is given[place]]
            if len(alike) == len(kept) or changing:
                return steps, with_kept(left), rows
            t.back_to(before)
            kept |= {place: carried[place] for place in alike}
        except GraphError as error:
            told = [each for each in error.messages if isinstance(each, LoopSteps)]
            if not told:
                raise
            kept.clear()
            found = {place: _changed(a, b) for place, (a, b) in enumerate(zip(carried, made, strict=True))}
            more = {place: axes | changing.get(place, set()) for place, axes in found.items() if axes}
            if not more or more == changing:
                why = f"a step of it {told[0].why}, and what steps carry keeps its type and its number of axes"
                raise Unsupported(why) from None
            t.back_to(before)
            changing |= more


def _changed(before: Expr, behind: Expr) -> set[int]:
    """The axes along which two values of the same rank differ; none if the ranks differ."""
    if before.tensor.rank != behind.tensor.rank:
        return set()
    pairs = zip(before.shape, behind.shape, strict=True)
    return {axis for axis, (a, b) in enumerate(pairs) if not is_equal(a, b)}


def _holds(condition: Expr) -> bool:
    if not isinstance(condition, Constant):
        raise _Open
    return bool(condition.value.reshape(-1)[0])


def _scan(t: Translation, node: OnnxNode) -> Sequence[Expr]:
    if node.version < 9:
        raise Unsupported(f"Scan of version {node.version}")
    scanned = node.integer("num_scan_inputs")
    operands = node.all()
    carried, sequences = operands[: len(operands) - scanned], operands[len(operands) - scanned :]
    axes = node.integers("scan_input_axes") or (0,) * scanned
    axes = tuple(axis % each.tensor.rank for axis, each in zip(axes, sequences, strict=True))
    count = sequences[0].shape[axes[0]] if sequences else 0
    turned = node.integers("scan_input_directions") or (0,) * scanned
    last = scalar(t, count - 1)

    def step(number: Expr, going: Expr, states: list[Expr]) -> tuple[Expr, list[Expr], list[Expr]]:
        places = [t.b.subtract(last, number) if back else number for back in turned]
        now = [t.b.gather(each, place, axis) for each, place, axis in zip(sequences, places, axes, strict=True)]
        results, _ = _apart(t, node, node.body("body"), [*states, *now], states)
        return t.b.constant(np.array(True)), results[: len(states)], results[len(states) :]

    _, after, rows = _repeated(t, step, scalar(t, count), carried, t.b.constant(np.array(True)), count)
    places = node.integers("scan_output_axes") or (0,) * len(rows)
    back = node.integers("scan_output_directions") or (0,) * len(rows)
    made = []
    for each, place, flip in zip(rows, places, back, strict=True):
        rank = each.tensor.rank
        order = list(range(1, rank))
        order.insert(place % rank, 0)
        row = backwards(t, each) if flip else each
        made.append(row if order == list(range(rank)) else t.b.transpose(row, order))
    return [*after, *made]


CONTROL: Mapping[str, Importer] = {"If": _if, "Loop": _loop, "Scan": _scan}

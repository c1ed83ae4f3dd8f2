"""Lowers a function of operators to one of the IR: an allocation for each tensor, a call for each operator.

Results go straight into the outputs; reshapes are views; a parameter or constant that is returned is copied. Source:
the AOT lowering of TVM's Relay, with branches, symbolic shapes and views beyond it.
"""

from __future__ import annotations

from collections.abc import Iterable, Iterator, Mapping, Sequence
from types import MappingProxyType

from tirlite.analysis.integers.array_bounds import ADDRESSABLE
from tirlite.diag import public
from tirlite.graph.aot.folding import check_kept, folded_calls
from tirlite.graph.aot.joined import Join, Joins
from tirlite.graph.aot.laid_out import OperandLayout, permitted
from tirlite.graph.aot.names import ParameterNames
from tirlite.graph.aot.operators import OperatorFunctions
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Var
from tirlite.graph.extents import is_equal, product
from tirlite.graph.fuse.groups import NO_GROUPS, Group, Grouping, grouping
from tirlite.graph.loop import LoopFunction
from tirlite.graph.op import Op, Sizes
from tirlite.graph.program import Block, Part, Program, extents_found, program
from tirlite.graph.run_dims import RunDim, most_of, run_dims, wanted
from tirlite.graph.types import TensorType, same_type, tensors
from tirlite.ir.dtype import bool_, i64
from tirlite.ir.expr import EQ, LE, And, Buffer, BufferRef, IntImm, Load, Max, Min, Var as Scalar, const
from tirlite.ir.func import PrimFunc
from tirlite.ir.kernel_call import KernelCall
from tirlite.ir.size import expr_of
from tirlite.ir.stmt import Allocate, Assert, IfThenElse, Let as LetStmt, SeqStmt, Stmt, Store, View, While
from tirlite.ir.trampoline import Steps, run
from tirlite.ir.validate import validate
from tirlite.record import record
from tirlite.sizes import Dim, Size
from tirlite.sizes.poly import inside_out


@record
class Lowered:
    """A lowered graph function.

    func: the IR function. Its parameters are the inputs, the constants, the outputs, the kept tensors, and one per
        entry of `extents`.
    constants, kept: the parameters of constants and of tensors that are kept.
    extents: the run-time extents of outputs; these outputs have room for the maximum.
    grouping: which calls are fused into one function.
    layouts: the layout and the source of each packed constant.
    """

    func: PrimFunc
    constants: Mapping[Constant, Buffer]
    kept: Mapping[Expr, Buffer]
    extents: tuple[Size, ...] = ()
    grouping: Grouping = NO_GROUPS
    layouts: Mapping[Constant, tuple[str, Constant]] = MappingProxyType({})


@public
def lower(function: FunctionNode, *, keep: Iterable[Expr] = (), fuse: bool = False, winograd: bool = False) -> Lowered:
    """Lowers a function to an IR function that is valid for all values of its dims. Raises GraphError.

    keep: tensors that become further outputs, by a copy when they are computed.
    fuse: fuse elementwise operators into the one before them, and pack constant weights.
    winograd: compute 3 x 3 convolutions by Winograd's algorithm where that pays.
    """
    layouts = permitted(winograd=winograd) if fuse or winograd else {}
    return lower_program(program(function), keep, fuse=fuse, layouts=layouts)


def lower_program(
    made: Program,
    keep: Iterable[Expr] = (),
    *,
    fuse: bool = False,
    layouts: Mapping[str, OperandLayout] = MappingProxyType({}),
) -> Lowered:
    """The same for a program, in its order of calls, with constants in these layouts if that pays."""
    functions = OperatorFunctions()
    try:
        return run(_Lowering(made, {}, functions, keep, fuse=fuse, layouts=layouts).lowered())
    finally:
        functions.finish()


class _Lowering:
    """The lowering of one function.

    `callees` are those that were lowered for calls before, `functions` those of operators: all share them.
    """

    def __init__(
        self,
        made: Program,
        callees: dict[FunctionNode, Lowered],
        functions: OperatorFunctions,
        keep: Iterable[Expr] = (),
        *,
        fuse: bool,
        layouts: Mapping[str, OperandLayout],
    ) -> None:
        function = made.function
        self.made = made
        self.fuse, self.layouts = fuse, layouts
        self.callees = callees
        self.keep = check_kept(made, keep)
        self.folded = folded_calls(made)
        self.found = extents_found(made)
        self.names = ParameterNames(function.name)
        self.variables = _variables(function)
        self.functions = functions
        self.constants: dict[Constant, Buffer] = {}
        self.kept: dict[Expr, Buffer] = {}
        self.homes: dict[Expr, tuple[Buffer, ...]] = {}
        self.targets: dict[Part, Buffer] = {}
        self.types: dict[Buffer, TensorType] = {}
        self.sources: dict[Buffer, tuple[Buffer, int]] = {}
        self.joins: dict[Call, Join] = {}
        self.shown: dict[Buffer, TensorType] = {}
        self.count = 0
        functions.lay_out(made, self.folded, layouts)
        self.grouping = self._grouping() if fuse else NO_GROUPS
        self.behind = self.grouping.behind

    def _grouping(self) -> Grouping:
        measured = {dim.source for dims in self.found.values() for dim in dims}
        shown = frozenset((*self.keep, *map(self.made.resolved, measured)))
        return grouping(self.made, self.folded, shown, self.functions)

    def lowered(self) -> Steps[Lowered]:
        function = self.made.function
        inputs = [buffer for param in function.params for buffer in self._param(param)]
        outputs = list(self._outputs())
        body: list[Stmt] = [*self._demands(function)]
        copies = self._aim(self.made.body, outputs, function.body)
        for source, dims in self.found.items():
            if isinstance(source, Expr) and self._is_ready(source):
                for dim in dims:
                    self._measure(dim, body)
        yield self._block(self.made.body, body)
        for index, target in copies:
            self._copy(self._home(function.body)[index], target, body)
        outputs += self.kept.values()
        extents = dict.fromkeys(e for buffer in outputs for e in self.shown[buffer].shape if run_dims([e]))
        for number, extent in enumerate(extents):
            outputs.append(self._buffer(self.names.fresh(f"extent_{number}"), TensorType((), i64)))
            body.append(Store(outputs[-1], (), expr_of(extent, self.variables)))
        params = (*inputs, *self.constants.values(), *outputs)
        func = PrimFunc(function.name, params, SeqStmt(tuple(body)), tuple(outputs), span=function.span)
        validate(func)
        return Lowered(func, self.constants, self.kept, tuple(extents), self.grouping, self.functions.layouts)

    def repeated(self, step: Lowered) -> Lowered:
        """The loop around a lowered step: every second iteration carries values back to where they were."""
        loop = self.made.function
        assert isinstance(loop, LoopFunction)
        first, limit, going, *given = [buffer for param in loop.params for buffer in self._param(param)]
        constants = [self._constant(each) for each in step.constants]
        names = ("steps", *(f"result{number}" for number in range(len(tensors(loop.result)) - 1)))
        at, *results = (
            self._buffer(self.names.exact(name), of) for name, of in zip(names, tensors(loop.result), strict=True)
        )
        states, rows = results[: loop.carried], results[loop.carried :]
        kinds = loop.parts[1 + loop.carried :]
        said, *made = (self._buffer(self.names.fresh("made"), of) for of in loop.parts[: 1 + loop.carried])
        goes = self._buffer(self.names.fresh("goes"), TensorType((), bool_))
        body: list[Stmt] = [Allocate(each) for each in (said, *made, goes)]
        for source, target in zip(given, states, strict=False):
            self._copy(source, target, body)
        body += [Store(at, (), Load(first, ())), Store(goes, (), Load(going, ()))]

        def once(before: Sequence[Buffer], behind: Sequence[Buffer]) -> list[Stmt]:
            number = Scalar(self.names.fresh("number"), i64)
            stmts: list[Stmt] = [LetStmt(number, Load(at, ()))]
            places = [self._row(loop, each, of, number, stmts) for each, of in zip(rows, kinds, strict=True)]
            operands = (at, limit, goes, *before, *given[loop.carried :], *constants, said, *behind, *places)
            stmts.append(KernelCall(step.func, tuple(map(BufferRef, operands))))
            return [*stmts, Store(goes, (), Load(said, ())), Store(at, (), number + 1)]

        def goes_on() -> And:
            return And(Load(at, ()) < Load(limit, ()), Load(goes, ()))

        last: list[Stmt] = []
        for source, target in zip(made, states, strict=True):
            self._copy(source, target, last)
        second = IfThenElse(goes_on(), SeqStmt(tuple(once(made, states))), SeqStmt(tuple(last)))
        body.append(While(goes_on(), SeqStmt((*once(states, made), second))))
        params = (first, limit, going, *given, *constants, at, *results)
        func = PrimFunc(loop.name, params, SeqStmt(tuple(body)), (at, *results), span=loop.span)
        validate(func)
        return Lowered(func, dict(zip(step.constants, constants, strict=True)), {})

    def _row(self, loop: LoopFunction, of_all: Buffer, of: TensorType, number: Scalar, body: list[Stmt]) -> Buffer:
        """The row of one step's result among those of all steps."""
        room = expr_of(loop.most, self.variables)
        message = f"`{loop.name}` makes step {{}}, and there is room for the results of {{}}"
        body.append(Assert(number < room, message, (number + 1, room), span=loop.span))
        row = self._buffer(self.names.fresh("row"), of)
        body.append(View(row, of_all, number * expr_of(of.bytes, self.variables)))
        return row

    def _is_ready(self, source: Expr) -> bool:
        """Whether a value is available before the first step."""
        return isinstance(source, Var | Constant) or source in self.folded

    def _measure(self, dim: RunDim, body: list[Stmt]) -> None:
        """Binds a run-time extent to its value, after checking its limits."""
        value = Scalar(self.names.fresh(f"{dim.name}_found"), i64)
        body.append(LetStmt(value, Load(self._home(dim.source)[0], ()).astype(i64), span=dim.source.span))
        # An extent without a bound only occurs in attributes here, since its tensors' storage could not be planned.
        most = ADDRESSABLE if dim.most is None else dim.most
        least, greatest = (expr_of(size, self.variables) for size in (dim.least, most))
        for text, low, high in wanted(dim.least, most):
            limits = {size: expr_of(size, self.variables) for size in (low, high) if size is not None}
            above, below = LE(least, value), LE(value, greatest)
            both = EQ(value, least) if low == high else And(above, below)
            test = above if high is None else below if low is None else both
            told = f"the extent {dim.name} was found to be {{}}, and must be {text}"
            body.append(Assert(test, told, (value, *limits.values()), span=dim.source.span))
        # The clamp repeats what was just checked, so that analyses know the variable's range.
        self.variables[dim] = Scalar(self.names.fresh(dim.name), i64)
        body.append(LetStmt(self.variables[dim], Max(least, Min(value, greatest)), span=dim.source.span))

    def _demands(self, function: FunctionNode) -> Iterator[Stmt]:
        """Checks of the operators' demands on extents that the types of the parameters leave open."""
        for each in function.demands:
            if not each.is_told:
                left, right = (expr_of(size, self.variables) for size in (each.left, each.right))
                yield Assert((LE if each.is_most else EQ)(left, right), each.message, span=each.span)

    def _param(self, param: Var) -> Iterator[Buffer]:
        leaves = tensors(param.type)
        names = (
            [param.name] if isinstance(param.type, TensorType) else [f"{param.name}_{i}" for i, _ in enumerate(leaves)]
        )
        made = tuple(
            self._buffer(self.names.exact(name, param.span), of) for name, of in zip(names, leaves, strict=True)
        )
        self.homes[param] = made
        yield from made

    def _outputs(self) -> Iterator[Buffer]:
        function = self.made.function
        leaves = tensors(function.result)
        names = function.outputs or (["output"] if len(leaves) == 1 else [f"output{i}" for i in range(len(leaves))])
        if len(names) != len(leaves):
            names = [f"{names[0]}{i}" for i in range(len(leaves))]
        for name, of in zip(names, leaves, strict=True):
            yield self._output(self.names.exact(name, function.span), of)

    def _output(self, name: str, of: TensorType) -> Buffer:
        """An output with room for the most that a tensor of this type can have."""
        made = self._buffer(name, most_of(of))
        self.shown[made] = of
        return made

    def _aim(self, block: Block, targets: Sequence[Buffer], result: Expr) -> list[tuple[int, Buffer]]:
        """Lets the steps that compute a block's result write to `targets`; returns those that need a copy."""
        copies = []
        inside = frozenset(block.steps)
        for index, target in enumerate(targets):
            source = self._source(self.made.parts[result][index])
            computed = isinstance(source.step, Call | If) and source.step not in self.folded
            if computed and source.step in inside and source not in self.targets:
                self.targets[source] = target
            else:
                copies.append((index, target))
        return copies

    def _block(self, block: Block, body: list[Stmt]) -> Steps[None]:
        for dim in self.found.get(block, ()):
            self._measure(dim, body)
        joins = (
            Joins(self.made, block, self.grouping, self._source, self.targets, self.folded).found if self.fuse else ()
        )
        self.joins |= {join.call: join for join in joins}
        for step in block.steps:
            if isinstance(step, Constant) or step in self.folded:
                continue
            # Outer joins were found after the inner ones.
            for join in reversed(joins):
                if join.first is step:
                    self._begin(join, body)
            if isinstance(step, Call) and (group := self.grouping.groups.get(step)) is not None:
                self._group(group, body)
            elif isinstance(step, Call | If) and step not in self.behind:
                yield self._step(step, body)
            for dim in self.found.get(step, ()):
                self._measure(dim, body)

    def _step(self, step: Call | If, body: list[Stmt]) -> Steps[None]:
        if isinstance(step, If):
            yield self._if(step, body)
        elif step.is_view:
            self._check_elements(step, body)
            self.homes[step] = (self._view(self._home(step.args[0])[0], step.tensor, body),)
        else:
            if isinstance(step.attrs, Sizes):
                self._write(step, step.attrs, body)
                return
            if step in self.joins:
                self._join(self.joins[step], body)
            elif isinstance(step.op, Op):
                self._call(step, self.functions.of(step), self.functions.operands(step), (), body)
            else:
                callee = yield self._callee(step.op)
                self._call(step, callee.func, step.args, callee.constants, body)
        if step in self.keep:
            self._keep(step, body)

    def _begin(self, join: Join, body: list[Stmt]) -> None:
        """Allocates the result of a concatenation before its parts are computed there."""
        (whole,) = self._results(join.call, body)
        for part, offset in join.places.items():
            self.targets[part] = self._part(whole, tensors(part.step.type)[part.number], offset, body)

    def _join(self, join: Join, body: list[Stmt]) -> None:
        """Copies the parts of a concatenation that were computed elsewhere."""
        offset = 0
        for arg in join.call.args:
            (part,) = map(self._source, self.made.parts[arg])
            if join.places.get(part) != offset:
                (source,) = self._home(arg)
                self._copy(source, self._part(self.homes[join.call][0], arg.tensor, offset, body), body)
            size = arg.tensor.bytes
            assert isinstance(size, int)
            offset += size

    def _part(self, whole: Buffer, of: TensorType, offset: int, body: list[Stmt]) -> Buffer:
        """A view of another tensor's storage from a byte offset on."""
        root, before = self.sources.get(whole, (whole, 0))
        made = self._buffer(self.names.fresh(f"{root.name}_part"), of)
        body.append(View(made, root, const(before + offset, i64)))
        self.sources[made] = root, before + offset
        return made

    def _group(self, group: Group, body: list[Stmt]) -> None:
        func, operands = self.functions.of_group(group, self.made)
        self._call(group.last, func, operands, (), body)
        if group.last in self.keep:
            self._keep(group.last, body)

    def _check_elements(self, view: Call, body: list[Stmt]) -> None:
        """An assert that a view has as many elements as its source, unless that is proved."""
        source, shown = view.args[0].tensor, view.tensor
        before, after = product(source.shape), product(shown.shape)
        if is_equal(before, after):
            return
        called = f"{view.name} = " if view.name else ""
        message = f"`{called}reshape({source}, shape={shown})`: {{}} elements become {{}}"
        pairs = [pair for pair in zip(source.shape, shown.shape, strict=False) if not is_equal(*pair)]
        if source.rank == shown.rank and len(pairs) == 1:
            # Without elements there are as many, whatever the extent.
            ((before, after),) = pairs
            message = f"`{view.name or shown}` demands that {before} == {after} ({{}} and {{}})"
        values = tuple(expr_of(size, self.variables) for size in (before, after))
        body.append(Assert(EQ(*values), message, values, span=view.span))

    def _home(self, expr: Expr) -> tuple[Buffer, ...]:
        if isinstance(expr, Constant) and expr in self.functions.layouts:
            return (self._constant(expr),)
        return tuple(map(self._buffer_of, self.made.parts[expr]))

    def _buffer_of(self, part: Part) -> Buffer:
        known = self.folded.get(part.step, part.step)
        return self._constant(known) if isinstance(known, Constant) else self.homes[part.step][part.number]

    def _source(self, part: Part) -> Part:
        """The tensor whose bytes this one has, seen through views."""
        while isinstance(part.step, Call) and part.step.is_view:
            (part,) = self.made.parts[part.step.args[0]]
        return part

    def _keep(self, step: Expr, body: list[Stmt]) -> None:
        """Copies the tensor that was just computed to its own output."""
        self.kept[step] = self._output(self.names.fresh(f"kept_{len(self.kept)}"), step.tensor)
        self._copy(self._home(step)[0], self.kept[step], body)

    def _call(
        self, call: Call, func: PrimFunc, args: Iterable[Expr], inner: Iterable[Constant], body: list[Stmt]
    ) -> None:
        given = [*(buffer for arg in args for buffer in self._home(arg)), *map(self._constant, inner)]
        results = self._results(call, body)
        body.append(KernelCall(func, tuple(map(BufferRef, (*given, *results))), span=call.span))

    def _write(self, step: Call, attrs: Sizes, body: list[Stmt]) -> None:
        """Stores the elements one by one: a function has no operand that binds their dims."""
        (target,) = self._results(step, body)
        for number, element in enumerate(attrs.elements):
            place: list[int] = []
            for extent in reversed(target.shape):
                assert isinstance(extent, IntImm)
                number, rest = divmod(number, extent.value)
                place.insert(0, rest)
            value = expr_of(element, self.variables).astype(attrs.dtype)
            body.append(Store(target, tuple(const(each, i64) for each in place), value, span=step.span))

    def _callee(self, function: FunctionNode) -> Steps[Lowered]:
        if function not in self.callees and isinstance(function, LoopFunction):
            step = yield self._inner(function.step).lowered()
            self.callees[function] = self._inner(function).repeated(step)
        elif function not in self.callees:
            self.callees[function] = yield self._inner(function).lowered()
        return self.callees[function]

    def _inner(self, function: FunctionNode) -> _Lowering:
        return _Lowering(program(function), self.callees, self.functions, fuse=self.fuse, layouts=self.layouts)

    def _if(self, step: If, body: list[Stmt]) -> Steps[None]:
        results = self._results(step, body)
        parts = []
        for block in self.made.branches[step]:
            copies = self._aim(block, results, block.result)
            part: list[Stmt] = []
            yield self._block(block, part)
            for index, target in copies:
                self._copy(self._home(block.result)[index], target, part)
            parts.append(SeqStmt(tuple(part)))
        condition = self._home(step.condition)[0]
        body.append(IfThenElse(Load(condition, ()), parts[0], parts[1], span=step.span))

    def _results(self, step: Call | If, body: list[Stmt]) -> tuple[Buffer, ...]:
        """The buffers of a step's tensors: a target, maybe seen in another shape, or new storage."""
        made = []
        for index, of in enumerate(tensors(step.type)):
            target = self.targets.get(Part(step, index))
            if target is not None:
                made.append(self._view(target, of, body))
                continue
            buffer = self._buffer(self.names.fresh(f"sid_{self.count}"), most_of(of))
            self.count += 1
            body.append(Allocate(buffer, span=step.span))
            made.append(self._view(buffer, of, body))
        self.homes[step] = tuple(made)
        return tuple(made)

    def _view(self, source: Buffer, of: TensorType, body: list[Stmt]) -> Buffer:
        """The buffer seen in the shape of a type: itself or its source if they have it, else a new view."""
        whole, offset = self.sources.get(source, (source, 0))
        for each in (source, *([] if offset else [whole])):
            if same_type(self.types[each], of):
                return each
        seen = self._buffer(self.names.fresh(f"{whole.name}_as"), of)
        body.append(View(seen, whole, const(offset, i64)))
        self.sources[seen] = whole, offset
        return seen

    def _copy(self, source: Buffer, target: Buffer, body: list[Stmt]) -> None:
        of = self.types[source]
        refs = BufferRef(source), BufferRef(self._view(target, of, body))
        body.append(KernelCall(self.functions.copy(of), refs))

    def _constant(self, constant: Constant) -> Buffer:
        if constant not in self.constants:
            name = self.names.fresh(constant.name or f"constant_{len(self.constants)}")
            self.constants[constant] = self._buffer(name, constant.tensor)
        return self.constants[constant]

    def _buffer(self, name: str, of: TensorType) -> Buffer:
        made = Buffer(name, of.dtype, tuple(expr_of(extent, self.variables) for extent in of.shape))
        self.types[made] = of
        return made


def _variables(function: FunctionNode) -> dict[Dim, Scalar]:
    """A variable for each dim in the types of the parameters; run-time extents get theirs later."""
    dims = (atom for extent in function.extents for atom in inside_out(extent) if isinstance(atom, Dim))
    return {dim: Scalar(dim.name, i64, dim) for dim in dims}

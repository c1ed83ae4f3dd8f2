"""A graph as native code: one native function, called on NumPy arrays, by position or by name."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from contextlib import suppress
from types import MappingProxyType
from typing import TYPE_CHECKING, Any, Literal, Self, TypeAlias, overload

import numpy as np
import numpy.typing as npt

from tirlite.diag import CallTypeError, Message, TirliteError, boundary
from tirlite.diag.error import demand_kind
from tirlite.driver import Kernel
from tirlite.driver.front import Front
from tirlite.driver.timing import Timing
from tirlite.graph.aot.names import name_of
from tirlite.graph.arguments import GraphArgumentCount, arrays_of, bind, check_demands
from tirlite.graph.demand import demand_function
from tirlite.graph.demands import Demand
from tirlite.graph.expr import Expr, FunctionNode
from tirlite.graph.types import Array, leaves_of, structured, tensors
from tirlite.record import cached_property
from tirlite.show import counted

if TYPE_CHECKING:
    from concurrent.futures import Future
    from os import PathLike
    from pathlib import Path

    from tirlite.driver.profile import Profile
    from tirlite.driver.safety import SafetyReport
    from tirlite.graph.aot.lower import Lowered
    from tirlite.graph.fuse.groups import Grouping
    from tirlite.graph.order.memory_order import Ordered
    from tirlite.ir import PrimFunc
    from tirlite.plan import Plan
    from tirlite.rewrite.options import Options
    from tirlite.sizes import Size


class UnknownGraphArgument(Message):
    """A graph was called with an argument of a name that it does not have, or that was given already.

    Example: `net(y=array)` where the only input is `x`; `net(array, x=array)`.
    Fix: Give one array for each of the names that the message lists.
    """

    raises = CallTypeError
    title = "`{function}` {why} `{name}`; its {what} are {known}"


class BadGraphOut(Message):
    """`out` of a call of a graph is not an array for each of its results.

    Example: `net(x, out=(a, b))` where there is one result; `out=` where results have run-time extents.
    """

    raises = CallTypeError
    title = "`out` of `{function}`: {why}"
    help = "give an array for the one result, a tuple of arrays, one for each, or a dict by their names"


def in_order(function: FunctionNode, arrays: Sequence[Any], named: Mapping[str, Any]) -> Sequence[Any]:
    """The values in the order of the parameters, given by position or by name, in the model's or Python's spelling.

    Raises CallTypeError where that leaves one out, or gives another.
    """
    params = function.params
    if not named:
        if len(arrays) != len(params):
            raise GraphArgumentCount(function.name, counted(len(params), "value"), len(arrays)).error()
        return arrays
    with suppress(KeyError):
        if not arrays and len(named) == len(params):
            return [named[param.name] for param in params]
    places = {name: place for place, param in enumerate(params) for name in (param.name, name_of(param.name))}
    known = ", ".join(param.name for param in params)
    found: dict[int, Any] = dict(enumerate(arrays))
    for name, value in named.items():
        place = places.get(name)
        if place is None or place in found:
            why = "has no input" if place is None else "was given another value for"
            raise UnknownGraphArgument(function.name, why, name, "inputs", known).error()
        found[place] = value
    if len(found) != len(params) or len(arrays) > len(params):
        raise GraphArgumentCount(function.name, counted(len(params), "value"), len(found)).error()
    return [found[place] for place in range(len(params))]


def results_given(function: FunctionNode, outputs: Sequence[str], out: Any) -> dict[str, Any]:
    """The arrays for results, by the names of `main`'s outputs.

    Raises CallTypeError where `out` has others than there are results.
    """
    if out is None:
        return {}
    if isinstance(out, Mapping):
        names = dict(zip(function.outputs or outputs, outputs, strict=False))
        for name in out:
            if name not in names and name not in outputs:
                raise UnknownGraphArgument(function.name, "has no result", name, "results", ", ".join(names)).error()
        return {names.get(name, str(name)): array for name, array in out.items() if array is not None}
    given = out if isinstance(out, tuple | list) else (out,)
    if len(given) != len(outputs):
        raise BadGraphOut(function.name, f"there are {len(outputs)} results, and {len(given)} arrays").error()
    return {name: array for name, array in zip(outputs, given, strict=True) if array is not None}


Result: TypeAlias = "Array | tuple[Result, ...]"
# An array per parameter, or a tuple if the parameter is one.
Argument: TypeAlias = "npt.ArrayLike | tuple[Argument, ...]"


# The array for a single result, one per result, or some results' arrays by name.
Out: TypeAlias = "Array | Sequence[Array | None] | Mapping[str, Array] | None"
NOTHING: Mapping[str, Any] = MappingProxyType({})
FOUND = "its results have run-time extents"


class CompiledGraph:
    """A graph as native code. Call it with an array for each parameter; its constants are bound already.

    The result is an array, or a tuple of results. Native code is made at the first call, once for all values of the
    dims. `kernel` is the Kernel of `main`, whose parameters are the inputs, the constants and the outputs. `order` says
    what the order of operators has gained, where it was chosen.
    """

    def __init__(
        self,
        function: FunctionNode,
        lowered: Lowered,
        options: Options,
        order: Ordered | None = None,
        seconds: float = 0.0,
    ) -> None:
        """`order`: the operators' order, if it was optimized. `seconds`: the time that lowering took."""
        from tirlite.graph.aot.lower import Lowered

        demand_function(function)
        demand_kind("CompiledGraph", lowered, Lowered)
        self.function = function
        self._ordered: Callable[[], Ordered | None] = lambda: order
        grouping = lowered.grouping
        self._grouped: Callable[[], Grouping | None] = lambda: grouping
        constants = {buffer.name: constant.value for constant, buffer in lowered.constants.items()}
        self.kernel = Kernel(Front(lowered.func, partial=()), options, seconds=seconds, fixed=constants)
        self._kept = tuple(lowered.kept)
        self._extents = lowered.extents

    @classmethod
    def of(
        cls,
        function: FunctionNode,
        kernel: Kernel,
        extents: tuple[Size, ...],
        *,
        kept: tuple[Expr, ...] = (),
        ordered: Callable[[], Ordered | None] = lambda: None,
        grouped: Callable[[], Grouping | None] = lambda: None,
    ) -> CompiledGraph:
        """A graph with an existing kernel; `ordered` and `grouped` compute `order` and `groups`."""
        made = cls.__new__(cls)
        made.function, made.kernel, made._kept, made._extents = function, kernel, kept, extents
        made._ordered, made._grouped = ordered, grouped
        return made

    @cached_property
    def order(self) -> Ordered | None:
        """What the order of the operators has gained, where it was chosen and the graph does not come from a pickle."""
        with boundary:
            return self._ordered()

    @cached_property
    def groups(self) -> Grouping | None:
        """Which operators became one function, and why others did not, where the graph does not come from a pickle."""
        with boundary:
            return self._grouped()

    def __call__(self, /, *arrays: Argument, out: Out = None, **named: Argument) -> Result:
        """Inputs may be given by name. Results are written to the arrays of `out`: one, a tuple, or a dict by name.

        Raises CallTypeError and CallValueError for arguments that do not fit, KernelAssertionError where a demand does
        not hold.
        """
        try:
            if out is None:
                quick = self.kernel.called_on_inputs(in_order(self.function, arrays, named) if named else arrays)
                if quick is not None:
                    return self._structured(self._cut(quick))
        except TirliteError:
            pass  # the slower call below raises a better error
        inputs = self._inputs(arrays, named)
        try:
            if out is None:
                return self._structured(self._cut(leaves_of(self.kernel(*inputs))))
            with boundary:
                names = self._results
                given = results_given(self.function, names, out)
                if self._extents:
                    raise BadGraphOut(self.function.name, FOUND).error()
            made = self.kernel(*inputs, **given)
            rest = iter(() if made is None else leaves_of(made))
            return self._structured([given[name] if name in given else next(rest) for name in names])
        except TirliteError:
            # `main` checks types and storage before demands, but a violated demand makes the better message: it names
            # the operator and the dims with their values.
            with boundary:
                check_demands(self.function, inputs)
            raise

    @property
    def _results(self) -> list[str]:
        """The names of the tensors in the result, as `main` has them."""
        outputs = self.kernel.outputs
        return list(outputs[: len(outputs) - len(self._kept) - len(self._extents)])

    def profile(self, /, *arrays: Argument, **named: Argument) -> Profile:
        """How long each operator takes in a call, the bytes that it moves, and its share of the machine's limit.

        Operators of one kind are told together as well. See `Kernel.profile`.
        """
        return self.kernel.profile(*self._inputs(arrays, named))

    def trace(self, *arrays: Argument) -> Mapping[Expr, Result]:
        """As a call: the values of what is kept, and of the function's body."""
        leaves = self._cut(leaves_of(self.kernel(*self._inputs(arrays))))
        kept = dict(zip(self._kept, leaves[len(leaves) - len(self._kept) :], strict=True))
        return {**kept, self.function.body: self._structured(leaves)}

    def interpret(self, *arrays: Argument) -> Result:
        """As a call, but run by the reference interpreter on `ir`."""
        inputs = self._inputs(arrays)
        with boundary:
            # Before extents are computed, since a divisor may be 0.
            check_demands(self.function, inputs)
        return self._structured(self._cut(leaves_of(self.kernel.interpret(*inputs))))

    @property
    def demands(self) -> tuple[Demand, ...]:
        """The conditions on extents that are not proved; a call that violates one is rejected."""
        return self.function.demands

    @property
    def ir(self) -> PrimFunc:
        """`main` before the passes: an allocation for each tensor and a call for each operator."""
        return self.kernel.ir

    @property
    def lowered(self) -> PrimFunc:
        """`main` after the passes."""
        return self.kernel.lowered

    @property
    def plan(self) -> Plan:
        """The storage plan of the tensors between operators, and of what the operators need for themselves."""
        return self.kernel.plan

    def plan_at(self, **sizes: int) -> Plan:
        """The storage plan for one value of each dim; see `Kernel.plan_at`."""
        return self.kernel.plan_at(**sizes)

    def plan_page(self) -> str:
        """A page for browsers to look at the storage plan, or at those for some shapes; see `Plan.to_html`."""
        return self.kernel.plan_page()

    @property
    def safety(self) -> SafetyReport:
        """For each access of `main` and of the operators how it stays in its buffer; see `Kernel.safety`."""
        return self.kernel.safety

    @property
    def timing(self) -> Timing:
        """Seconds of each stage of compilation that has run."""
        return self.kernel.timing

    @overload
    def compile(self, *, background: Literal[False] = False) -> CompiledGraph: ...

    @overload
    def compile(self, *, background: Literal[True]) -> Future[CompiledGraph]: ...

    def compile(self, *, background: bool = False) -> CompiledGraph | Future[CompiledGraph]:
        """The graph itself, made native code now and not at its first call; see `Kernel.compile`."""
        if background:
            from tirlite.driver.ahead import Compilation

            return Compilation(self, self.function.name, self.compile)
        for part in self.parts:
            part.kernel.compile()
        return self

    def export(
        self,
        folder: str | PathLike[str],
        *,
        name: str | None = None,
        target: str = "host",
        weights: Literal["object", "file"] = "object",
    ) -> tuple[Path, ...]:
        """Files for programs without Python, see `Kernel.export`; called as the graph's function unless told."""
        return self.kernel.export(folder, name=name or self.kernel.name, target=target, weights=weights)

    @property
    def parts(self) -> tuple[CompiledGraph, ...]:
        """The graph itself; of a graph in segments, its parts."""
        return (self,)

    def plans(self, /, *arrays: Argument, **named: Argument) -> tuple[Plan, ...]:
        """The plans of all parts that a call with these arrays runs, in order, at the sizes that it finds."""
        with boundary:
            given = in_order(self.function, arrays, named)
        sizes = {dim.name: value for dim, value in bind(self.function, given)[1].items()}
        return (self.plan_at(**sizes) if sizes else self.plan,)

    def _inputs(self, arrays: Sequence[Argument], named: Mapping[str, Argument] = NOTHING) -> list[Array]:
        # Inputs are only read, so a copy does where an array has gaps or another order of axes.
        with boundary:
            given = zip(self.function.params, in_order(self.function, arrays, named), strict=True)
            return [each for param, value in given for each in arrays_of(param.name, param.type, value)]

    def _cut(self, leaves: tuple[Array, ...]) -> tuple[Array, ...]:
        """The tensors, cut to the extents that the run found, which are the last results of `main`."""
        if not self._extents:
            return leaves
        count = len(leaves) - len(self._extents)
        made, found = list(leaves[:count]), [each.item() for each in leaves[count:]]
        for number, axes in self._found_axes.items():
            shape = list(made[number].shape)
            for axis, extent in axes.items():
                shape[axis] = found[extent]
            made[number] = _begun(made[number], shape)
        return tuple(made)

    @cached_property
    def _found_axes(self) -> dict[int, dict[int, int]]:
        """For each tensor with run-time extents, by number: the axes, and the number of each extent."""
        numbers = {extent: number for number, extent in enumerate(self._extents)}
        types = [*tensors(self.function.result), *(each.tensor for each in self._kept)]
        axes = [{axis: numbers[each] for axis, each in enumerate(of.shape) if each in numbers} for of in types]
        return {number: each for number, each in enumerate(axes) if each}

    def _structured(self, leaves: Iterable[Array]) -> Result:
        made: Result = structured(self.function.result, iter(leaves))
        return made

    def __reduce__(self) -> tuple[object, ...]:
        return _restored, (self.function, self.kernel, self._kept, self._extents)

    def __copy__(self) -> Self:
        return self

    def __deepcopy__(self, known: object) -> Self:
        return self

    def __dask_tokenize__(self) -> tuple[str, ...]:
        """What dask takes for the graph's identity: its content."""
        kernels = (part.kernel.__dask_tokenize__()[1] for part in self.parts)
        return "tirlite", str(self.function), *kernels

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.kernel!r}>"


def _restored(
    function: FunctionNode, kernel: Kernel, kept: tuple[Expr, ...], extents: tuple[Size, ...]
) -> CompiledGraph:
    return CompiledGraph.of(function, kernel, extents, kept=kept)


def _begun(room: Array, shape: list[int]) -> Array:
    """The first elements of an array in this shape; a copy if the array is more than twice as large."""
    begun: Array = np.ndarray(shape, room.dtype, room)
    return begun if 2 * begun.size >= room.size else begun.copy()

"""A function of operators in, a CompiledGraph out: one native function, called on NumPy arrays."""

from __future__ import annotations

from collections.abc import Iterator
from typing import Any, TypeAlias, Unpack

import numpy as np
import numpy.typing as npt

from tirlite.diag import boundary
from tirlite.driver import Kernel
from tirlite.driver.options import Choices, Options
from tirlite.driver.timing import Timing
from tirlite.graph.aot.lower import Lowered, lower
from tirlite.graph.expr import FunctionNode
from tirlite.graph.types import TensorType, Type
from tirlite.ir import PrimFunc
from tirlite.plan import Plan

Array: TypeAlias = npt.NDArray[Any]
Result: TypeAlias = "Array | tuple[Result, ...]"


class CompiledGraph:
    """A graph as native code. Call it with an array for each parameter; its constants are bound already.

    The result is an array, or a tuple of results. Native code is made at the first call, once for all values of the
    dims. `kernel` is the Kernel of `main`, whose parameters are the inputs, the constants and the outputs.
    """

    def __init__(self, function: FunctionNode, lowered: Lowered, options: Options) -> None:
        self.function = function
        self.kernel = Kernel(lowered.func, options)
        self._constants = {buffer.name: constant.value for constant, buffer in lowered.constants.items()}

    def __call__(self, *arrays: npt.ArrayLike) -> Result:
        """Raises CallTypeError and CallValueError for arguments that do not fit."""
        return self._structured(self.kernel(*map(np.asarray, arrays), **self._constants))

    def interpret(self, *arrays: npt.ArrayLike) -> Result:
        """As a call, but run by the reference interpreter on `ir`."""
        return self._structured(self.kernel.interpret(*map(np.asarray, arrays), **self._constants))

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

    @property
    def timing(self) -> Timing:
        """Seconds of each stage of compilation that has run."""
        return self.kernel.timing

    def _structured(self, given: Array | tuple[Array, ...] | None) -> Result:
        leaves = given if isinstance(given, tuple) else (given,)
        return _built(self.function.result, iter(leaves))

    def __repr__(self) -> str:
        return f"<CompiledGraph {self.kernel!r}>"


def compile(function: FunctionNode, **choices: Unpack[Choices]) -> CompiledGraph:  # noqa: A001
    """The graph as native code; the options are those of `tl.compile`. Raises GraphError for what has no kernel."""
    with boundary:
        options = Options.of(choices)
        return CompiledGraph(function, lower(function), options)


def _built(of: Type, leaves: Iterator[Any]) -> Result:
    if isinstance(of, TensorType):
        made: Array = next(leaves)
        return made
    return tuple(_built(each, leaves) for each in of.fields)

"""Runs compiled code on a checked call."""

from __future__ import annotations

from enum import Enum
from typing import TYPE_CHECKING, Protocol

from tirlite.target.convention import FORK_JOIN, HOLDS, INTERRUPTED, POLL, PRINT

if TYPE_CHECKING:
    from collections.abc import Mapping

    from tirlite.codegen import Lowered
    from tirlite.diag import Message
    from tirlite.ir import PrimFunc
    from tirlite.runtime.artifact.artifact import Artifact
    from tirlite.runtime.bind import Array, Binding
    from tirlite.runtime.quick import QuickCall, Serves
    from tirlite.runtime.shape_plans import ShapePlans
    from tirlite.runtime.signature import Signature
    from tirlite.runtime.workspace import Workspaces


class Outcome(Enum):
    """What became of a call: it ran, or it must be repeated with another version of the function."""

    DONE = "done"
    IN_ORDER = "for the version that runs in order"
    ELSEWHERE = "for the other part of the function"


class Made(Protocol):
    """What an artifact was compiled from, for error messages."""

    @property
    def signature(self) -> Signature:
        """The signature of the function that was compiled, in its own variables."""

    @property
    def final(self) -> PrimFunc:
        """The function that was compiled."""

    @property
    def lowered(self) -> Lowered:
        """Its LLVM module, with the faults of its code."""


class Executable:
    """One function in native code, linked into this process. Several threads may run it at a time."""

    def __init__(self, artifact: Artifact, signature: Signature, plans: ShapePlans | None = None) -> None:
        """`signature`: as callers see it, without the parameter for plans. Raises KernelError for a missing extern."""
        self._artifact = artifact
        self._signature = signature
        self._plans = plans
        known: dict[str, int] = {}
        if POLL in artifact.code.externs or PRINT in artifact.code.externs:
            from tirlite.runtime.signals import signal_addresses

            known |= signal_addresses()
        if FORK_JOIN in artifact.code.externs:
            from tirlite.runtime.pool import pool_address

            known[FORK_JOIN] = pool_address()
        if HOLDS in artifact.code.externs:
            from tirlite.runtime.held import holds_address

            known[HOLDS] = holds_address()
        self._library = artifact.loaded(known)
        self._workspaces = _workspaces() if artifact.has_workspace else None
        # The last arguments and result of the size function: most calls repeat them.
        self._last_size: tuple[list[int | float] | None, int] = (None, 0)
        self._kernel = self._library.function(artifact.entry, artifact.parameters)
        size = artifact.size_entry
        self._size = self._library.function(size, artifact.size_parameters) if size else None

    @property
    def plans_kept(self) -> tuple[int, int]:
        """How many calls found a plan for their shape, and how many had to make one."""
        return (0, 0) if self._plans is None else self._plans.kept

    def quick(
        self, strides: int = 0, serves: Serves | None = None, known: Mapping[str, Array] | None = None
    ) -> QuickCall | None:
        """A function that calls the kernel on plain arrays in a hundredth of the time; None if there can be none.

        `strides`: how many strides precede the arrays. `known`: arrays that callers do not pass. See `quick_call`.
        """
        if self._artifact.plan_at >= 0:
            return None
        from tirlite.runtime.quick import Temporaries, quick_call

        artifact, temporaries = self._artifact, None
        if artifact.has_workspace:
            size = self._library.address(artifact.size_entry) if artifact.size_entry else 0
            temporaries = Temporaries(size, artifact.workspace_bytes, artifact.alignment)
        entry = self._library.address(artifact.entry)
        return quick_call(self._signature, entry, strides, temporaries, serves, known or {})

    def run(self, binding: Binding, made: Made) -> Outcome:
        """Runs a call that has passed all checks.
        Raises the error of the fault that stopped the kernel, and CallValueError if there is no memory for the
        temporaries.
        """
        operands = binding.operands
        # Keep a reference, so that the plan outlives the call.
        planned = self._plans.of(binding) if self._plans is not None else None
        if planned is not None:
            at = self._artifact.plan_at
            operands = [*operands[:at], planned.address, *operands[at:]]
        if not self._artifact.has_workspace:
            fault = self._kernel(*operands)
        else:
            fault = self._run_with_workspace(binding, operands, made)
        if not fault:
            return Outcome.DONE
        if fault == self.elsewhere:
            return Outcome.ELSEWHERE
        if fault == self.in_order:
            return Outcome.IN_ORDER
        raise self.message(fault, made).error()

    @property
    def elsewhere(self) -> int:
        """The fault that says that the call is for the other part of the function; 0 if there is none."""
        return self._artifact.elsewhere

    @property
    def in_order(self) -> int:
        """The fault that says that the call is for the sequential version; 0 if there is none."""
        return self._artifact.in_order

    def message(self, fault: int, made: Made) -> Message:
        """The message of a fault that the kernel returned.

        Raises the exception of a signal handler instead, if that ended the kernel.
        """
        if fault == INTERRUPTED:
            from tirlite.runtime.signals import raise_kept

            raise_kept()
        if fault > 0:
            return made.lowered.faults[fault - 1]
        from tirlite.runtime.signals import message_at

        return message_at(-fault, made.lowered.reports)

    def _run_with_workspace(self, binding: Binding, operands: list[int | float], made: Made) -> int:
        assert self._workspaces is not None
        size = self._workspace_bytes(binding, operands, made)
        alignment = self._artifact.alignment
        try:
            block = self._workspaces.take(size + alignment)
        except MemoryError:
            from tirlite.runtime.refused_size import refuse_workspace

            refuse_workspace(made.signature, binding, made.final, size)
        try:
            return self._kernel(*operands, block.aligned(alignment))
        finally:
            self._workspaces.give(block)

    def _workspace_bytes(self, binding: Binding, operands: list[int | float], made: Made) -> int:
        if self._size is None:
            return self._artifact.workspace_bytes
        at = self._artifact.plan_at
        scalars = [operands[scalar.position] for scalar in self._signature.scalars]
        plan = [operands[at]] if at >= 0 else []
        numbers = [*scalars, *plan, *binding.dims]
        known, size = self._last_size
        if numbers == known:
            return size
        size = self._size(*numbers)
        if size < 0:
            from tirlite.runtime.refused_size import refuse_size

            refuse_size(made.signature, binding, made.final, made.lowered.workspace.refused(size))
        # Do not remember a plan that the caller owns, as another may follow at its address, nor 0.0, which equals -0.0.
        has_zero = any(number == 0 and isinstance(number, float) for number in numbers)
        if (not plan or self._plans is not None) and not has_zero:
            self._last_size = (numbers, size)
        return size


def _workspaces() -> Workspaces:
    from tirlite.runtime.workspace import process_workspaces  # most small kernels need none

    return process_workspaces()

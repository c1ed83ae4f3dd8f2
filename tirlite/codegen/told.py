"""The values that a kernel left when it stopped in, the message out: what each numbered fault tells."""

from __future__ import annotations

from collections.abc import Sequence
from typing import Protocol, TypeAlias

from tirlite.diag import Message
from tirlite.ir import Assert, DType
from tirlite.record import record

Number: TypeAlias = bool | int | float


class Told(Protocol):
    """A fault that comes with values, each of which the kernel leaves as 64 bits."""

    @property
    def types(self) -> tuple[DType, ...]:
        """The types of the values, in order."""

    def message(self, values: Sequence[Number]) -> Message:
        """What is wrong, given the values."""

    def bare(self) -> Message:
        """The same where there was no memory for the values."""


@record
class AssertTold:
    """An assert that did not hold, with what its message tells and what its condition compared."""

    stmt: Assert

    @property
    def types(self) -> tuple[DType, ...]:
        from tirlite.ir import shown

        return shown(self.stmt).types

    def message(self, values: Sequence[Number]) -> Message:
        from tirlite.ir import failure

        return failure(self.stmt, values)

    def bare(self) -> Message:
        from tirlite.ir import failure

        return failure(self.stmt, (None,) * len(self.types))

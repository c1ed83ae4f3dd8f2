"""Something that must hold in, the branch to a fault that tells why it does not out."""

from __future__ import annotations

from tirlite.codegen.bounds import first_flagged
from tirlite.codegen.debug.marks import Mark, first_read
from tirlite.codegen.debug.shadows import Shadows
from tirlite.codegen.faults import KernelFunction
from tirlite.codegen.reports import PoisonReport, TrapReport
from tirlite.codegen.values import FALSE, Value, constant, zero
from tirlite.diag import Span
from tirlite.ir import Binary
from tirlite.ir.traps import QUOTIENTS, SHIFTS


class Checks:
    """Writes checks to `out`."""

    def __init__(self, out: KernelFunction, shadows: Shadows) -> None:
        self.out = out
        self.shadows = shadows

    @property
    def span(self) -> Span | None:
        return self.out.module.span

    def good(self, mark: Mark | None, use: str) -> None:
        """Stops where a value has poison that it must not have."""
        if mark is None:
            return
        out = self.out
        failed, passed = out.label("poisoned"), out.label("good")
        out.branch_if(out.any_lane(mark.flag), failed, passed)
        out.start(failed)
        buffer, indices = first_read(out, mark.origin)
        out.tell(PoisonReport(self.span, use, self.shadows.buffers, len(indices)), [buffer, *indices])
        out.start(passed)

    def trap(self, kind: type[Binary], a: Value, b: Value, mark: Mark | None) -> None:
        """Stops where an integer operation has no value for its operands. What is poisoned has none that is wrong."""
        out, dtype = self.out, a.dtype
        if kind in SHIFTS:
            wrong = out.compare("icmp uge", b, constant(dtype.bits, dtype))
        else:
            wrong = out.compare("icmp eq", b, constant(0, dtype))
        if kind in QUOTIENTS and dtype.is_signed:
            least = out.compare("icmp eq", a, constant(dtype.min, dtype))
            minus_one = out.compare("icmp eq", b, constant(-1, dtype))
            wrong = out.op("or", wrong, out.op("and", least, minus_one))
        if mark is not None:
            none = FALSE if dtype.lanes == 1 else zero(wrong.dtype)
            wrong = out.select(mark.flag, none, wrong)
        report = TrapReport(self.span, kind, dtype)
        out.stop_if(out.any_lane(wrong), report, lambda: [first_flagged(out, each, wrong) for each in (a, b)])

"""Trace applies steps to a function one by one, and refers to loops by their variables, as names may not be unique."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator

from tirlite.analysis.facts import Facts
from tirlite.diag import KernelError
from tirlite.ir import For, PrimFunc, Var, statements_of
from tirlite.rewrite.forms import FormLimits
from tirlite.rewrite.pipeline import Pass, after
from tirlite.schedules.handle import LoopName, name_of_loop
from tirlite.schedules.split import Split


class Trace:
    """Applies steps one by one; `facts` are those of the function after the steps `taken`.

    `figures` are the numbers behind the choices, for the author to read; `limits` say for which sizes of calls another
    version is worth having.
    """

    def __init__(self, facts: Facts) -> None:
        self.facts = facts
        self.taken: list[Pass] = []
        self.figures: list[str] = []
        self.limits = FormLimits()

    def apply(self, step: Pass) -> None:
        """Applies a step. Raises KernelError if it is refused, and changes nothing then."""
        self.facts = after(step, self.facts)
        self.taken.append(step)

    def keep(self, step: Pass, func: PrimFunc) -> None:
        """Records a step that is known to result in `func`, without proving it again."""
        self.facts = Facts(func)
        self.taken.append(step)

    def takes(self, steps: Iterable[Pass]) -> bool:
        """Applies steps; returns whether there were any."""
        before = len(self.taken)
        for step in steps:
            self.apply(step)
        return len(self.taken) > before

    def attempt(self, change: Callable[[], bool]) -> bool:
        """Runs `change`, which takes steps; undoes them if it fails or returns False. Returns whether kept."""
        known = self.facts, [*self.taken], [*self.figures], self.limits
        try:
            is_kept = change()
        except KernelError:
            is_kept = False
        if not is_kept:
            self.facts, self.taken, self.figures, self.limits = known
        return is_kept

    def loop(self, var: Var) -> For:
        """The loop over a variable."""
        return next(loop for loop in self._loops() if loop.var is var)

    def name(self, var: Var) -> LoopName:
        """How a step names the loop over a variable: by its name, with a place if others have the same."""
        return name_of_loop(self._loops(), var)

    def split(self, var: Var, by: int) -> tuple[Var, Var]:
        """Splits a loop; returns the variables of the outer and the inner one."""
        before = {loop.var for loop in self._loops()}
        self.apply(Split(self.name(var), by))
        outer, inner = (loop.var for loop in self._loops() if loop.var not in before)
        return outer, inner

    def _loops(self) -> Iterator[For]:
        """All loops, in program order."""
        return statements_of(self.facts.func.body, For)

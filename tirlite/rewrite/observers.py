"""What can be watched of a pipeline: the program after each pass, a folder of numbered files, validity."""

from __future__ import annotations

from pathlib import Path
from typing import TextIO

from tirlite.diag import public
from tirlite.diag.message import demand_kind
from tirlite.ir import PrimFunc, validate
from tirlite.record import record
from tirlite.rewrite.pipeline import Step
from tirlite.show import python_text, write


@record
class PrintAfter:
    """Prints the program after the passes called `names`, or after every pass, to `file` (standard output).

    In a terminal it is coloured.
    """

    names: tuple[str, ...] = ()
    file: TextIO | None = None

    def __call__(self, step: Step) -> None:
        if not self.names or step.name in self.names:
            write(python_text(f"{_heading(step)}\n{step.after}\n"), self.file)


@record
class DumpFolder:
    """Writes `00-input.py`, `01-PASS.py` ... into a folder, which is made where it is missing."""

    folder: Path

    def __call__(self, step: Step) -> None:
        self.folder.mkdir(parents=True, exist_ok=True)
        if step.number == 1:
            self._write("00-input.py", "# input", step.before)
        self._write(f"{step.number:02}-{step.name}.py", _heading(step), step.after)

    def _write(self, name: str, heading: str, func: PrimFunc) -> None:
        (self.folder / name).write_text(f"{heading}\n{func}\n", encoding="utf-8")


@public
def verify_after(step: Step) -> None:
    """Raises the validator's error where a pass has left an ill-formed program."""
    demand_kind("verify_after", step, Step)
    if step.changed:
        validate(step.after)


def _heading(step: Step) -> str:
    return f"# after {step.name}" + ("" if step.changed else " (unchanged)")

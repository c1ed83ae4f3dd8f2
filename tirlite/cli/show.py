"""`tirlite show FILE.py:NAME`: prints the stages of a kernel's compilation."""

from __future__ import annotations

import argparse
import json
import sys
import tempfile
from collections.abc import Iterator
from inspect import signature
from pathlib import Path
from typing import TYPE_CHECKING

from tirlite.cli.command_error import CommandMessage, input_at_fault
from tirlite.cli.options import file_path
from tirlite.cli.output_file import CannotWrite, write_file
from tirlite.cli.progress import gathered, working
from tirlite.diag import hint
from tirlite.record import replace
from tirlite.show import Piece, Role, Styled, page, python_text, write

if TYPE_CHECKING:
    from tirlite.driver import Kernel
    from tirlite.rewrite import Observer, Step

_DESCRIPTION = """\
Shows a kernel at the stages of its compilation. Without options, shows it as written.
With several options, prints each part under a heading.
"""
_EPILOG = """\
examples:
  tirlite show blur.py:blur --after storage-rewrite     the loop nest with its temporaries merged
  tirlite show blur.py:blur --plan --strategy tvm       the plan of another strategy
  tirlite show blur.py:blur --dump passes               one numbered file per pass
"""


class UnknownPass(CommandMessage):
    """The pipeline has no pass of the name that the command line gives.

    Example: `python -m tirlite show blur.py:blur --after normalise`, where the pass is called `normalize`.
    Fix: Take one of the names that the message lists.
    """

    title = "there is no pass `{name}`"
    help = "the passes are {known}{hint}"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "show",
        help="show a kernel before and after each pass, its plan, LLVM IR and assembly",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument("kernel", metavar="FILE.py:NAME", help="a Python file, and the name of a kernel in it")
    parser.add_argument("--after", metavar="PASS", help="print the function after this pass")
    parser.add_argument(
        "--dump", metavar="DIR", type=file_path, help="write the function after each pass into this folder"
    )
    parser.add_argument("--sequence", action="store_true", help="print the linear access sequence of the temporaries")
    parser.add_argument("--plan", action="store_true", help="print where each temporary lies and why, with a chart")
    parser.add_argument("--safety", action="store_true", help="print how each access is kept inside its buffer")
    parser.add_argument("--llvm", action="store_true", help="print the LLVM IR")
    parser.add_argument("--asm", action="store_true", help="print the assembly for this machine")
    parser.add_argument("--json", action="store_true", help="print JSON: the function before and after, and its plan")
    parser.add_argument("--html", metavar="FILE", type=file_path, help="write a page with the function and its plan")
    parser.add_argument("--strategy", metavar="S", help="plan with this strategy instead of the kernel's own")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints the views asked for."""
    from tirlite.cli.kernel_file import load_kernel

    with working(f"reading {arguments.kernel}"):
        kernel = load_kernel(arguments.kernel)
    if arguments.strategy is not None:
        with input_at_fault():
            kernel = kernel.with_options(replace(kernel.options, strategy=arguments.strategy))
    if arguments.after is not None:
        _refuse_unknown(arguments.after, _passes(kernel))
    if arguments.dump is not None:
        _dump(kernel, arguments.dump)
    if arguments.html is not None:
        write_file(arguments.html, page(f"Kernel {kernel.name}", [("", kernel._repr_html_())]).encode())
        if sys.stderr is not None:
            print(f"wrote {arguments.html}", file=sys.stderr)
    if arguments.json:
        with working(f"compiling {arguments.kernel}"):
            facts = _json(kernel)
        print(facts)
        return 0
    sections, code = gathered(_sections(kernel, arguments), lambda section: section[0])
    if not sections and arguments.dump is None and arguments.html is None and not code:
        sections = [("as written", python_text(str(kernel.ir)))]
    for number, (heading, text) in enumerate(sections):
        if len(sections) > 1:
            write([Piece("\n" * (number > 0)), Piece(f"# {heading}", Role.STRONG)])
        write(text)
    return code


def _json(kernel: Kernel) -> str:
    """All views of a kernel as JSON; symbolic sizes are strings."""
    plan = kernel.plan
    fields = {
        "name": kernel.name,
        "signature": str(signature(kernel)),
        "written": str(kernel.ir),
        "lowered": str(kernel.lowered),
        "passes": _passes(kernel),
        "plan": json.loads(plan.to_json()),
    }
    return json.dumps(fields, indent=1)


def _passes(kernel: Kernel) -> list[str]:
    """The names of a kernel's passes, in order."""
    from tirlite.rewrite.pipelines import pipeline
    from tirlite.schedules.auto import auto

    return [
        each.name for each in pipeline(kernel.options, auto=auto(kernel.options.target, given=kernel.options.schedule))
    ]


def _sections(kernel: Kernel, arguments: argparse.Namespace) -> Iterator[tuple[str, Styled]]:
    if arguments.sequence:
        from tirlite.analysis import linear_sequence
        from tirlite.rewrite import Normalize

        yield "linear access sequence", python_text(str(linear_sequence(Normalize()(kernel.ir))))
    if arguments.after is not None:
        yield f"after {arguments.after}", python_text(_after(kernel, arguments.after))
    if arguments.plan:
        plan = kernel.plan
        yield "storage plan", (*plan.styled(), Piece(f"\n\n{plan.explain()}\n\n{plan.to_text()}"))
    if arguments.safety:
        yield "safety", (Piece(str(kernel.safety)),)
    if arguments.llvm:
        yield "LLVM IR", (Piece(kernel.llvm.rstrip()),)
    if arguments.asm:
        yield "assembly", (Piece(kernel.asm.rstrip()),)


def _refuse_unknown(name: str, known: list[str]) -> None:
    if name not in known:
        listed = ", ".join(f"`{each}`" for each in known)
        raise UnknownPass(name, listed, hint(name, known)).error()


def _after(kernel: Kernel, name: str) -> str:
    """The function after the last pass of this name."""
    left: list[str] = []

    def note(step: Step) -> None:
        if step.name == name:
            left.append(str(step.after))

    _lower(kernel, note)
    return left[-1]


def _lower(kernel: Kernel, observer: Observer) -> None:
    """Runs a kernel's passes again with one more observer."""
    options = kernel.options
    _ = kernel.with_options(replace(options, observers=(*options.observers, observer))).lowered


def _dump(kernel: Kernel, folder: Path) -> None:
    """Writes the function after each pass into the folder, each file atomically."""
    from tirlite.rewrite import DumpFolder

    with tempfile.TemporaryDirectory() as elsewhere:
        _lower(kernel, DumpFolder(Path(elsewhere)))
        try:
            folder.mkdir(parents=True, exist_ok=True)
        except OSError as error:
            raise CannotWrite(str(folder), error.strerror or str(error)).error() from None
        for file in sorted(Path(elsewhere).iterdir()):
            write_file(folder / file.name, file.read_bytes())
            print(folder / file.name)

"""`tirlite plan FILE`: makes a checked storage plan for lifetimes in a CSV file, or for an ONNX model."""

from __future__ import annotations

import argparse
import re
import sys
from collections.abc import Mapping
from typing import TYPE_CHECKING

from tirlite.cli.command_error import CommandMessage, input_at_fault
from tirlite.cli.options import add_constant, add_several, byte_count, decimal, file_path, integer
from tirlite.cli.output_file import real_path, refuse_unwritable, write_file
from tirlite.cli.progress import FirstFit, interruptible, working
from tirlite.diag import CapacityError
from tirlite.show import counted

if TYPE_CHECKING:
    from tirlite.plan import Plan, Problem
    from tirlite.plan.search.engine import Engine
    from tirlite.rewrite.options import Choices

_DESCRIPTION = """\
Plans storage for buffers with known lifetimes: a CSV file with the columns id, lower, upper, size, and optionally
alignment, gaps and offset; or for each such file in a folder. Cells are separated by commas, semicolons or tabs, as in
the first line. Instead of size a table may have size_expr, an expression over names of positive integers; the plan then
holds for all their values. Every plan is checked before anything is printed or written.

For a model, *.onnx, plans the tensors between its operators, as tl.graph.compile does. The plan holds for all values of
the model's dims, and so does --capacity; --dim shows the plan at one value, --bind fixes a dim before planning.
"""
_EPILOG = """\
exit codes:
  0 success, 1 a bug in tirlite, 2 bad arguments or malformed input, 3 no plan fits the capacity

examples:
  tirlite plan lifetimes.csv --capacity 1048576 --strategy exact --time-limit 60 --out offsets.csv
  tirlite plan lifetimes.csv --facts 'N<=64, N%8==0' --html plan.html
  tirlite plan lifetimes.csv --bind N=4 --json
  tirlite plan - --capacity 64KiB < lifetimes.csv
  tirlite plan instances/ --strategy pack
  tirlite plan encoder.onnx --dim batch=4 --html plan.html
  tirlite plan encoder.onnx --bind batch=1 --bind sequence=128 --capacity 65536
"""
# Options for tables only; None or [] if not given.
_OF_TABLES = ("out", "stop_at_fit")
# Strategies that search, and their default budget of nodes: some seconds.
_SEARCHES = ("auto", "exact")
_BUDGET = 1_000_000
_VALUE = re.compile(r"(?P<name>[^\W\d]\w*)\s*==?\s*(?P<value>-?[0-9]{1,4000})")
# With at most so many seconds, there is no time to compile a search engine.
_BRIEF = 0.5


class NoSuchFile(CommandMessage):
    """The file with the lifetimes is not there.

    Example: `tirlite plan lifetime.csv`, where the file is called `lifetimes.csv`.
    Fix: Correct the path.
    """

    code = "no-lifetimes-file"
    title = "cannot read `{path}`: {reason}"


class BadPlanOption(CommandMessage):
    """A number on the command line is out of its range.

    Example: `tirlite plan lifetimes.csv --capacity -1`.
    Fix: Give a number that the message allows.
    """

    title = "`{option} {value}` makes no sense"
    help = "{advice}"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "plan",
        help="plan storage for the lifetimes in a CSV file, or for the tensors of an ONNX model",
        description=_DESCRIPTION,
        epilog=_EPILOG,
        formatter_class=argparse.RawDescriptionHelpFormatter,
    )
    parser.add_argument(
        "file",
        metavar="FILE",
        type=file_path,
        help="a CSV file, - for standard input, a folder, or a model, *.onnx",
    )
    parser.add_argument(
        "--capacity", metavar="N", type=byte_count, help="available bytes, such as 64KiB; no limit by default"
    )
    parser.add_argument("--stop-at-fit", action="store_const", const=True, help="end the search once a plan fits")
    parser.add_argument("--strategy", metavar="S", default="auto", help="the planning strategy (%(default)s)")
    parser.add_argument("--match-range", metavar="R", type=integer, help="share: reuse 1/R to R times the size")
    parser.add_argument("--time-limit", metavar="S", type=decimal, help="seconds to search; Ctrl-C ends it early")
    parser.add_argument("--budget", metavar="NODES", type=integer, help="nodes to search; the same plan anywhere")
    parser.add_argument(
        "--threads", metavar="T", type=integer, default=1, help="threads for the search of a table (%(default)d)"
    )
    parser.add_argument(
        "--align", metavar="A", type=byte_count, default=1, help="alignment of every buffer, a power of two"
    )
    add_several(parser, "--facts", "F", "known facts about the names in sizes, or dims: 'N<=64, N%%8==0'")
    add_several(parser, "--bind", "N=4", "values for names in sizes, separated by commas")
    add_several(parser, "--dim", "NAME=4", "show the plan at this dim")
    add_constant(parser)
    parser.add_argument("--out", metavar="FILE", type=file_path, help="write the table with an added column of offsets")
    parser.add_argument("--json", action="store_true", help="print JSON")
    parser.add_argument("--svg", metavar="FILE", type=file_path, help="write a picture of offsets over time")
    parser.add_argument("--html", metavar="FILE", type=file_path, help="write a page with the plan, before and after")
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Plans, writes the files asked for, and prints."""
    from tirlite.cli.plan_report import plan_json, plan_text

    _refuse_senseless(arguments)
    _refuse_outputs(arguments)
    if arguments.file.is_dir():
        from tirlite.cli.plan_report import plan_folder

        return plan_folder(arguments, _of_table)
    make = _of_model if arguments.file.suffix.lower() == ".onnx" else _of_table
    fitting = FirstFit(arguments.capacity)
    with interruptible() as interrupt:
        problem, plan = make(arguments, fitting)
    _write(problem, plan, arguments)
    seconds = fitting.seconds_of(plan)
    print(plan_json(plan, seconds) if arguments.json else plan_text(plan, str(arguments.file)))
    return interrupt.code


def _of_table(arguments: argparse.Namespace, fitting: FirstFit) -> tuple[Problem, Plan]:
    from tirlite.cli.plan_report import failure_json
    from tirlite.plan.report.witness import refuse_impossible

    if arguments.dim:
        raise BadPlanOption("--dim", arguments.dim[0], "--bind gives values to the names in a table").error()
    if arguments.constant:
        raise BadPlanOption("--constant", arguments.constant[0], "it is for models, not for tables").error()
    with input_at_fault():
        problem = _problem(arguments, _binding(arguments.bind))
        try:
            refuse_impossible(problem)
            plan = _plan(problem, arguments, fitting)
            if arguments.out is not None:
                _refuse_unsafe(problem, plan)
        except CapacityError as error:
            if arguments.json:
                print(failure_json(arguments.strategy, arguments.capacity, error, problem))
            raise
    return problem, plan


def _of_model(arguments: argparse.Namespace, _: FirstFit) -> tuple[Problem, Plan]:
    from tirlite.cli.options import by_identifier, dims_of_model, parsed_constants, parsed_dims
    from tirlite.cli.plan_model import ModelFacts, model_plan
    from tirlite.cli.plan_report import failure_json

    for name in _OF_TABLES:
        given = getattr(arguments, name)
        if given is not None and given != []:
            value = ", ".join(given) if isinstance(given, list) else str(given)
            raise BadPlanOption(f"--{name.replace('_', '-')}", value, "it is for tables, not for models").error()
    if arguments.align != 1:
        raise BadPlanOption("--align", str(arguments.align), "the tensors of a model have their alignment").error()
    with input_at_fault():
        bound = parsed_dims([part for each in arguments.bind for part in each.split(",")], "--bind")
        dims = dims_of_model([arguments.file], bound, arguments.facts)
        sizes = by_identifier(arguments.file, parsed_dims(arguments.dim))
        constants = parsed_constants(arguments.constant)
        choices: Choices = {
            "strategy": arguments.strategy,
            "capacity": arguments.capacity,
            "match_range": arguments.match_range,
            "budget": _budget(arguments) if arguments.strategy == "exact" else arguments.budget,
            "time_limit": arguments.time_limit,
        }
        try:
            with working(f"planning {arguments.file}"):
                plan = model_plan(arguments.file, ModelFacts(dims, sizes, constants), choices)
        except CapacityError as error:
            if arguments.json:
                print(failure_json(arguments.strategy, arguments.capacity, error))
            raise
    return plan.problem, plan


def _problem(arguments: argparse.Namespace, bind: Mapping[str, int]) -> Problem:
    from tirlite.plan import Pool, read_csv

    pool = Pool("global", capacity=arguments.capacity, align=arguments.align)
    source = sys.stdin if str(arguments.file) == "-" else arguments.file
    if source is None:
        raise NoSuchFile("-", "standard input is closed").error()
    try:
        return read_csv(source, pools=[pool], facts=", ".join(arguments.facts), bind=bind)
    except OSError as error:
        raise NoSuchFile(str(arguments.file), error.strerror or str(error)).error() from None


def _refuse_senseless(arguments: argparse.Namespace) -> None:
    if arguments.capacity is not None and arguments.capacity < 0:
        raise BadPlanOption("--capacity", str(arguments.capacity), "a capacity is zero bytes or more").error()
    if arguments.stop_at_fit and arguments.capacity is None:
        raise BadPlanOption("--stop-at-fit", "without --capacity", "give the bytes to fit with --capacity").error()
    if arguments.match_range is not None and arguments.match_range < 0:
        raise BadPlanOption("--match-range", str(arguments.match_range), "give a whole number, zero or more").error()
    if arguments.align < 1 or arguments.align & (arguments.align - 1):
        raise BadPlanOption("--align", str(arguments.align), "an alignment is a power of two, in bytes").error()
    if arguments.time_limit is not None and not arguments.time_limit >= 0:
        raise BadPlanOption("--time-limit", str(arguments.time_limit), "give seconds, zero or more").error()
    if arguments.budget is not None and arguments.budget < 0:
        raise BadPlanOption("--budget", str(arguments.budget), "give a number of nodes, zero or more").error()
    if arguments.threads < 1:
        raise BadPlanOption("--threads", str(arguments.threads), "give a number of threads, one or more").error()


def _refuse_outputs(arguments: argparse.Namespace) -> None:
    """Raises CommandError if an output cannot be written, or would overwrite the input or another output.

    Only the table with offsets may overwrite the input.
    """
    taken = {real_path(arguments.file): "the input is"}
    if arguments.out is not None:
        taken[real_path(arguments.out)] = "--out writes"
    for option, path in (("--svg", arguments.svg), ("--html", arguments.html)):
        if path is None:
            continue
        place = real_path(path)
        if place in taken:
            raise BadPlanOption(option, str(path), f"give another name: {taken[place]} there").error()
        taken[place] = f"{option} writes"
    for path in (arguments.out, arguments.svg, arguments.html):
        if path is not None:
            refuse_unwritable(path)


def _binding(given: list[str]) -> dict[str, int]:
    """The values in `N=4, M=8`."""
    values: dict[str, int] = {}
    for text in (part.strip() for each in given for part in each.split(",")):
        if not text:
            continue
        value = _VALUE.fullmatch(text)
        if value is None or int(value["value"]) < 1:
            raise BadPlanOption("--bind", text, "give names positive integers, as in `--bind N=4,M=8`").error()
        if values.setdefault(value["name"], int(value["value"])) != int(value["value"]):
            raise BadPlanOption("--bind", text, f"it is given {values[value['name']]} already").error()
    return values


def _plan(problem: Problem, arguments: argparse.Namespace, fitting: FirstFit) -> Plan:
    from tirlite.plan import solve

    if arguments.strategy not in _SEARCHES:
        with working(f"planning {counted(len(problem.requests), 'buffer')}"):
            return solve(problem, arguments.strategy, match_range=arguments.match_range)
    from tirlite.cli.progress import showing

    engine = _engine(arguments.time_limit)
    budget = arguments.budget if engine is not None and _is_huge(problem, engine) else _budget(arguments)
    limits = budget, arguments.time_limit
    with showing(sys.stderr) as listener:
        return solve(
            *(problem, arguments.strategy, *limits, engine, fitting.listening(listener)),
            threads=arguments.threads,
            match_range=arguments.match_range,
            stop_at_fit=bool(arguments.stop_at_fit),
        )


def _engine(time_limit: float | None) -> Engine | None:
    """A search engine that compiles itself at first use; None if that would take most of the time limit."""
    if time_limit is not None and time_limit <= _BRIEF:
        return None
    from tirlite.solver import LateEngine

    return LateEngine()


def _is_huge(problem: Problem, engine: Engine) -> bool:
    """Whether the sizes are too large for compiled code; Python searches a hundredth of the nodes in the time."""
    return sum(each.size for each in problem.requests if isinstance(each.size, int)) > engine.largest


def _budget(arguments: argparse.Namespace) -> int | None:
    """The given budget; a default of some seconds if nothing limits the search."""
    budget: int | None = arguments.budget
    return _BUDGET if budget is None and arguments.time_limit is None else budget


def _write(problem: Problem, plan: Plan, arguments: argparse.Namespace) -> None:
    from tirlite.plan import write_csv

    if arguments.out is not None:
        write_file(arguments.out, write_csv(problem, plan).encode())
    if arguments.svg is not None:
        write_file(arguments.svg, plan.to_svg().encode())
    if arguments.html is not None:
        write_file(arguments.html, _page(plan, arguments).encode())
    for path in (arguments.out, arguments.svg, arguments.html):
        if path is not None and sys.stderr is not None:
            print(f"wrote {path}", file=sys.stderr)


def _page(plan: Plan, arguments: argparse.Namespace) -> str:
    """The HTML page of the plan; for a table planned by shape, with sliders for its dims."""
    title = f"Storage plan of {arguments.file.name}"
    is_file = str(arguments.file) != "-" and arguments.file.suffix.lower() != ".onnx"
    if arguments.strategy == "per_shape" and arguments.bind and is_file:
        from tirlite.plan import PerShape

        problem = _problem(arguments, {})
        if problem.dims:
            return PerShape(problem).to_html(title)
    return plan.to_html(title)


def _refuse_unsafe(problem: Problem, plan: Plan) -> None:
    """Checks the slots' addresses as one arena, since padding between slots may exceed the capacity."""
    from tirlite.plan import Plan, solve
    from tirlite.plan.layout import addresses

    if len(plan.pools) > 1 and not problem.dims:
        (memory,) = problem.memories
        places = {name: (memory, place) for name, place in addresses(plan).items()}
        solve(problem, lambda problem: Plan.of(problem, places, plan.strategy))

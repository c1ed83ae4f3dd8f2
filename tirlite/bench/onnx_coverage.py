"""`tirlite onnx-coverage`: how many of the onnx package's test cases pass, and why others do not."""

from __future__ import annotations

import argparse
import sys
import warnings
from collections import Counter
from collections.abc import Iterator, Sequence
from typing import TYPE_CHECKING

from tirlite.cli.progress import gathered

if TYPE_CHECKING:
    from tirlite.bench.onnx_cases import Outcome

# The number of cases between two lines of a log: tens of seconds of native code.
_REPORT_EVERY = 100


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "onnx-coverage",
        help="run the onnx package's own cases: how many pass, and why others cannot be read",
        description="Runs the cases of onnx.backend.test, and counts what passes, what cannot be read, and why.",
    )
    parser.add_argument("--compiled", action="store_true", help="run native code, not `evaluate`: minutes")
    parser.add_argument("--only", metavar="TEXT", default="", help="the cases with this in their name")
    parser.add_argument("--list", action="store_true", help="name each case that does not pass, as soon as it has run")
    parser.add_argument(
        "--shard", metavar="K/N", type=_shard, default=(1, 1), help="the K-th of N parts, K from 1: as many processes"
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Runs and prints; exit code 1 if a case was wrong or failed, 2 if no case has the name."""
    from tirlite.bench.onnx_cases import FAILED, KINDS, WRONG, outcomes

    with warnings.catch_warnings():
        warnings.simplefilter("ignore")
        cases = outcomes(KINDS, pattern=arguments.only, compiled=arguments.compiled, shard=arguments.shard)
        found, code = gathered(_reported(cases, listed=arguments.list), lambda case: case.name)
    if not found and code:
        return code
    if not found:
        print(f"onnx-coverage: no case has `{arguments.only}` in its name", file=sys.stderr)
        return 2
    print(_text(found))
    return code or (1 if any(each.state in (WRONG, FAILED) for each in found) else 0)


def _shard(text: str) -> tuple[int, int]:
    """`K/N` as two numbers."""
    part, _, parts = text.partition("/")
    if not (part.isdecimal() and parts.isdecimal() and 1 <= int(part) <= int(parts)):
        raise argparse.ArgumentTypeError(f"`{text}` is not K/N with 1 <= K <= N")
    return int(part), int(parts)


def _reported(cases: Iterator[Outcome], *, listed: bool) -> Iterator[Outcome]:
    """The same cases; reports progress every hundred cases if standard error is not a terminal."""
    from tirlite.bench.onnx_cases import PASS

    for count, each in enumerate(cases, start=1):
        if listed and each.state != PASS:
            print(f"{each.state}: {each.name}: {each.why}", flush=True)
        if count % _REPORT_EVERY == 0 and not sys.stderr.isatty():
            print(f"{count} done, the last: {each.name}", file=sys.stderr, flush=True)
        yield each


def _text(found: Sequence[Outcome]) -> str:
    from tirlite.bench.onnx_cases import FAILED, KINDS, PASS, UNSUPPORTED, WRONG
    from tirlite.show import table

    rows = []
    for kind in (*KINDS, "all"):
        of = [each for each in found if kind in (each.kind, "all")]
        counts = Counter(each.state for each in of)
        bound = sum(each.is_bound for each in of if each.state == PASS)
        rows.append((kind, len(of), counts[PASS], bound, counts[UNSUPPORTED], counts[WRONG], counts[FAILED]))
    heading = ("cases", "run", "pass", "with shapes given", "unsupported", "wrong", "failed")
    parts = [table(heading, rows)]
    reasons = Counter(each.why.rpartition("`: ")[2] for each in found if each.state == UNSUPPORTED)
    if reasons:
        parts.append(table(("cases", "unsupported because"), [(n, why) for why, n in reasons.most_common()]))
    parts.append(_by_operator(found))
    return "\n\n".join(parts)


def _by_operator(found: Sequence[Outcome]) -> str:
    """The number of operators that pass all their cases, and the others with their counts."""
    from tirlite.bench.onnx_cases import PASS
    from tirlite.show import table

    cases = Counter(op for each in found for op in each.operators)
    passed = Counter(op for each in found for op in each.operators if each.state == PASS)
    open_ = [(op, count, passed[op]) for op, count in sorted(cases.items()) if passed[op] < count]
    head = f"operators: {len(cases)}, of which {len(cases) - len(open_)} pass all of their cases"
    some = sum(1 for op in cases if passed[op])
    head += f", {some} some"
    return f"{head}\n\n{table(('operator', 'cases', 'pass'), open_)}" if open_ else head

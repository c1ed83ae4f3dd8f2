"""`tirlite bench WHAT`: figures, each with its bar."""

from __future__ import annotations

import argparse
import sys


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds the command to those of the program."""
    parser = commands.add_parser(
        "bench",
        help="measure tirlite on this machine",
        description="Measures tirlite on this machine, and prints each figure with its bar.",
    )
    benches = parser.add_subparsers(title="what is measured", metavar="WHAT", required=True)
    compiler = benches.add_parser(
        "compile",
        help="the speed of the compiler: import, first result, calls, passes, extreme programs",
        description="Measures the speed of the compiler, in a minute or so. Leave the machine idle meanwhile.",
    )
    compiler.add_argument("--json", action="store_true", help="print one object for machines")
    compiler.add_argument("--quick", action="store_true", help="small programs and few runs, to see that it works")
    compiler.set_defaults(run=run_compile)


def run_compile(arguments: argparse.Namespace) -> int:
    """Measures and prints."""
    from tirlite.cli.bench_compile import compiler_figures
    from tirlite.cli.figures import figures_json, figures_text

    figures = []
    for figure in compiler_figures(quick=arguments.quick):
        figures.append(figure)
        if sys.stderr.isatty():  # whoever waits at a terminal sees that it goes on
            print(f"measured: {figure.name.strip()}", file=sys.stderr)
    print(figures_json(figures) if arguments.json else figures_text(figures))
    return 0

"""Stands for the commands of a checkout where tirlite is installed without them."""

from __future__ import annotations

import argparse

from tirlite.cli.command_error import CommandMessage


class InCheckout(CommandMessage):
    """A command is called that is in a checkout of tirlite, and not in the installed package.

    Example: `tirlite bench compile`, where tirlite was installed from a wheel.
    Fix: Call it in a checkout: `python -m tirlite bench compile`.
    """

    title = "`{command}` measures tirlite, and is not installed"
    help = "call `python -m tirlite {command}` in a checkout of tirlite's sources"


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    """Adds commands that say where to find them."""
    for name in ("bench", "onnx-coverage"):
        # No character begins an option, so that all that follows goes by.
        parser = commands.add_parser(name, help="only in a checkout of the sources", add_help=False, prefix_chars="\0")
        parser.add_argument("rest", nargs="*")
        parser.set_defaults(run=run, command=name)


def run(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    raise InCheckout(arguments.command).error()

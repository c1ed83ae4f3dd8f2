"""Placeholders for the commands that exist only in a checkout of tirlite."""

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
    """Adds commands that tell where to find the real ones."""
    for name in ("bench", "onnx-coverage"):
        # With no prefix character, all further arguments are accepted.
        parser = commands.add_parser(name, help="only in a checkout of the sources", add_help=False, prefix_chars="\0")
        parser.add_argument("rest", nargs="*")
        parser.set_defaults(run=run, command=name)


def run(arguments: argparse.Namespace) -> int:
    """Raises CommandError."""
    raise InCheckout(arguments.command).error()

"""`python -m tirlite cache`: shows where compiled code is cached and how much there is, or deletes it."""

from __future__ import annotations

import argparse


def add(commands: argparse._SubParsersAction[argparse.ArgumentParser]) -> None:
    parser = commands.add_parser(
        "cache",
        help="show where compiled code is cached and how much there is, or delete it",
        description="Shows the folder in which compiled code is cached, and how much there is; `clear` deletes it.",
    )
    parser.add_argument(
        "what",
        nargs="?",
        choices=("where", "size", "clear"),
        help="the folder, the bytes in it, or delete all; the first two by default",
    )
    parser.set_defaults(run=run)


def run(arguments: argparse.Namespace) -> int:
    """Prints what was asked for; always 0."""
    from tirlite.runtime.cache import MOST_BYTES, folder
    from tirlite.show import counted

    place = folder()
    if place is None:
        print("nothing is kept: TIRLITE_CACHE is 0, or there is no place for it")
        return 0
    if arguments.what == "clear":
        print(f"{counted(place.clear(), 'file')} deleted")
        return 0
    if arguments.what != "size":
        refusal = place.refusal
        print(place.path if not refusal else f"{place.path}, which is not used: {refusal}")
    if arguments.what != "where":
        files = place.files()
        held = sum(each.size for each in files)
        print(f"{counted(held, 'byte')} in {counted(len(files), 'file')}, of at most {MOST_BYTES:,}")
    return 0

"""What the command line says of a model in, numbers for its dims and arrays for its inputs out."""

from __future__ import annotations

import argparse
from pathlib import Path
from typing import TYPE_CHECKING, Any

from tirlite.cli.command_error import CommandError
from tirlite.diag import Message

if TYPE_CHECKING:
    import numpy.typing as npt


class BadRunOption(Message):
    """An option of a command does not fit the model that it takes.

    Example: `tirlite run net.onnx --dim batch=many`.
    Fix: Write `--dim NAME=NUMBER` and `--input NAME=FILE.npy` with names that the model has.
    """

    code = "bad-run-option"
    raises = CommandError
    title = "`{option}`: {why}"
    help = "--dim NAME=NUMBER gives an extent a number, --input NAME=FILE.npy an input an array"

    option: str
    why: str


def add_constant(parser: argparse.ArgumentParser) -> None:
    """Adds the option that makes inputs constants."""
    text = "an input that is known: a number or *.npy, where shapes or branches depend on it"
    parser.add_argument("--constant", metavar="NAME=VALUE", action="append", default=[], help=text)


def told_dims(given: list[str], option: str = "--dim") -> dict[str, int]:
    """The values of `--dim NAME=N`, by name. Raises CommandError for what is not written so."""
    return {name: _count(option, name, count) for name, count in pairs(option, given)}


def told_values(given: list[str]) -> dict[str, tuple[int, ...]]:
    """The values of `--dim NAME=N,M`, by name. Raises CommandError for what is not written so."""
    return {
        name: tuple(_count("--dim", name, count) for count in counts.split(","))
        for name, counts in pairs("--dim", given)
    }


def told_constants(given: list[str]) -> dict[str, npt.NDArray[Any]]:
    """The values of `--constant NAME=VALUE`, by name. Raises CommandError for what is no number and no array."""
    import numpy as np

    found = {}
    for name, text in pairs("--constant", given):
        option = f"--constant {name}={text}"
        if text.endswith(".npy"):
            found[name] = loaded(option, text)
            continue
        try:
            found[name] = np.array(int(text) if text.lstrip("+-").isdecimal() else float(text))
        except ValueError:
            raise BadRunOption(option, "the value is no number and no *.npy").error() from None
    return found


def loaded(option: str, file: str) -> npt.NDArray[Any]:
    """The array in a file. Raises CommandError."""
    import numpy as np

    try:
        found = np.load(Path(file), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        raise BadRunOption(option, f"it cannot be read: {error}").error() from None
    if not isinstance(found, np.ndarray):
        raise BadRunOption(option, "it holds several arrays").error()
    return found


def pairs(option: str, given: list[str]) -> list[tuple[str, str]]:
    """Names and values of `NAME=VALUE`. Raises CommandError for what is not written so."""
    made = []
    for each in given:
        name, sign, value = each.rpartition("=")
        if not (name and sign and value):
            raise BadRunOption(f"{option} {each}", "it has no name, or no value").error()
        made.append((name, value))
    return made


def _count(option: str, name: str, text: str) -> int:
    if not text.isdecimal():
        raise BadRunOption(f"{option} {name}={text}", "the value is no whole number").error()
    return int(text)

"""Parses options: numbers in ranges, values of a model's dims, arrays for its inputs."""

from __future__ import annotations

import argparse
import re
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tirlite.cli.command_error import CommandMessage
from tirlite.diag import TirliteError

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph import Function
    from tirlite.sizes import Dim, SizeLike


_WHOLE = re.compile(r"[+-]?\d{1,4000}", re.ASCII)
_BYTES = re.compile(r"(?P<number>-?\d{1,4000})\s*(?P<unit>[A-Za-z]*)", re.ASCII)
UNITS: Mapping[str, int] = {
    "": 1,
    "B": 1,
    "kB": 1000,
    **{f"{letter}B": 1000**power for power, letter in enumerate("KMGT", 1)},
    **{f"{letter}iB": 1024**power for power, letter in enumerate("KMGT", 1)},
}


def whole(least: int, most: int | None = None) -> Callable[[str], int]:
    """An argparse type: a whole number from `least` to `most`, both included."""
    wanted = f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most}"

    def number(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else least - 1
        if value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"`{text}` is not {wanted}")
        return value

    return number


def is_integer(text: str) -> bool:
    """Whether `text` is an integer in ASCII digits."""
    return _WHOLE.fullmatch(text) is not None


def integer(text: str) -> int:
    """An integer in ASCII digits."""
    if not is_integer(text):
        raise ArgumentTypeError(f"`{text}` is not an integer")
    return int(text)


def file_path(text: str) -> Path:
    """A path; an empty text, as of a variable of the shell that is not set, would be the current folder."""
    if not text:
        raise ArgumentTypeError("the path is empty")
    return Path(text)


def byte_count(text: str) -> int:
    """A number of bytes: `65536`, `64KiB` of 1024 bytes each, `1MB` of a million."""
    match = _BYTES.fullmatch(text.strip())
    if match is None or match["unit"] not in UNITS:
        raise ArgumentTypeError(f"`{text}` is not a number of bytes, as in 65536, 64KiB or 1MB")
    return int(match["number"]) * UNITS[match["unit"]]


def decimal(text: str) -> float:
    """A number in Python's syntax, in ASCII digits without `_`."""
    try:
        return float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise ArgumentTypeError(f"`{text}` is not a number") from None


def seconds(text: str) -> float:
    """A number of seconds, zero or more."""
    try:
        value = decimal(text)
    except ArgumentTypeError:
        value = -1.0
    if not 0 <= value < inf:
        raise ArgumentTypeError(f"`{text}` is not a number of seconds, zero or more")
    return value


V = TypeVar("V")

# A fact about a dim whose name is an identifier: comparisons with numbers.
_OF_IDENTIFIER = re.compile(r"(?=.*[<>=])\s*(\d+\s*[<>=]+\s*)?[^\W\d]\w*\s*([<>=%][\s\d<>=%]*)?|\s*")


# The syntax and meaning of each option about models.
_FORMS = {
    "--dim": "--dim NAME=NUMBER gives a dim of the model a value",
    "--bind": "--bind NAME=NUMBER makes a dim of the model a number",
    "--input": "--input NAME=FILE.npy gives an input of the model an array",
    "--facts": "--facts F tells what is known of the dims of a model",
    "--constant": "--constant NAME=NUMBER or NAME=FILE.npy makes an input of the model a constant",
}


class BadRunOption(CommandMessage):
    """An option of a command does not fit the model that it takes.

    Example: `tirlite run net.onnx --dim batch=many`.
    Fix: Write `--dim NAME=NUMBER` and `--input NAME=FILE.npy` with names that the model has.
    """

    title = "`{option}`: {why}"
    help = "{form}"


def bad_option(option: str, why: str) -> TirliteError:
    """The error for an option that does not fit, given as it was written; its help shows the syntax."""
    return BadRunOption(option, why, _FORMS[option.partition(" ")[0]]).error()


def add_several(parser: argparse.ArgumentParser, option: str, form: str, text: str) -> None:
    """Adds an option that may be given several times."""
    parser.add_argument(option, metavar=form, action="append", default=[], help=text)


def add_constant(parser: argparse.ArgumentParser) -> None:
    text = "make an input a constant, a number or *.npy, where shapes or branches depend on it"
    add_several(parser, "--constant", "NAME=VALUE", text)


def add_known(parser: argparse.ArgumentParser) -> None:
    """Adds the options with facts that must be known before a model is read."""
    add_several(parser, "--bind", "NAME=N", "fix a dim before the model is read")
    add_several(parser, "--facts", "F", "known facts about dims: 's<=512, batch%%8==0'")
    add_constant(parser)


def dims_of_model(models: Iterable[Path], bound: Mapping[str, int], facts: list[str]) -> dict[str, SizeLike]:
    """The dims to pass to `from_onnx`: numbers, and dims with facts, by identifiers or by the names in the models.

    Raises PlanError for text that is not a fact.
    """
    from tirlite.plan import parse_facts

    text = ", ".join(facts)
    if not all(_OF_IDENTIFIER.fullmatch(each) for each in text.split(",")):
        from tirlite.graph.onnx.model import dim_names_of

        names = {raw: name for model in models for raw, name in dim_names_of(model).items() if raw != name}
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        text = re.sub(longest_first, lambda met: names[met[0]], text) if names else text
    return {**parse_facts(text), **bound}


def by_identifier(model: Path, values: Mapping[str, V]) -> dict[str, V]:
    """Values by the model's names of dims, as values by the identifiers that these become."""
    if all(name.isidentifier() and not iskeyword(name) for name in values):
        return dict(values)
    from tirlite.graph.onnx.model import dim_names_of

    names = dim_names_of(model)
    return {names.get(name, name): value for name, value in values.items()}


def refuse_other_dims(function: Function, values: Mapping[str, int], binding: Mapping[Dim, int]) -> None:
    """Raises CommandError if a given dim is not in the model, or has another value there."""
    from tirlite.graph.sample_arguments import sizes_by_name
    from tirlite.sizes import evaluate

    named = sizes_by_name(function)
    for name, value in values.items():
        if name not in named:
            raise bad_option(f"--dim {name}={value}", f"there is no dim `{name}`; it has {', '.join(named) or 'none'}")
        if (found := evaluate(named[name], binding)) != value:
            demand = next((each for each in function.demands if name in {dim.name for dim in each.dims}), None)
            why = f", as {demand.message}" if demand else ""
            raise bad_option(f"--dim {name}={value}", f"the inputs have {name} = {found}{why}")


def parsed_dims(given: list[str], option: str = "--dim") -> dict[str, int]:
    """The values of `--dim NAME=N`, by name. Raises CommandError for other syntax."""
    return {name: _count(option, name, count) for name, count in pairs(option, given)}


def parsed_values(given: list[str]) -> dict[str, tuple[int, ...]]:
    """The values of `--dim NAME=N,M`, by name. Raises CommandError for other syntax."""
    return {
        name: tuple(_count("--dim", name, count) for count in counts.split(","))
        for name, counts in pairs("--dim", given)
    }


def parsed_constants(given: list[str]) -> dict[str, npt.NDArray[Any]]:
    """The values of `--constant NAME=VALUE`, by name. Raises CommandError for neither a number nor an array."""
    import numpy as np

    found = {}
    for name, text in pairs("--constant", given):
        option = f"--constant {name}={text}"
        if text.endswith(".npy"):
            found[name] = loaded(option, text)
            continue
        try:
            found[name] = np.array(integer(text) if is_integer(text) else decimal(text))
        except argparse.ArgumentTypeError:
            raise bad_option(option, "the value is neither a number nor an *.npy") from None
    return found


def loaded(option: str, file: str) -> npt.NDArray[Any]:
    """The array in a file. Raises CommandError."""
    import numpy as np

    try:
        found = np.load(Path(file), allow_pickle=False)
    except (OSError, ValueError, EOFError) as error:
        why = getattr(error, "strerror", None) or error
        raise bad_option(option, f"it cannot be read: {why}") from None
    if not isinstance(found, np.ndarray):
        raise bad_option(option, "it holds several arrays")
    return found


def pairs(option: str, given: list[str]) -> list[tuple[str, str]]:
    """The names and values of `NAME=VALUE`. Raises CommandError for other syntax."""
    made = []
    for each in given:
        name, sign, value = each.rpartition("=")
        if not (name and sign and value):
            raise bad_option(f"{option} {each}", "it has no name, or no value")
        made.append((name, value))
    return made


def _count(option: str, name: str, text: str) -> int:
    if not (text.isascii() and text.isdecimal()):
        raise bad_option(f"{option} {name}={text}", "the value is not a whole number")
    return int(text)

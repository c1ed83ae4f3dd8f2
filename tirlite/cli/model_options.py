"""Reads numbers, dims and arrays for the inputs of models from the command line, and plans the storage of a model."""

from __future__ import annotations

import argparse
import re
import sys
from argparse import ArgumentTypeError
from collections.abc import Callable, Iterable, Mapping
from keyword import iskeyword
from math import inf
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeVar

from tirlite.cli.command_error import CommandMessage
from tirlite.diag import TirliteError
from tirlite.record import record

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph import CompiledGraph
    from tirlite.plan import Plan, Problem
    from tirlite.rewrite.options import Choices
    from tirlite.sizes import SizeLike


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
    """A type of whole numbers from `least` to `most`, both included."""
    wanted = f"a whole number from {least} on" if most is None else f"a whole number from {least} to {most}"

    def number(text: str) -> int:
        value = int(text) if _WHOLE.fullmatch(text) else least - 1
        if value < least or (most is not None and value > most):
            raise ArgumentTypeError(f"`{text}` is not {wanted}")
        return value

    return number


def is_integer(text: str) -> bool:
    """Whether `text` is an integer in the digits 0 to 9."""
    return _WHOLE.fullmatch(text) is not None


def integer(text: str) -> int:
    """An integer in the digits 0 to 9."""
    if not is_integer(text):
        raise ArgumentTypeError(f"`{text}` is not an integer")
    return int(text)


def byte_count(text: str) -> int:
    """A number of bytes: `65536`, `64KiB` of 1024 bytes each, `1MB` of a million."""
    match = _BYTES.fullmatch(text.strip())
    if match is None or match["unit"] not in UNITS:
        raise ArgumentTypeError(f"`{text}` is not a number of bytes, as in 65536, 64KiB or 1MB")
    return int(match["number"]) * UNITS[match["unit"]]


def decimal(text: str) -> float:
    """A number as Python writes it, in the digits 0 to 9, without `_` between them."""
    try:
        return float(text if text.isascii() and "_" not in text else "")
    except ValueError:
        raise ArgumentTypeError(f"`{text}` is not a number") from None


def seconds(text: str) -> float:
    """A type of times, zero or more."""
    try:
        value = decimal(text)
    except ArgumentTypeError:
        value = -1.0
    if not 0 <= value < inf:
        raise ArgumentTypeError(f"`{text}` is not a number of seconds, zero or more")
    return value


V = TypeVar("V")

# A fact of a dim whose name is an identifier: nothing but comparisons and numbers beside it.
_OF_IDENTIFIER = re.compile(r"(?=.*[<>=])\s*(\d+\s*[<>=]+\s*)?[^\W\d]\w*\s*([<>=%][\s\d<>=%]*)?|\s*")


# How the options about models are written, each with what it does.
_FORMS = {
    "--dim": "--dim NAME=NUMBER gives a dim of the model a value",
    "--bind": "--bind NAME=NUMBER makes a dim of the model a number",
    "--input": "--input NAME=FILE.npy gives an input of the model an array",
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
    """The error that an option, given as it was written, does not fit; it tells how the option is written."""
    return BadRunOption(option, why, _FORMS[option.partition(" ")[0]]).error()


def add_constant(parser: argparse.ArgumentParser) -> None:
    """Adds the option that makes inputs constants."""
    text = "make an input a constant, a number or *.npy, where shapes or branches depend on it"
    parser.add_argument("--constant", metavar="NAME=VALUE", action="append", default=[], help=text)


def add_facts(parser: argparse.ArgumentParser) -> None:
    """Adds the option that tells what is known of dims."""
    text = "known facts about dims: 's<=512, batch%%8==0'"
    parser.add_argument("--facts", metavar="F", action="append", default=[], help=text)


def dims_of_model(models: Iterable[Path], bound: Mapping[str, int], facts: list[str]) -> dict[str, SizeLike]:
    """What `from_onnx` is told of dims: numbers, and dims with facts, by identifiers or the names in the models.

    Raises PlanError for what is no fact.
    """
    from tirlite.plan import parse_facts

    told = ", ".join(facts)
    if not all(_OF_IDENTIFIER.fullmatch(each) for each in told.split(",")):
        from tirlite.graph.onnx.model import dim_names_of

        names = {raw: name for model in models for raw, name in dim_names_of(model).items() if raw != name}
        longest_first = "|".join(map(re.escape, sorted(names, key=len, reverse=True)))
        told = re.sub(longest_first, lambda met: names[met[0]], told) if names else told
    return {**parse_facts(told), **bound}


def by_identifier(model: Path, told: Mapping[str, V]) -> dict[str, V]:
    """What is told of dims by the names that a model gives extents, by the identifiers that these become."""
    if all(name.isidentifier() and not iskeyword(name) for name in told):
        return dict(told)
    from tirlite.graph.onnx.model import dim_names_of

    names = dim_names_of(model)
    return {names.get(name, name): value for name, value in told.items()}


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
    """The values of `--constant NAME=VALUE`, by name. Raises CommandError for what is neither a number nor an array."""
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
        raise bad_option(option, f"it cannot be read: {error}") from None
    if not isinstance(found, np.ndarray):
        raise bad_option(option, "it holds several arrays")
    return found


def pairs(option: str, given: list[str]) -> list[tuple[str, str]]:
    """Names and values of `NAME=VALUE`. Raises CommandError for what is not written so."""
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


@record
class ToldOfModel:
    """Dims that are numbers, or known better, before the model is planned, sizes that the plan is shown at, inputs that
    are known.
    """

    dims: Mapping[str, SizeLike]
    sizes: Mapping[str, int]
    constants: Mapping[str, npt.NDArray[Any]]


def model_problem(path: Path) -> Problem:
    """The storage problem of a model's tensors. Raises TirliteError for what is not a model, or cannot be imported."""
    from tirlite.graph import compile, from_onnx  # noqa: A004

    return compile(from_onnx(path), strategy="none").plan.problem


def _largest(graph: CompiledGraph, sizes: Mapping[str, int]) -> Plan:
    """The plan of the largest part of a graph in parts, in a call with random inputs: that finds the sizes of some."""
    import numpy as np

    from tirlite.graph.sample_arguments import sample_arguments, sample_sizes
    from tirlite.sizes import evaluate

    arguments = sample_arguments(graph.function, sample_sizes(graph.function, sizes), np.random.default_rng(0), {})
    plans = graph.plans(*arguments)
    parts = "1 part" if len(plans) == 1 else f"{len(plans)} parts"
    print(f"in {parts}; below is the largest of a call with random inputs", file=sys.stderr)
    return max(plans, key=lambda each: evaluate(each.total, {}))


def model_plan(path: Path, told: ToldOfModel, choices: Choices) -> Plan:
    """The plan that `tl.graph.compile` makes, with what the operators need for themselves; no native code is made.

    Where sizes are told, the plan for all values of the dims is shown at these, as `plan_at` does. Raises TirliteError
    for what is not a model, or cannot be imported, for names that it does not have, and for dims without a value;
    CapacityError where the plan does not fit.
    """
    from tirlite.driver.shapes import MissingSize
    from tirlite.graph import compile, from_onnx  # noqa: A004
    from tirlite.graph.sample_arguments import sizes_by_name
    from tirlite.sizes import dims_of
    from tirlite.solver import LateEngine

    function = from_onnx(path, dims=told.dims, constants=told.constants)
    with_engine: Choices = {"engine": LateEngine, **choices}
    graph = compile(function, **with_engine)
    if graph.parts != (graph,):
        return _largest(graph, told.sizes)
    by_shape = choices.get("strategy") == "per_shape"
    named = sizes_by_name(function)
    sizes = {str(named.get(name, name)): value for name, value in told.sizes.items()}
    try:
        return graph.plan_at(**sizes) if sizes or by_shape else graph.plan
    except TirliteError as error:
        if not isinstance(error.messages[0], MissingSize):
            raise
    names = dict.fromkeys(dim.name for param in function.params for extent in param.shape for dim in dims_of(extent))
    missing = [name for name in names if name not in sizes]
    example = " ".join(f"--dim {name}=4" for name in missing)
    why = f"the plan depends on {' and '.join(f'`{name}`' for name in missing)} too; add {example}"
    raise bad_option("--dim", why)

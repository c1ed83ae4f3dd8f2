"""Makes planning problems to measure, with their bars: generated from a seed, or from a folder."""

from __future__ import annotations

import re
from collections.abc import Callable, Iterator, Sequence
from functools import partial
from pathlib import Path
from random import Random

from tirlite.cli.command_error import CommandMessage
from tirlite.cli.plan_model import model_problem
from tirlite.plan import Problem, Request, read_csv
from tirlite.record import record
from tirlite.sizes import Dim, Size

_CAPACITY = re.compile(r"\.(?:cap)?(\d+)\.csv")
# Bars in seconds, by the name of the file or its folder.
_SECONDS_OF = {"onnx": 0.5, "idealloc": 5.0, "S_1": 30.0}
# Seconds to a plan within 1,048,576 bytes of the challenging suite, as published for MiniMalloc (C++).
_MINIMALLOC = {
    f"{name}.1048576": seconds
    for name, seconds in {"A": 4.50, "B": 3.50, "C": 0.65, "D": 2.54, "E": 3.30, "F": 4.68}.items()
}
_HARD = (16, 64, 128)
_TRACES = (200, 1_000, 4_000, 16_000, 62_000)
# Bars in seconds for the default strategy, by number of buffers.
_TRACE_BARS = {200: 0.02, 62_000: 5.0}


class NoInstances(CommandMessage):
    """A folder that was given for its problems holds none.

    Example: `tirlite bench plans --instances docs`.
    Fix: Give a folder with CSV files or ONNX models, in it or in folders below.
    """

    title = "there is no CSV file and no model in `{folder}`"
    help = "a CSV file or a model, *.onnx, holds one problem, as for `tirlite plan`"


@record
class Instance:
    """A problem with its name, its group (folder or kind), and the strategy that plans it by default.
    Bars: the plan should need at most `capacity` bytes, or, if None, exceed the lower bound by at most the part `gap`,
    and take at most `seconds`; those that are None depend on the number of buffers. `file`: the table that it comes
    from. `elsewhere`: another planner's published seconds to a plan that fits.
    """

    name: str
    group: str
    make: Callable[[], Problem]
    capacity: int | None = None
    gap: float | None = None
    seconds: float | None = None
    strategy: str = "exact"
    file: Path | None = None
    elsewhere: float | None = None


def instances_in(folder: Path) -> list[Instance]:
    """The CSV files and ONNX models in a folder and below. `x.1048576.csv` and `x.cap512.csv` state their capacity.

    A model's tensors are planned as `tirlite plan` does. The smallest files come first, so that the peak memory of the
    process reflects each. Raises CommandError if there are none.
    """
    files = [*folder.rglob("*.csv"), *folder.rglob("*.onnx")]
    files.sort(key=lambda file: (file.stat().st_size, str(file)))
    if not files:
        raise NoInstances(str(folder)).error()
    return [_from_file(file, file.relative_to(folder)) for file in files]


def _from_file(file: Path, place: Path) -> Instance:
    if file.suffix == ".onnx":
        return Instance(
            str(place.with_suffix("")), file.parent.resolve().name, partial(model_problem, file), seconds=0.5
        )
    match = _CAPACITY.search(file.name)
    seconds = _SECONDS_OF.get(file.stem) or _SECONDS_OF.get(file.parent.name)
    name, group, capacity = str(place.with_suffix("")), file.parent.resolve().name, int(match[1]) if match else None
    elsewhere = _MINIMALLOC.get(file.stem) if capacity == 1 << 20 else None
    return Instance(name, group, partial(read_csv, file), capacity, seconds=seconds, file=file, elsewhere=elsewhere)


def generated(*, quick: bool = False) -> Iterator[Instance]:
    """Deterministic generated problems: cut from a full arena, networks, traces, and symbolic sizes."""
    for count in _HARD[: 1 if quick else None]:
        yield Instance(f"cut {count}", "cut", partial(cut, count), 1 << 20)
    for blocks in (4,) if quick else (4, 16, 50):
        yield Instance(f"network {blocks}", "network", partial(network, blocks), seconds=0.5)
    for count in _TRACES[: 1 if quick else None]:
        seconds = _TRACE_BARS.get(count)
        yield Instance(f"trace {count:,}", "trace", partial(trace, count), gap=0.01, seconds=seconds, strategy="auto")
    for layers in (2,) if quick else (2, 8, 20):
        yield Instance(f"transformer {layers}", "transformer", partial(transformer, layers))


def cut(count: int, seed: int = 1) -> Problem:
    """Rectangles cut from an arena of 1 MiB over 1,024 times, so that a plan exists that fills it exactly."""
    random = Random(seed)
    pieces = [(0, 1024, 0, 1 << 20)]
    while len(pieces) < count:
        place = max(range(len(pieces)), key=lambda i: _room(pieces[i]) * random.random())
        low, high, bottom, top = pieces[place]
        in_time = high - low > 1 and (top - bottom <= 64 or random.random() < 0.5)
        if in_time:
            middle = random.randrange(low + 1, high)
            pieces[place : place + 1] = [(low, middle, bottom, top), (middle, high, bottom, top)]
        elif top - bottom > 64:
            middle = random.randrange(bottom // 32 + 1, top // 32) * 32
            pieces[place : place + 1] = [(low, high, bottom, middle), (low, high, middle, top)]
    random.shuffle(pieces)
    return Problem(
        tuple(Request(str(i), top - bottom, ((low, high),)) for i, (low, high, bottom, top) in enumerate(pieces))
    )


def _room(piece: tuple[int, int, int, int]) -> int:
    low, high, bottom, top = piece
    return (high - low) * (top - bottom)


def network(blocks: int, seed: int = 2) -> Problem:
    """The tensors of a network of residual blocks, each of which expands, filters, projects and adds its input."""
    random = Random(seed)
    side, channels, time = 112, 32, 0
    requests: list[Request] = []
    came_in = 0
    for block in range(blocks):
        if block and block % max(blocks // 4, 1) == 0 and side > 7:
            side, channels = side // 2, channels * 2
        plane = side * side * channels * 4
        wide = plane * random.choice((2, 3, 4, 6))
        sizes = [wide, wide, plane, plane]
        # The block's input is live until it is added at the end.
        requests.append(Request(f"in{block}", came_in or plane, ((time, time + len(sizes) + 1),)))
        for step, size in enumerate(sizes):
            requests.append(Request(f"b{block}.{step}", size, ((time + 1 + step, time + 3 + step),)))
        came_in = plane
        time += len(sizes) + 1
    return Problem(tuple(requests))


def trace(count: int, seed: int = 3) -> Problem:
    """Buffers as a program allocates them: mostly small and short-lived, a few large, some long-lived."""
    random = Random(seed)
    requests = []
    for number in range(count):
        size = int(2 ** random.uniform(6, 14 if random.random() < 0.9 else 22)) // 64 * 64
        life = int(random.expovariate(1 / 40)) if random.random() < 0.95 else random.randrange(count // 2 + 1)
        requests.append(Request(str(number), max(size, 64), ((number, number + 2 + life),)))
    return Problem(tuple(requests))


def transformer(layers: int) -> Problem:
    """Activations of attention and feed-forward layers for a batch of B sequences of S tokens, in f32."""
    batch, tokens = Dim("B", max=64), Dim("S", max=2048)
    width, heads = 256, 4
    row = 4 * batch * tokens
    each: Sequence[tuple[str, Size, int]] = (
        ("q", row * width, 3),
        ("k", row * width, 2),
        ("v", row * width, 3),
        ("scores", row * tokens * heads, 2),
        ("weights", row * tokens * heads, 2),
        ("mixed", row * width, 2),
        ("sum", row * width, 4),
        ("wide", row * 4 * width, 2),
        ("gelu", row * 4 * width, 2),
        ("out", row * width, 1),
    )
    requests = []
    for layer in range(layers):
        begin = layer * len(each)
        requests.append(Request(f"in{layer}", row * width, ((begin, begin + 8),)))
        requests += [
            Request(f"{name}{layer}", size, ((begin + step, begin + step + life + 1),))
            for step, (name, size, life) in enumerate(each)
        ]
        requests.append(Request(f"mask{layer}", 4 * tokens * tokens + 512, ((begin + 2, begin + 5),)))
    return Problem(tuple(requests))

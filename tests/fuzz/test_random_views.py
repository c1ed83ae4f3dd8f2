"""Kernels give for random views what they give for dense arrays, write nothing between elements, and refuse overlaps.

`python -m pytest tests/fuzz/test_random_views.py --views 200` tries the views of more kernels.
"""

from __future__ import annotations

import numpy as np
import pytest
from effort import effort
from fuzz.guard import guarded
from fuzz.nests import Nests
from fuzz.test_random_nests import arguments
from fuzz.views import View, random_view

import tirlite as tl
from tirlite.codegen import Effort

SIZES = ((3, 5, 4), (1, 7, 2), (6, 1, 3), (4, 4, 4))
CALLS = 60
MOST_ITERATIONS = 5000


def pytest_generate_tests(metafunc: pytest.Metafunc) -> None:
    if "kernel_seed" in metafunc.fixturenames:
        metafunc.parametrize("kernel_seed", range(metafunc.config.getoption("--views")))


def written_by(kernel: tl.Kernel) -> set[str]:
    """The parameters that it stores to; of the outputs of a nest that may be some."""
    return {each.name for each in kernel._front.signature.arrays if each.is_written}


def views_of(nests: Nests, kernel: tl.Kernel, given: dict[str, object], draw: np.random.Generator) -> dict[str, View]:
    """A view in the place of each array, now and then in the room of another one.

    What is written as a whole, by a call, stays dense.
    """
    views: dict[str, View] = {}
    written, strided = written_by(kernel), {param.name for param in kernel._binder.layouts.params}
    for name in draw.permutation([each.name for each in (*nests.inputs, *nests.outputs)]):
        array = given[name]
        if name in written - strided:
            room = guarded(np.zeros(array.nbytes, np.uint8), at_end=True)
            views[name] = View(room, room.view(array.dtype).reshape(array.shape))
            continue
        repeats = 0.03 if name in written else 0.1
        shared = list(views.values())[int(draw.integers(len(views)))].room if views and draw.random() < 0.15 else None
        view = random_view(array.shape, array.dtype, draw, repeats=repeats, room=shared)
        views[name] = view or random_view(array.shape, array.dtype, draw, repeats=repeats)
    return views


def is_allowed(written: set[str], views: dict[str, View]) -> bool:
    # What is read and not aligned is copied before anything is written.
    places = {name: view.places if view.array.flags.aligned else set() for name, view in views.items()}
    return all(
        views[each].array.flags.aligned
        and not views[each].repeats
        and not any(places[each] & others for name, others in places.items() if name != each)
        for each in written
    )


def trial(nests: Nests, kernel: tl.Kernel, seed: int, call: int) -> bool:
    """Whether the call was allowed: then it gives what dense arrays give, and else it writes nothing."""
    draw = np.random.default_rng([seed, call])
    sizes = dict(zip("nmk", SIZES[call % len(SIZES)], strict=True))
    given = arguments(nests, call, sizes)
    views = views_of(nests, kernel, given, draw)
    for name, view in views.items():
        view.array[...] = given[name]
    # Views in one room, or with elements that repeat, have changed what was put into others.
    given |= {name: view.array.copy() for name, view in views.items()}
    before = {name: view.room.copy() for name, view in views.items()}
    operands = [views[param.name].array if param.name in views else given[param.name] for param in kernel.ir.params]
    if not is_allowed(written_by(kernel), views):
        with pytest.raises(tl.CallValueError, match="overlap|lie apart|aligned"):
            kernel(*operands)
        assert all((view.room == before[name]).all() for name, view in views.items())
        return False
    kernel(*operands)
    kernel(*(given[param.name] for param in kernel.ir.params))
    for name, view in views.items():
        if view.array.flags.aligned:
            assert view.array.tobytes() == given[name].tobytes(), (name, view.array.strides)
        now, others = view.room.copy(), [each for each in views.values() if each.room is view.room]
        for each in others:  # all but the elements is as it was
            start = each.array.__array_interface__["data"][0] - view.room.__array_interface__["data"][0]
            for data in (now, before[name]):
                np.ndarray(each.array.shape, each.array.dtype, data, start, each.array.strides)[...] = 0
        assert (now == before[name]).all(), name
    return True


def test_views_do_what_dense_arrays_do(kernel_seed: int) -> None:
    nests = Nests(kernel_seed)
    with effort(Effort.NONE):
        kernel = tl.compile(tl.parse(nests.text()), target=tl.Target.host(workers=2))
        calls = [
            trial(nests, kernel, kernel_seed, call)
            for call in range(CALLS)
            if nests.iterations(dict(zip("nmk", SIZES[call % len(SIZES)], strict=True))) <= MOST_ITERATIONS
        ]
    assert any(calls)

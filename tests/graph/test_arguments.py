"""What callers give for a parameter has the parts of its type, on every executor."""

from __future__ import annotations

from collections.abc import Callable
from functools import partial

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import (
    Builder,
    Function,
    StaticRuntime,
    TensorType,
    TupleType,
    Var,
    compile as compiled,
    evaluate,
    explicit_allocation,
)
from tirlite.graph.arguments import ArgumentBinder, bind

n, m = tl.dims("n m")


def of_a_pair() -> Function:
    g = Builder("pair")
    p = Var("p", TupleType((TensorType((2,), tl.f32), TensorType((3,), tl.f32))))
    return Function("pair", (p,), g.add(g.reduce_sum(g.item(p, 0)), g.reduce_sum(g.item(p, 1))))


PAIR = of_a_pair()
EXECUTORS = {
    "evaluate": partial(evaluate, PAIR),
    "explicit": explicit_allocation(PAIR),
    "static": StaticRuntime(PAIR),
    "compiled": compiled(PAIR),
}
two, three = np.ones(2, np.float32), np.ones(3, np.float32)
by_executor = pytest.mark.parametrize("call", EXECUTORS.values(), ids=EXECUTORS)


@by_executor
def test_a_tuple_or_a_list_has_the_values_of_its_parts(call: Callable[[object], object]) -> None:
    assert call((two, three)) == call([two, three]) == 5


@by_executor
@pytest.mark.parametrize(
    ("given", "told"),
    [
        ((two,), "a tuple of 1"),
        ((two, three, two), "a tuple of 3"),
        (3, "a value of type int"),
        (two, "a value of type ndarray"),
        ((two, [[1.0], [1.0, 2.0]]), "a value of type list"),
    ],
    ids=("few", "many", "number", "array", "ragged"),
)
def test_other_parts_are_refused(call: Callable[[object], object], given: object, told: str) -> None:
    with pytest.raises(tl.CallTypeError, match=told) as caught:
        call(given)
    assert caught.value.code == "graph-argument-type"


G = Builder("positive")
POSITIVE = G.function(G.relu(G.input("x", tl.f32[tl.dim("n")])))
RUNS = {
    "evaluate": partial(evaluate, POSITIVE),
    "explicit": explicit_allocation(POSITIVE),
    "static": StaticRuntime(POSITIVE),
    "compiled": compiled(POSITIVE),
}
by_run = pytest.mark.parametrize("call", RUNS.values(), ids=RUNS)


@by_run
def test_a_mask_is_not_lost(call: Callable[[object], object]) -> None:
    masked = np.ma.masked_array(three, mask=[True, False, False])
    for _ in range(50):  # Frequent calls go another way.
        with pytest.raises(tl.CallTypeError, match="was given a MaskedArray, whose mask would be lost"):
            call(masked)
        assert call(three).shape == (3,)
    g = Builder("masked")
    with pytest.raises(tl.GraphError, match="a MaskedArray is not a constant of a graph: its mask would be lost"):
        g.add(g.input("x", tl.f32[3]), masked)


class Elsewhere:
    def __array__(self, dtype: object = None, copy: bool | None = None) -> np.ndarray:
        raise RuntimeError("its elements are on another machine\nand stay there")


@by_run
def test_what_a_library_says_of_its_array_is_told(call: Callable[[object], object]) -> None:
    with pytest.raises(tl.CallTypeError, match="given an Elsewhere, whose library says: its elements are on another"):
        call(Elsewhere())


def test_a_number_of_numpy_is_a_tensor_without_axes() -> None:
    g = Builder("next")
    after = g.function(g.add(g.input("x", tl.i64[()]), 1))
    assert int(evaluate(after, np.int64(2))) == int(compiled(after)(np.int64(2))) == 3


def of_rows() -> Function:
    g = Builder("rows")
    x = g.input("x", tl.f32[n, m])
    return g.function(g.add(x, g.input("y", tl.f32[m])))


def test_a_binder_that_remembers_shapes_binds_as_one_that_does_not() -> None:
    f = of_rows()
    binder = ArgumentBinder(f)
    x, y = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    for rows, row in ((x, y), (x, y), (x.T.copy().T, y), (np.ones((3, 3), np.float32), y), (x, y), ([[1] * 3], y)):
        rows = np.asarray(rows, np.float32) if isinstance(rows, list) else rows
        found, wanted = binder.bind((rows, row)), bind(f, (rows, row))
        assert found[1] == wanted[1]
        assert all(a.flags.c_contiguous and (a == b).all() for a, b in zip(found[0], wanted[0], strict=True))
        found[1].clear()  # the next call does not see what its caller does with the dims


@pytest.mark.parametrize(
    "other",
    [
        np.ones((2, 3)),
        np.ones((2, 3), ">f4"),
        np.ones((2, 3), np.int32),
        np.ones((2, 4), np.float32),
        np.ones(6, np.float32),
        np.ma.masked_array(np.ones((2, 3), np.float32), mask=True),
    ],
    ids=("f64", "swapped", "i32", "shape", "rank", "masked"),
)
def test_a_binder_refuses_what_differs_from_the_call_before(other: np.ndarray) -> None:
    f = of_rows()
    binder = ArgumentBinder(f)
    x, y = np.ones((2, 3), np.float32), np.ones(3, np.float32)
    binder.bind((x, y))
    with pytest.raises(tl.CallError) as wanted:
        bind(f, (other, y))
    with pytest.raises(type(wanted.value)) as caught:
        binder.bind((other, y))
    assert str(caught.value) == str(wanted.value)
    with pytest.raises(tl.CallTypeError):
        binder.bind((x,))
    with pytest.raises(tl.CallTypeError):
        binder.bind((x, y, y))


def test_an_input_may_be_called_self() -> None:
    g = Builder("next")
    after = compiled(g.function(g.add(g.input("self", tl.i64[()]), 1)))
    assert int(after(self=np.int64(2))) == int(after(np.int64(2))) == 3
    assert len(after.plans(self=np.int64(2))) == 1
    assert after.profile(self=np.int64(2)) is not None

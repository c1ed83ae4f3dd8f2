"""What is used must be there: names have one value, and storage is allocated before, around its uses."""

from __future__ import annotations

import json
from collections.abc import Callable

import pytest

import tirlite as tl
from tirlite.graph import Builder, Executable, explicit_allocation


def branched() -> dict[str, object]:
    g = Builder("net")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    f = g.function(g.if_(c, g.exp(g.tanh(x)), g.abs(g.negative(x))))
    return json.loads(explicit_allocation(f).to_json())


def find(body: list[dict[str, object]], **fields: object) -> dict[str, object]:
    return next(step for step in body if fields.items() <= step.items())


def use_storage_of_the_other_side(body: list[dict[str, object]]) -> None:
    find(body, do="alloc_tensor", name="negative")["storage"] = find(body, do="alloc_tensor", name="tanh")["storage"]


def use_before_allocation(body: list[dict[str, object]]) -> None:
    body[0], body[1] = body[1], body[0]


def use_a_tensor_as_a_storage(body: list[dict[str, object]]) -> None:
    find(body, do="alloc_tensor", name="tanh")["storage"] = "x"


def use_an_unknown_routine(body: list[dict[str, object]]) -> None:
    body.append({"do": "invoke_routine", "routine": "other", "args": ["x"], "outs": ["if"]})


def return_what_a_side_made(body: list[dict[str, object]]) -> None:
    body.append({"do": "reshape_tensor", "name": "late", "source": "tanh", "shape": [4]})


@pytest.mark.parametrize(
    ("change", "words"),
    [
        (use_storage_of_the_other_side, "the storage `storage_1` is not there"),
        (use_before_allocation, "the storage `storage_0` is not there"),
        (use_a_tensor_as_a_storage, "the storage `x` is not there"),
        (use_an_unknown_routine, "the routine `other` is not there"),
        (return_what_a_side_made, "the tensor `tanh` is not there"),
    ],
)
def test_what_is_not_there_is_refused(change: Callable[[list[dict[str, object]]], None], words: str):
    data = branched()
    change(data["routines"][0]["body"])
    with pytest.raises(tl.GraphError, match=words):
        Executable.from_json(json.dumps(data))


def test_a_name_has_one_value():
    data = branched()
    body = data["routines"][0]["body"]
    body.insert(1, dict(body[0]))
    with pytest.raises(tl.GraphError, match="gives `storage_0` a value twice"):
        Executable.from_json(json.dumps(data))

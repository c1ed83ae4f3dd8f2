"""Executables as JSON and back: what is read does what was written."""

from __future__ import annotations

import json

import numpy as np
import pytest
from every import every
from graph.leaves import leaves
from graph.random_graphs import random_graph
from random_cases import IS_THOROUGH

import tirlite as tl
from tirlite.graph import Builder, Executable, StorageCoalesce, explicit_allocation


@every("seed", range(20 if IS_THOROUGH else 8))
def test_what_is_read_back_reads_the_same_and_computes_the_same(seed: int):
    sample = random_graph(seed, symbolic=seed % 2 == 1)
    net = StorageCoalesce("pack")(explicit_allocation(sample.function))
    again = Executable.from_json(net.to_json())
    assert str(again) == str(net)
    assert again.to_json() == net.to_json()
    for a, b in zip(leaves(net(*sample.arguments[0])), leaves(again(*sample.arguments[0])), strict=True):
        assert np.array_equal(a, b)


def test_the_written_form_carries_the_offset():
    g = Builder("net")
    x = g.input("x", tl.f32[4])
    net = StorageCoalesce()(explicit_allocation(g.function(g.tanh(g.exp(x)))))
    body = json.loads(net.to_json())["routines"][0]["body"]
    tensors = [each for each in body if each["do"] == "alloc_tensor"]
    assert [(each["storage"], each["offset"]) for each in tensors] == [("region_0", 0), ("region_0", 64)]


def test_attributes_constants_and_facts_survive():
    n = tl.dim("n", min=2, max=64, multiple_of=2)
    g = Builder("net")
    x = g.input("x", tl.f32[n, 3])
    y = g.cast(g.softmax(g.matmul(x, np.full((3, 2), np.inf, np.float32)), axis=0), tl.bf16)
    net = explicit_allocation(g.function(g.broadcast_to(y, [3, n, 2])))
    again = Executable.from_json(net.to_json())
    assert str(again) == str(net)
    with pytest.raises(tl.CallError, match="multiple_of=2"):
        again(np.zeros((3, 3), np.float32))


def test_dims_of_one_name_are_one():
    g = Builder("net")
    x, y = g.input("x", tl.f32[tl.dim("n")]), g.input("y", tl.f32[tl.dim("n")])
    net = Executable.from_json(explicit_allocation(g.function(g.add(x, y))).to_json())
    assert net(np.ones(3, np.float32), np.ones(3, np.float32)).tolist() == [2, 2, 2]
    with pytest.raises(tl.CallError, match="where n = 3"):
        net(np.ones(3, np.float32), np.ones(5, np.float32))
    with pytest.raises(tl.GraphError, match="two dims are called `n`: no facts, and max=8"):
        g.input("z", tl.f32[tl.dim("n", max=8)])


@pytest.mark.parametrize("text", ["", "[]", "{}", '{"version": 2}', '{"version": 1, "routines": []}'])
def test_other_text_is_refused(text: str):
    with pytest.raises(tl.GraphError, match="bad-program-json"):
        Executable.from_json(text)


def test_an_unknown_instruction_is_refused():
    g = Builder("net")
    text = explicit_allocation(g.function(g.exp(g.input("x", tl.f32[4])))).to_json()
    with pytest.raises(tl.GraphError, match="there is no instruction `invent`"):
        Executable.from_json(text.replace('"invoke"', '"invent"'))

"""StorageCoalesce: regions, their sizes and offsets, and what a planner that overlaps makes of the same problem."""

from __future__ import annotations

import json

import numpy as np
import pytest
from graph.random_graphs import random_graph
from random_cases import groups

import tirlite as tl
from tirlite.graph import (
    Builder,
    Executable,
    LiftConstants,
    StorageCoalesce,
    evaluate,
    explicit_allocation,
    storage_problem,
)
from tirlite.graph.explicit.instructions import AllocStorage, AllocTensor, Branch, LoadConstant, walk


def chain(n: object = 4) -> tl.graph.Function:
    g = Builder("chain")
    x = g.input("x", tl.f32[n])
    return g.function(g.exp(g.tanh(g.exp(x))))


def lines(executable: Executable, word: str) -> list[str]:
    return [line.strip() for line in str(executable).splitlines() if word in line]


def test_constants_are_lifted_to_the_top():
    g = Builder("net")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    y = g.exp(x)
    f = g.function(g.if_(c, g.add(y, g.constant([1.0] * 4, tl.f32)), g.multiply(y, g.constant([2.0] * 4, tl.f32))))
    raw = explicit_allocation(f)
    assert not isinstance(raw.main.body[0], LoadConstant)
    body = LiftConstants()(raw).main.body
    assert [isinstance(step, LoadConstant) for step in walk(body)] == [True, True] + [False] * (len([*walk(body)]) - 2)


def test_a_region_is_the_sum_of_sizes_rounded_up_to_the_alignment():
    net = StorageCoalesce()(explicit_allocation(chain()))
    assert lines(net, "alloc_storage") == ["region_0 = alloc_storage(size=192, alignment=64, dtype=f32, device=0)"]
    assert [step.offset for step in net.main.body if isinstance(step, AllocTensor)] == [0, 64, 128]


def test_symbolic_sizes_and_offsets_are_bound_before_the_allocation():
    net = StorageCoalesce()(explicit_allocation(chain(tl.dim("n", multiple_of=16))))
    assert str(net).splitlines()[1:6] == [
        "    region_0_offset_1 = 4*n",
        "    region_0_offset_2 = 8*n",
        "    region_0_size = 12*n",
        "    region_0 = alloc_storage(size=region_0_size, alignment=64, dtype=f32, device=0)",
        "    exp = alloc_tensor(region_0, offset=0, shape=(n,), dtype=f32)",
    ]


def test_each_scope_and_each_element_type_has_one_region():
    g = Builder("net")
    x, c = g.input("x", tl.f32[4]), g.input("c", tl.bool_)
    a = g.let("a", g.exp(x))
    b = g.let("b", g.cast(a, tl.i32))
    then = g.add(g.cast(g.negative(g.abs(b)), tl.f32), g.tanh(g.exp(a)))
    f = g.function(g.if_(c, then, g.relu(g.relu(a))))
    net = StorageCoalesce()(explicit_allocation(f))
    branch = next(step for step in net.main.body if isinstance(step, Branch))
    found = [
        [(step.dtype, step.size) for step in body if isinstance(step, AllocStorage)]
        for body in (net.main.body, branch.then, branch.other)
    ]
    assert found == [[(tl.f32, 128), (tl.i32, 64)], [(tl.i32, 128), (tl.f32, 192)], [(tl.f32, 64)]]


def test_devices_never_share_a_region():
    g = Builder("net")
    with g.on(1):
        x = g.input("x", tl.f32[4])
        y = g.exp(x)
    with g.on(2):
        z = g.exp(y)
    net = StorageCoalesce()(explicit_allocation(g.function(z)))
    assert [step.device for step in net.main.body if isinstance(step, AllocStorage)] == [1, 2]


def test_alignments_never_share_a_region():
    text = explicit_allocation(chain()).to_json().replace('"alignment": 64', '"alignment": 128', 1)
    net = StorageCoalesce()(Executable.from_json(text))
    regions = [step for step in net.main.body if isinstance(step, AllocStorage)]
    assert [(step.alignment, step.size) for step in regions] == [(128, 128), (64, 128)]


def late() -> Executable:
    """A program in which the extent `n` of two tensors is read from another one after it has begun."""
    g = Builder("late")
    n = tl.dim("n", min=0)
    x, count, shape = g.input("x", tl.f32[1]), g.input("count", tl.i64), g.input("shape", tl.f32[n])
    doubled = g.add(count, count)
    data = json.loads(explicit_allocation(g.function([doubled, g.exp(g.broadcast_to(g.tanh(x), [n]))])).to_json())
    routine = data["routines"][0]
    # No argument tells `n`: it is read as soon as `doubled` is there.
    routine["params"] = [param for param in routine["params"] if param[0] != ["shape"]]
    at = next(i for i, step in enumerate(routine["body"]) if step.get("op") == "add")
    routine["body"].insert(at + 1, {"do": "read_size", "size": "n", "tensor": routine["body"][at]["outs"][0]})
    return Executable.from_json(json.dumps(data))


def test_a_size_that_is_not_known_at_entry_opens_a_region_where_it_is_bound():
    net = late()
    coalesced = StorageCoalesce()(net)
    text = str(coalesced)
    # The doubled count and the result of tanh are known at entry, the two tensors of n elements are not.
    assert text.index("region_0 = alloc_storage") < text.index("read_size") < text.index("storage_2 = alloc_storage")
    assert [line.split(" = ")[0] for line in lines(coalesced, "alloc_storage")] == [
        "region_0",
        "region_1",
        "storage_2",
        "storage_3",
    ]
    for program in (net, coalesced, StorageCoalesce("pack")(net)):
        doubled, spread = program(np.float32([0.5]), np.int64(3))
        assert doubled == 6
        np.testing.assert_allclose(spread, np.full(6, np.exp(np.tanh(0.5))), rtol=1e-6)


def test_primitive_functions_are_not_entered():
    inner = Builder("inner")
    function = inner.function(inner.exp(inner.exp(inner.input("p", tl.f32[4]))), primitive=True)
    g = Builder("outer")
    f = g.function(g.tanh(g.invoke(function, g.exp(g.input("x", tl.f32[4])))))
    raw = explicit_allocation(f)
    net = StorageCoalesce()(raw)
    assert net.routines[0] is raw.routines[0]
    assert [step.size for step in net.main.body if isinstance(step, AllocStorage)] == [192]
    x = np.ones(4, np.float32)
    assert np.array_equal(net(x), evaluate(f, x))


def test_a_second_pass_changes_nothing_but_names():
    once = StorageCoalesce()(explicit_allocation(chain(tl.dim("n"))))
    twice = StorageCoalesce()(once)
    x = np.ones(7, np.float32)
    assert once.run(x).allocated == twice.run(x).allocated == [3 * 64]


def test_regions_overlap_with_pack():
    n = tl.dim("n", multiple_of=16)
    g = Builder("deep")
    y = g.input("x", tl.f32[n])
    for _ in range(10):
        y = g.exp(y)
    raw = explicit_allocation(g.function(y))
    x = np.zeros(32, np.float32)
    assert StorageCoalesce()(raw).run(x).allocated == [10 * 128]
    assert StorageCoalesce("pack")(raw).run(x).allocated == [2 * 128]


@pytest.mark.parametrize("strategy", ["coalesce", "pack", "share"])
def test_arrays_may_be_empty_where_a_dim_has_no_facts(strategy: str):
    n = tl.dim("n")
    g = Builder("empty")
    y = g.exp(g.concat([g.exp(g.input("x", tl.f32[n, 20])), g.input("one", tl.f32[1, 20])]))
    f = g.function([g.reduce_max(y, 1), g.exp(g.exp(g.slice(y, [0, 0], [1, 20])))])
    net = StorageCoalesce(strategy)(explicit_allocation(f))
    for rows in (0, 1, 3):
        arguments = np.zeros((rows, 20), np.float32), np.zeros((1, 20), np.float32)
        for a, b in zip(net(*arguments), evaluate(f, *arguments), strict=True):
            assert np.array_equal(a, b)


@pytest.mark.parametrize("strategy", ["coalesce", "pack"])
def test_what_grows_where_arrays_are_empty_stays_out_of_regions(strategy: str):
    n = tl.dim("n", max=8)
    g = Builder("shrinking")
    x, rest = g.input("x", tl.f32[n]), g.input("rest", tl.f32[10])
    y = g.exp(g.exp(g.slice(rest, [0], [10 - n])))
    f = g.function([g.reduce_sum(y, keepdims=True), g.exp(g.exp(x)), y])
    net = StorageCoalesce(strategy)(explicit_allocation(f))
    assert len(lines(net, "alloc_storage")) == 4
    for count in (0, 1, 8):
        arguments = np.zeros(count, np.float32), np.arange(10, dtype=np.float32) / 10
        for a, b in zip(net(*arguments), evaluate(f, *arguments), strict=True):
            assert np.array_equal(a, b)


def test_the_result_is_never_scratch():
    problem = storage_problem(explicit_allocation(chain()).main)
    assert problem.by_id["storage_2"].live == ((3, 5),)
    assert problem.by_id["storage_0"].live == ((1, 3),)


def test_regions_hold_what_the_plan_says_and_pack_needs_no_more():
    for seed in groups(120):
        sample = random_graph(seed)
        raw = explicit_allocation(sample.function)
        coalesce, pack = StorageCoalesce(), StorageCoalesce("pack")
        sums, packed = coalesce.plan(raw.main), pack.plan(raw.main)
        assert tl.plan.check(sums.problem, sums) == tl.plan.Ok()
        assert packed.total <= sums.total
        allocated = [step.size for step in walk(coalesce(raw).main.body) if isinstance(step, AllocStorage)]
        assert sum(allocated) == sums.total
        # One region for each scope and element type.
        assert len(allocated) == len(sums.pools)
        assert len([s for s in walk(pack(raw).main.body) if isinstance(s, AllocStorage)]) == len(sums.pools)


def test_a_region_beyond_its_capacity_names_the_storages_at_the_peak():
    net = explicit_allocation(chain())
    # Two storages of 16 bytes live at a time, and the second begins at 64.
    fitting = StorageCoalesce("pack", capacity=80)(net)
    assert lines(fitting, "alloc_storage") == lines(StorageCoalesce("pack")(net), "alloc_storage")
    with pytest.raises(tl.CapacityError, match=r"over-capacity(.|\n)*when these are live: `storage_0`, `storage_1`"):
        StorageCoalesce("pack", capacity=79)(net)

"""The memory of runs: groups, learned sizes, the buffer and its life, managed results, repair, debugging."""

from __future__ import annotations

from collections.abc import Sequence

import numpy as np
import pytest

import tirlite as tl
from tirlite.graph import Builder, Function, RuntimeOptions, StaticRuntime, evaluate
from tirlite.graph.static_runtime.nodes import Tensor

n = tl.dim("n")


def chain(length: int = 5, extent: object = 4) -> Function:
    g = Builder("chain")
    y = g.input("x", tl.f32[extent])
    for _ in range(length):
        y = g.exp(y)
    return g.function(y)


def test_an_output_takes_the_group_that_was_freed_last():
    runtime = StaticRuntime(chain(5))
    # A node's operands are freed behind it, so a neighbour never shares.
    assert runtime.planner.groups == (("exp", "exp_2"), ("exp_1", "exp_3"))
    assert runtime.figures.reused == 2


def test_of_two_free_groups_the_last_one_is_taken():
    g = Builder("last")
    x = g.input("x", tl.f32[4])
    a, b = g.let("a", g.exp(x)), g.let("b", g.tanh(x))
    c = g.let("c", g.add(a, x))
    d = g.let("d", g.add(b, c))
    f = g.function(g.negative(g.abs(d)))
    # a is free behind c; b and c are free behind d. Of these two, c was opened last.
    assert StaticRuntime(f).planner.groups == (("exp", "add_1"), ("tanh",), ("add", "abs"))


def test_without_reuse_each_value_has_a_group():
    runtime = StaticRuntime(chain(5), RuntimeOptions(reuse=False))
    assert runtime.figures.reused == 0
    for _ in range(2):
        runtime(np.ones(4, np.float32))
    assert runtime.figures.managed_bytes == 4 * 64


def test_the_first_run_learns_the_sizes_and_the_second_has_a_buffer():
    seen = []

    def spy(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
        seen.append(runtime.is_in_buffer(outs[0].array.ctypes.data))
        np.tanh(args[0].array, out=outs[0].array)

    g = Builder("spied")
    f = g.function(g.exp(g.tanh(g.exp(g.input("x", tl.f32[20])))))
    runtime = StaticRuntime(f, operators={"tanh": spy})
    assert runtime.figures.managed_bytes == 0
    x = np.ones(20, np.float32)
    runtime(x)
    # Two groups of 80 bytes, aligned to 64.
    assert runtime.figures.managed_bytes == 256
    assert np.array_equal(runtime(x), evaluate(f, x))
    assert seen == [False, True]


def test_group_k_begins_at_the_sum_of_the_aligned_sizes_before():
    places = {}

    def note(name):
        def run(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
            places[name] = outs[0].array.ctypes.data
            np.copyto(outs[0].array, args[0].array[: outs[0].array.size])

        return run

    g = Builder("places")
    x = g.input("x", tl.f32[100])
    parts = [g.let(name, getattr(g, name)(g.slice(x, [0], [size]))) for name, size in (("exp", 10), ("tanh", 33))]
    f = g.function(g.concat([*parts, g.abs(parts[0])]))
    runtime = StaticRuntime(f, operators={name: note(name) for name in ("exp", "tanh", "abs")})
    for _ in range(2):
        runtime(np.ones(100, np.float32))
    sizes = {"slice": 40, "exp": 40, "slice_1": 132, "tanh": 132, "abs": 40}
    offset, expected = 0, {}
    for group in runtime.planner.groups:
        expected.update(dict.fromkeys(group, offset))
        offset += -(-max(sizes[name] for name in group) // 64) * 64
    assert runtime.figures.managed_bytes == offset
    assert places["tanh"] - places["exp"] == expected["tanh"] - expected["exp"]
    assert places["abs"] - places["exp"] == expected["abs"] - expected["exp"]
    assert all(place % 64 == 0 for place in places.values())


def test_the_buffer_is_freed_at_the_end_of_a_run():
    addresses = []

    def spy(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
        addresses.append(outs[0].array.ctypes.data)
        np.tanh(args[0].array, out=outs[0].array)

    g = Builder("freed")
    runtime = StaticRuntime(g.function(g.exp(g.tanh(g.input("x", tl.f32[4])))), operators={"tanh": spy})
    for _ in range(2):
        runtime(np.ones(4, np.float32))
    assert not runtime.is_in_buffer(addresses[-1])


def test_the_memory_of_a_run_that_fails_is_freed_too():
    fails = []

    def tanh(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
        if fails:
            raise ZeroDivisionError
        np.tanh(args[0].array, out=outs[0].array)

    g = Builder("fails")
    f = g.function(g.exp(g.tanh(g.exp(g.input("x", tl.f32[4])))))
    runtime = StaticRuntime(f, RuntimeOptions(manage_outputs=True), operators={"tanh": tanh})
    x = np.ones(4, np.float32)
    runtime(x)
    fails.append(True)
    with pytest.raises(ZeroDivisionError):
        runtime(x)
    # There are no results to release.
    assert runtime.figures.output_buffer_bytes == 0
    assert all(tensor.array.size == 0 for tensor in runtime.planner.tensors.values())


def test_a_bigger_input_grows_the_plan_after_the_run_that_showed_it():
    runtime = StaticRuntime(chain(3, n))
    bytes_after = []
    for extent in (16, 16, 32, 32, 8, 16):
        x = np.linspace(-1, 0, extent, dtype=np.float32)
        assert np.array_equal(runtime(x), evaluate(runtime.function, x))
        bytes_after.append(runtime.figures.managed_bytes)
    assert bytes_after == [128, 128, 256, 256, 256, 256]
    assert runtime.figures.repaired == 0


def test_managed_results_lie_in_a_second_buffer_without_reuse():
    g = Builder("results")
    x = g.input("x", tl.f32[20])
    f = g.function([g.exp(x), g.tanh(g.abs(x)), x])
    runtime = StaticRuntime(f, RuntimeOptions(manage_outputs=True))
    assert runtime.figures.managed_outputs == 2
    array = np.ones(20, np.float32)
    first = runtime(array)
    # The first run has ordinary memory, and nothing to release.
    assert not runtime.is_managed_output(first[0])
    assert runtime.figures.output_buffer_bytes == 0
    second = runtime(array)
    assert runtime.figures.output_buffer_bytes == 2 * 128
    assert [runtime.is_managed_output(each) for each in second] == [True, True, False]
    assert second[1].ctypes.data - second[0].ctypes.data == 128
    assert not any(runtime.is_in_buffer(each.ctypes.data) for each in second)


def test_results_must_be_released_before_the_next_run():
    runtime = StaticRuntime(chain(2), RuntimeOptions(manage_outputs=True))
    x = np.ones(4, np.float32)
    for _ in range(2):
        runtime(x)
    with pytest.raises(tl.CallError, match="outputs-in-use"):
        runtime(x)
    runtime.release_outputs()
    assert runtime.figures.output_buffer_bytes == 0
    assert np.array_equal(runtime(x), evaluate(runtime.function, x))


def test_results_without_management_belong_to_the_caller():
    runtime = StaticRuntime(chain(2))
    results = [runtime(np.full(4, i, np.float32)) for i in range(4)]
    for i, result in enumerate(results):
        assert np.array_equal(result, evaluate(runtime.function, np.full(4, i, np.float32)))


def assigning(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    outs[0].assign(np.tanh(args[0].array))


def sharing(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
    outs[0].share(args[0])


def custom() -> Function:
    g = Builder("custom")
    y = g.tanh(g.exp(g.input("x", tl.f32[4])))
    z = g.abs(y)
    return g.function(g.add(g.negative(g.exp(z)), y))


def test_a_changed_storage_is_repaired_after_the_run_and_counted():
    runtime = StaticRuntime(custom(), operators={"tanh": assigning})
    x = np.ones(4, np.float32)
    for count in (1, 2, 3):
        np.testing.assert_array_equal(runtime(x), evaluate(runtime.function, x))
        assert runtime.figures.repaired == count
        planner = runtime.planner
        assert all(tensor.storage is planner.storage_of(each) for each, tensor in planner.tensors.items())


def test_a_storage_that_two_values_share_is_managed_once():
    runtime = StaticRuntime(custom(), operators={"tanh": sharing})
    x = np.full(4, -0.5, np.float32)
    wanted = np.exp(x) - np.exp(np.exp(x))
    for _ in range(4):
        np.testing.assert_allclose(runtime(x), wanted, rtol=1e-6)
    group = next(group for group in runtime.planner.groups if "tanh" in group)
    # The two are one for the planner, as long as either of them is needed, and no third may join them.
    assert group == ("exp", "tanh")
    assert runtime.figures.repaired == 1


def test_a_storage_shared_in_a_later_run_only_leaves_the_numbers_right():
    calls = []

    def sometimes(args: Sequence[Tensor], outs: Sequence[Tensor]) -> None:
        calls.append(None)
        if len(calls) > 2:
            sharing(args, outs)
        else:
            np.copyto(outs[0].array, args[0].array)

    runtime = StaticRuntime(custom(), operators={"tanh": sometimes})
    x = np.full(4, -0.5, np.float32)
    wanted = np.exp(x) - np.exp(np.exp(x))
    for repaired in (0, 0, 1, 1, 1):
        np.testing.assert_allclose(runtime(x), wanted, rtol=1e-6)
        assert runtime.figures.repaired == repaired


def test_debugging_finds_a_storage_that_was_changed():
    runtime = StaticRuntime(custom(), RuntimeOptions(debug=True), operators={"tanh": assigning})
    with pytest.raises(tl.GraphError, match="`tanh` replaced the storage of `tanh`"):
        runtime(np.ones(4, np.float32))


def test_debugging_finds_an_operator_that_writes_what_it_reads():
    runtime = StaticRuntime(custom(), RuntimeOptions(debug=True), operators={"tanh": sharing})
    with pytest.raises(tl.GraphError, match="`tanh`: the output `tanh` overlaps `exp`"):
        runtime(np.ones(4, np.float32))


def test_debugging_changes_no_numbers():
    runtime = StaticRuntime(chain(6), RuntimeOptions(debug=True))
    x = np.full(4, -1, np.float32)
    for _ in range(3):
        assert np.array_equal(runtime(x), evaluate(runtime.function, x))

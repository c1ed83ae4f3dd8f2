"""What LLVM is told of loops."""

from __future__ import annotations

import platform

import numpy as np
import pytest
from llvmlite import binding

import tirlite as tl
from tirlite.codegen import Effort, lower
from tirlite.codegen.llvm import machine
from tirlite.codegen.loops.loop_hints import hints_of
from tirlite.ir import For, statements_of


def _innermost(terms: int | tl.ir.Var, sums: int) -> For:
    """The loop over the terms of a tile of some rows."""
    n = terms

    @tl.kernel
    def product(a: tl.f32[64, n], b: tl.f32[n, 16], y: tl.out[tl.f32[64, 16]]):
        for i in range(64):
            for j in range(16):
                y[i, j] = 0
                for p in tl.reduce(n):
                    y[i, j] += a[i, p] * b[p, j]

    s = tl.schedule(product)
    s.split("j", 16)
    s.cache_write("y", at="j.inner")
    s.vectorize("j.inner", 16)
    if sums > 1:
        s.unroll_jam("i", sums)
    return [*statements_of(s.func.body, For)][-1]


@pytest.mark.parametrize(("terms", "at_once"), [(64, 4), (66, 3), (50, 2), (3, 3), (67, 4), (tl.dim("n"), 4)])
def test_terms_of_several_sums_go_several_at_a_time(terms: int | tl.ir.Var, at_once: int) -> None:
    assert f'!{{!"llvm.loop.unroll.count", i32 {at_once}}}' in hints_of(_innermost(terms, 4), 32)


def test_terms_of_few_vectors_of_sums_go_one_by_one() -> None:
    """They wait for themselves meanwhile. As few terms as three are written out."""
    for terms in (64, tl.dim("n")):
        assert '!{!"llvm.loop.unroll.disable"}' in hints_of(_innermost(terms, 4), 64)
    assert '!{!"llvm.loop.unroll.count", i32 3}' in hints_of(_innermost(3, 4), 64)


def test_terms_of_many_sums_go_one_by_one() -> None:
    """Sixteen vectors of 64 bytes take longer than what counts their terms; eight go two terms at a time."""
    assert '!{!"llvm.loop.unroll.disable"}' in hints_of(_innermost(64, 16), 32)
    assert '!{!"llvm.loop.unroll.count", i32 2}' in hints_of(_innermost(64, 8), 32)


def test_three_or_four_terms_are_written_out_whatever_the_sums_take() -> None:
    for terms in (3, 4):
        assert f'!{{!"llvm.loop.unroll.count", i32 {terms}}}' in hints_of(_innermost(terms, 16), 32)


def test_copies_of_vectors_go_several_at_a_time() -> None:
    @tl.kernel
    def copied(x: tl.f32[64, 16], y: tl.out[tl.f32[64, 16]]):
        for i in range(64):
            for j in range(16):
                y[i, j] = x[i, j]

    s = tl.schedule(copied)
    s.vectorize("j", 16)
    assert '!{!"llvm.loop.unroll.count", i32 4}' in hints_of(*statements_of(s.func.body, For), 32)


def test_one_sum_goes_one_by_one() -> None:
    """It waits for itself."""
    assert '!{!"llvm.loop.unroll.disable"}' in hints_of(_innermost(64, 1), 32)


@pytest.mark.skipif(platform.machine() not in ("x86_64", "AMD64"), reason="elsewhere LLVM leaves selections alone")
def test_the_least_of_what_was_found_before_is_picked_without_branches() -> None:
    n = tl.dim("n")

    @tl.kernel
    def costs(x: tl.i32[n], y: tl.i32[n]):
        least = tl.i32(0)
        for i in range(n):
            least = min(min(least + 1, x[i] + 1), y[i])
            y[i] = least

    # One of each in the rest of the loop, that is not unrolled.
    assert tl.compile(costs).asm.count("cmov") > 2


def test_neighbours_are_loaded_anew_by_each_iteration() -> None:
    n, k = tl.dims("n k")

    @tl.kernel
    def curved(x: tl.f32[n + 2], first: tl.f32[k], y: tl.f32[n]):
        for i in range(k, n):
            y[i - k] = x[i] - 2 * x[i + 1] + x[i + 2]

    assert "vector.recur" not in tl.compile(curved, schedule=None).optimised_llvm


@pytest.mark.parametrize(
    ("value", "goes"),
    [
        ("x[i, j] / s", True),
        ("0", False),
        ("y[i, j] + x[i, j]", False),
        ("y[i, max(j - 1, 0)] + x[i, j]", False),
        ("x[i, j] * w[j]", False),
    ],
)
def test_short_rows_go_by_vectors_before_they_are_written_out(value: str, *, goes: bool) -> None:
    func = tl.parse(
        f"""
        n = tl.dim("n")

        @tl.kernel
        def divided(x: tl.f32[n, 24], y: tl.f32[n, 24], w: tl.f32[24], s: tl.f32):
            for i in range(n):
                for j in range(24):
                    y[i, j] = {value}
        """
    )
    *_, inner = statements_of(func.body, For)
    assert bool(hints_of(inner, 32)) is goes


def test_the_options_of_llvm_are_those_of_a_version_that_was_looked_at() -> None:
    assert binding.llvm_version_info[0] <= machine.OPTIONS_OF


def test_options_stay_off_until_the_last_thread_has_compiled(monkeypatch: pytest.MonkeyPatch) -> None:
    told: list[str] = []
    monkeypatch.setattr(binding, "set_option", lambda _, option: told.append(option))
    monkeypatch.setattr(machine, "OPTIONS", machine.Settings())
    host = machine.machine_for(Effort.NONE)
    with machine.options_off(host):
        with machine.options_off(host):
            pass
        assert all(option.endswith("=false") for option in told)
    assert told[-1].endswith("=true")


def test_llvm_looks_for_scalars_to_join_where_code_does_not_go_by_vectors() -> None:
    n = tl.dim("n")

    @tl.kernel
    def doubled(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = x[i] + x[i]

    assert lower(tl.compile(doubled, schedule=None).lowered).joins_scalars
    s = tl.schedule(doubled)
    s.vectorize("i", 8)
    assert not lower(tl.compile(doubled, schedule=s).lowered).joins_scalars


def test_no_instruction_of_sse_stands_between_those_of_avx() -> None:
    n = tl.dim("n")

    @tl.kernel
    def packed(x: tl.u8[n, 8], y: tl.out[tl.u8[n]]):
        for i in range(n):
            bits = tl.u8(0)
            for j in range(8):
                bits = bits | ((x[i, j] & 1) << tl.u8(j))
            y[i] = bits

    x = np.arange(80, dtype=np.uint8).reshape(10, 8)
    assert packed(x).tolist() == np.packbits(x & 1, bitorder="little").tolist()
    assert "insertq" not in packed.asm
    assert "extrq" not in packed.asm


def test_llvm_works_over_addresses_where_loops_go_element_by_element() -> None:
    """Along a row LLVM finds vectors; down a column, through what is written, by places in memory it does not."""
    n = tl.dim("n")
    head = "n = tl.dim('n')\n@tl.kernel\ndef f(x: tl.f32[n, n], at: tl.i64[n], y: tl.f32[n + 1, n + 1]):\n"
    start = " for i in range(n):\n  for j in range(n):\n   "

    def by_elements(*lines: str) -> bool:
        func = tl.parse(head + start + "\n   ".join(lines))
        return lower(tl.compile(func, schedule=None).lowered).extent.by_elements

    assert not by_elements("y[i, j] = x[i, j] + x[i, n - 1] * 2")
    assert not by_elements("a = x[i, j] * 3", "a = a * a", "y[i + 1, j + 1] = a")
    assert not by_elements("y[i, j] = x[i, j]", "y[i, j] = y[i, j] * 2")
    assert by_elements("y[j, i] = x[i, j]")
    assert by_elements("y[i, j + 1] = y[i, j] + x[i, j]")
    assert by_elements("y[i, at[j]] = x[i, j]")
    assert by_elements("if x[i, j] > 0:", " y[i, j] = x[i, j]")


def test_rows_whose_ends_are_in_memory_are_not_unrolled() -> None:
    source = """
    n, k = tl.dims("n k")

    @tl.kernel
    def rows(x: tl.f32[n], at: tl.i32[k], starts: tl.i32[n + 1], y: tl.out[tl.f32[n]]):
        for i in range(n):
            total = tl.f32(0)
            for p in range({}):
                total += x[at[p]]
            y[i] = total
    """
    for ends, hints in (("starts[i], starts[i + 1]", ('!{!"llvm.loop.unroll.disable"}',)), ("k", ())):
        *_, loop = tl.ir.statements_of(tl.parse(source.format(ends)).body, tl.ir.For)
        assert hints_of(loop, 32) == hints


def test_lanes_that_lie_far_apart_are_not_gathered_for_a_few_operations() -> None:
    n = tl.dim("n")

    @tl.kernel
    def turned(q: tl.f32[n, 9], y: tl.f32[n, 9]):
        for i in range(n):
            y[i, 0] = q[i, 4] * q[i, 8] - q[i, 5] * q[i, 7]
            y[i, 8] = q[i, 0] * q[i, 4] - q[i, 1] * q[i, 3]

    @tl.kernel
    def length(q: tl.f64[9 * n], y: tl.f64[n]):
        for i in range(n):
            y[i] = tl.sqrt(q[9 * i] * q[9 * i] + q[9 * i + 1] * q[9 * i + 1]) / q[9 * i + 8]

    @tl.kernel
    def color(q: tl.f32[n, 4], y: tl.f32[n]):
        for i in range(n):
            y[i] = q[i, 0] + q[i, 3]

    @tl.kernel
    def moved(q: tl.f32[n, 3, 3], x: tl.f32[n, 3], y: tl.f32[n, 3]):
        for i in range(n):
            for j in range(3):
                s = q[i, j, 0] * x[i, 0]
                for k in range(1, 3):
                    s += q[i, j, k] * x[i, k]
                y[i, j] = s

    one_by_one = ('!{!"llvm.loop.vectorize.width", i32 1}',)
    hints = [hints_of(next(statements_of(each.ir.body, For)), 32) for each in (turned, length, color, moved)]
    assert hints == [one_by_one, (), (), one_by_one]


@pytest.mark.parametrize("loop", ["range(k)", "tl.reduce(k)"])
def test_sums_of_differences_of_bytes_take_whole_vectors_first(loop: str) -> None:
    """Where the processor has no dot products of four bytes."""
    written = tl.parse(f"""
n, k = tl.dims("n k")

@tl.kernel
def f(a: tl.u8[n, k], q: tl.u8[k], y: tl.i32[n]):
    for i in range(n):
        s = tl.i32(0)
        for p in {loop}:
            s += abs(tl.i32(a[i, p]) - tl.i32(q[p]))
        y[i] = s
""")
    assert '"llvm.loop.vectorize.width", i32 32' in tl.compile(written, target=tl.Target("x86-64-v3")).llvm
    kernel, vector = tl.compile(written), tl.Target.host().processor.vector_bytes
    for length in (1, 20, vector, 3 * vector + 9):
        a, q = (np.random.default_rng(7).integers(0, 256, shape, np.uint8) for shape in ((3, length), length))
        y = np.zeros(3, np.int32)
        kernel(a, q, y)
        np.testing.assert_array_equal(y, abs(a.astype(int) - q).sum(1))


def test_what_keeps_where_the_best_so_far_is_stays_a_branch() -> None:
    n, m = tl.dims("n m")

    @tl.kernel
    def best(x: tl.f32[n, m], y: tl.out[tl.i32[n]]):
        for i in range(n):
            at = tl.i32(0)
            for j in range(1, m):
                if x[i, j] > x[i, at]:
                    at = tl.i32(j)
            y[i] = at

    x = np.float32([[1, 3, 3, 2, 9, 0], [5, 4, 3, 2, 1, 0]])
    assert best(x).tolist() == [4, 0]
    assert "branch_weights" in best.llvm

"""What a target says of a processor, and what becomes of kernels for each."""

from __future__ import annotations

import math
import re
from pathlib import Path

import pytest
from effort import effort

import tirlite as tl
from tirlite.codegen import Effort
from tirlite.kernels.gallery import CASES
from tirlite.schedules import Pack, UnrollJam, Vectorize
from tirlite.schedules.auto.tiling import Tiling
from tirlite.target import processor
from tirlite.target.processor import described

NAMED = ("x86-64-v2", "x86-64-v3", "x86-64-v4", "aarch64")
# Registers that code for a target names, and those that it must not.
REGISTERS = {
    "x86-64-v2": ("%xmm", "%ymm"),
    "x86-64-v3": ("%ymm", "%zmm"),
    "x86-64-v4": ("%zmm", "%tmm"),
    "aarch64": (r"\bv\d+\.", "%xmm"),
}
ZEN = b"""processor\t: 0
vendor_id\t: AuthenticAMD
flags\t\t: sse2 ssse3 sse4_1 sse4_2 cx16 lahf_lm popcnt abm avx avx2 bmi1 bmi2 f16c fma movbe avx_vnni

processor\t: 1
flags\t\t: nothing of this
"""


def test_the_host_is_one_of_the_named_processors_or_has_more() -> None:
    host = tl.Target.host().processor
    assert host.vector_bits >= 128
    assert host.registers >= 16
    assert all(size >= 4096 for size in host.caches)


def test_a_processor_is_read_from_what_the_system_says_of_it() -> None:
    zen = described("x86-64", ZEN, {0: 64, 1: 32768, 2: 1048576})
    assert (zen.level, zen.vector_bits, zen.registers, zen.has_fma) == (3, 256, 16, True)
    assert zen.dots == ("s16 s16", "u8 s8")
    assert zen.caches[:2] == (32768, 1048576)
    plain = described("x86-64", b"", {})
    assert (plain.level, plain.vector_bits, plain.has_fma) == (1, 128, False)
    arm = described("aarch64", b"Features\t: fp asimd asimddp", {})
    assert (arm.vector_bits, arm.registers, arm.dots) == (128, 32, ("s8 s8", "u8 u8"))


def test_of_a_cache_that_a_server_shares_the_processors_that_are_seen_count_on_a_part(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setattr(processor, "_CACHES", str(tmp_path))
    caches = ("1 Data 48K 0", "1 Instruction 32K 0", "2 Unified 2048K 0", "3 Unified 307200K 0-1,4")
    for place, words in enumerate(caches):
        folder = tmp_path / f"index{place}"
        folder.mkdir()
        for name, word in zip(("level", "type", "size", "shared_cpu_list"), words.split(), strict=True):
            (folder / name).write_text(f"{word}\n")
        (folder / "coherency_line_size").write_text("64\n")
    assert processor._caches() == {0: 64, 1: 48 << 10, 2: 2 << 20, 3: 48 << 20}


def test_gathers_are_taken_where_they_are_quicker_than_loads_one_by_one() -> None:
    wider = ZEN.replace(b"avx_vnni", b"avx512bw avx512cd avx512dq avx512f avx512vl", 1)
    zen, xeon = (described("x86-64", text, {}) for text in (wider, wider.replace(b"AuthenticAMD", b"GenuineIntel")))
    assert (zen.vector_bits, xeon.vector_bits) == (512, 512)
    assert (zen.masks_gathers, xeon.masks_gathers) == (False, True)


@pytest.mark.parametrize(("name", "tile"), [*zip(NAMED, [(6, 2), (6, 2), (6, 4), (6, 4)], strict=True)])
def test_a_tile_of_sums_fits_into_the_registers_with_what_is_added(name: str, tile: tuple[int, int]) -> None:
    processor = tl.Target(name).processor
    rows, vectors = processor.tile
    assert (rows, vectors) == tile
    assert rows * vectors + vectors + 1 <= processor.registers


def product(target: tl.Target) -> tl.Kernel:
    n, m, k = tl.dims("n m k")

    @tl.kernel(allow="contract", target=target)
    def product(a: tl.f32[n, k], b: tl.f32[k, m], y: tl.out[tl.f32[n, m]]):
        for i in range(n):
            for j in range(m):
                y[i, j] = 0
                for p in tl.reduce(k):
                    y[i, j] += a[i, p] * b[p, j]

    return product


def test_a_schedule_has_the_numbers_of_its_target() -> None:
    for name in NAMED:
        target = tl.Target(name)
        tiling = Tiling.of(target)
        steps = {type(step): step for step in product(target).schedule.steps}
        assert steps[UnrollJam].by == tiling.rows
        assert steps[Vectorize].lanes[0] == tiling.row_bytes // 4
        assert steps[Pack].whole == target.processor.tile[1] * target.processor.vector_bits // 32


def test_kernels_of_the_gallery_assemble_for_other_machines() -> None:
    gallery = {case.kernel.name: case.kernel for case in CASES}
    for name, (own, other) in REGISTERS.items():
        for kernel in (gallery["gated"], gallery["attention"]):
            code = tl.compile(kernel, target=tl.Target(name)).asm
            assert re.search(own, code), (kernel.name, name)
            assert not re.search(other, code), (kernel.name, name)
        with effort(Effort.SOME):
            code = product(tl.Target(name)).asm
        assert re.search(own, code)
        assert not re.search(other, code)


@pytest.mark.parametrize("dtype", [tl.f32, tl.f64])
def test_loads_of_a_maximum_wait_for_no_mask(dtype: tl.DType) -> None:
    """The mask comes of all maxima before: memory would be read at half its speed."""
    n = tl.dim("n")

    @tl.kernel(target=tl.Target("x86-64-v4"))
    def largest(x: dtype[n], y: tl.out[dtype[1]]):
        y[0] = dtype(-math.inf)
        for i in tl.reduce(n):
            y[0] = max(y[0], x[i])

    code = largest.asm
    assert re.search(r"vmaxp[sd]\t.*%zmm", code)
    assert not re.search(r"vmaxp[sd]\t[^%]*\(.*{%k", code)


def test_what_is_kept_on_disk_is_kept_for_a_processor() -> None:
    from tirlite.driver.content import content_key

    kernel = product(tl.Target("x86-64-v3"))
    keys = {content_key(kernel.content, tl.compile(kernel, target=tl.Target(name)).options, "usual") for name in NAMED}
    assert len(keys) == len(NAMED)

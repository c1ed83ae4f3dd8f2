"""What is exported to C: programs link it and compute what Python does, and bytes repeat."""

from __future__ import annotations

import ctypes
import re
import shutil
import subprocess
import threading
from pathlib import Path
from unittest.mock import patch

import numpy as np
import pytest

import tirlite as tl
from tirlite.bench.networks import mlp
from tirlite.interp import interpret

PAGE = Path(__file__).parents[3] / "docs" / "export.md"
COMPILER = shutil.which("cc")

n = tl.dim("n", max=4096)


@tl.kernel(target=tl.Target.host(workers=2))
def smooth(x: tl.f32[n], gain: tl.f32, y: tl.out[tl.f32[n]]):
    scaled = tl.alloc(tl.f32[n])
    for i in tl.parallel(n):
        assert x[i] < 1000, "an element is too large"
        scaled[i] = gain * x[i]
    for i in range(n):
        y[i] = scaled[i] + scaled[0]


def linked(folder: Path, *names: str) -> ctypes.CDLL:
    """The exported functions of these names, in a shared library."""
    library = folder / f"{names[0]}.so"
    subprocess.run([COMPILER, "-shared", "-o", library, *(folder / f"{name}.o" for name in names), "-lm"], check=True)
    return ctypes.CDLL(str(library))


def arena(size: int) -> tuple[np.ndarray, int]:
    """Memory, and an address in it that is a multiple of 64."""
    memory = np.empty(size + 64, np.uint8)
    return memory, memory.ctypes.data + -memory.ctypes.data % 64


def test_the_files_repeat_and_name_what_they_declare(tmp_path: Path) -> None:
    paths = smooth.export(tmp_path / "a")
    assert [path.name for path in paths] == ["smooth.o", "smooth.h", "smooth.cmake"]
    again = tl.compile(smooth).export(tmp_path / "b")
    assert [path.read_bytes() for path in paths] == [path.read_bytes() for path in again]
    header = paths[1].read_text()
    assert (
        "int32_t smooth(const tirlite_ctx *ctx, const float *x, float gain, float *y, int64_t n, void *arena);"
        in header
    )
    assert "#define SMOOTH_WORKERS 2" in header
    assert str(tmp_path) not in header


def test_all_types_have_names_in_c(tmp_path: Path) -> None:
    @tl.kernel
    def kinds(a: tl.f16[n], b: tl.bf16[n], c: tl.bool_[n], d: tl.u16[n], ctx: tl.i8, int_: tl.bool_, z: tl.f64[n]):
        for i in range(n):
            z[i] = tl.f64(a[i]) + tl.f64(b[i]) + d[i] + ctx if c[i] and int_ else 0.0

    header = kinds.export(tmp_path)[1].read_text()
    assert (
        "kinds(const tirlite_ctx *ctx, const uint16_t *a, const uint16_t *b, const uint8_t *c, const uint16_t *d,"
        " int8_t ctx_, uint8_t int_, double *z, int64_t n);" in header
    )


def test_parameters_may_begin_as_macros_of_c_do(tmp_path: Path) -> None:
    given = "INT64_MAX: tl.f32, TIRLITE_A: tl.i8, UINT8_C: tl.i64, _Bool: tl.u8, NULL: tl.u8, y: tl.f32[3]"
    header = tl.compile(tl.parse(f"@tl.kernel\ndef f({given}):\n    y[0] = 1")).export(tmp_path)[1].read_text()
    assert "float a_INT64_MAX, int8_t a_TIRLITE_A, int64_t a_UINT8_C, uint8_t a__Bool, uint8_t NULL_, " in header


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_parameters_may_be_called_as_macros_of_headers_are(tmp_path: Path) -> None:
    given = "K_WORKERS: tl.f32, J_ARENA_ALIGN: tl.i8, K_WEIGHT_BYTES: tl.i64, complex: tl.u8, y: tl.f32[3]"
    header = tl.compile(tl.parse(f"@tl.kernel\ndef k({given}):\n    y[0] = 1")).export(tmp_path)[1].read_text()
    assert "float K_WORKERS_, int8_t J_ARENA_ALIGN_, int64_t K_WEIGHT_BYTES_, uint8_t complex_, " in header
    smooth.export(tmp_path, name="j")
    program = tmp_path / "both.c"
    program.write_text('#include <complex.h>\n#include "j.h"\n#include "k.h"\n')
    checks = ["-std=c99", "-Wall", "-Wextra", "-pedantic", "-Werror"]
    subprocess.run([str(COMPILER), *checks, "-c", program, "-o", tmp_path / "both.o"], check=True)


def test_parameters_have_names_of_their_own_in_c(tmp_path: Path) -> None:
    @tl.kernel
    def scaled(α: tl.f32[n], β: tl.f32[n], NULL: tl.f32):
        for i in range(n):
            β[i] = NULL * α[i]

    header = scaled.export(tmp_path)[1].read_text()
    assert "const float *_, float *__, float NULL_, int64_t n)" in header


@pytest.mark.parametrize("machine", ["x86-64", "x86-64-v3", "aarch64"])
def test_other_machines_have_objects_of_their_own(tmp_path: Path, machine: str) -> None:
    data = smooth.export(tmp_path, target=machine)[0].read_bytes()
    assert data[:4] == b"\x7fELF"
    assert int.from_bytes(data[18:20], "little") == (183 if machine == "aarch64" else 62)


def test_what_no_program_could_run_is_refused(tmp_path: Path) -> None:
    @tl.kernel
    def grows(x: tl.i64[n], y: tl.out[tl.i64[n]]):
        for i in range(n):
            t = tl.alloc(tl.i64[x[i]])
            t[0] = x[i]
            y[i] = t[0]

    with pytest.raises(tl.KernelError, match=r"grows\(\) cannot be exported: the bytes of `t` are known only"):
        grows.export(tmp_path)
    with pytest.raises(tl.KernelError, match="its storage is planned as it is called"):
        tl.compile(smooth, strategy="per_shape").export(tmp_path)
    for name in ("double", "xor", "int32_t", "tirlite_ctx", "TIRLITE_DONE", "INT64_C", "errno", "", "1st", "é"):
        with pytest.raises(tl.CallValueError, match="the name cannot be"):
            smooth.export(tmp_path, name=name)
    for name in ("exp", "fmodf", "sqrtl"):
        with pytest.raises(tl.CallValueError, match="the C library has a function of that name"):
            smooth.export(tmp_path, name=name)
    with pytest.raises(tl.CallValueError, match="weights cannot be 'both'"):
        smooth.export(tmp_path, weights="both")  # type: ignore[arg-type]
    with pytest.raises(tl.CallValueError, match="the target cannot be 'arm'"):
        smooth.export(tmp_path, target="arm")
    with pytest.raises(tl.CallValueError, match="the target cannot be ''"):
        smooth.export(tmp_path, target="")
    assert not list(tmp_path.iterdir())


def test_files_that_are_there_stay_until_all_are_whole(tmp_path: Path) -> None:
    g = tl.graph.Builder("net")
    net = tl.graph.compile(g.function(g.matmul(g.input("x", tl.f32[2, 64]), np.ones((64, 64), np.float32))))
    for suffix in ("o", "h", "cmake", "weights"):
        (tmp_path / f"net.{suffix}").write_text("mine")
    with (
        patch("tirlite.runtime.export.write.compile_exported", side_effect=KeyboardInterrupt),
        pytest.raises(KeyboardInterrupt),
    ):
        net.export(tmp_path, name="net")
    assert {path.name: path.read_text() for path in tmp_path.iterdir()} == dict.fromkeys(
        ("net.o", "net.h", "net.cmake", "net.weights"), "mine"
    )
    net.export(tmp_path, name="net")
    assert (tmp_path / "net.weights").read_text() == "mine"
    assert len(list(tmp_path.iterdir())) == 4
    assert (tmp_path / "net.o").read_bytes()[:4] == b"\x7fELF"


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_names_that_differ_in_capitals_have_headers_of_their_own(tmp_path: Path) -> None:
    for name in ("smooth", "Smooth"):
        smooth.export(tmp_path, name=name)
    program = tmp_path / "both.c"
    program.write_text(
        '#include "smooth.h"\n#include "Smooth.h"\n#include "smooth.h"\n'
        "void *both[] = {(void *)smooth_arena_bytes, (void *)Smooth_arena_bytes};\n"
    )
    subprocess.run([str(COMPILER), "-Wall", "-Werror", "-c", program, "-o", tmp_path / "both.o"], check=True)


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_more_parameters_than_fit_into_registers(tmp_path: Path) -> None:
    b = tl.ir.Builder("many")
    y = b.param("y", tl.f64[1], out=True)
    numbers = [b.param(f"s{k}", tl.f64) for k in range(300)]
    total = numbers[0]
    for number in numbers[1:]:
        total = total + number
    b.store(y, 0, total)
    tl.compile(b.build()).export(tmp_path)
    y = np.zeros(1)
    many = linked(tmp_path, "many").many
    assert many(None, ctypes.c_void_p(y.ctypes.data), *map(ctypes.c_double, range(300))) == 0
    assert y[0] == sum(range(300))


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_weights_may_be_a_file_that_the_caller_maps(tmp_path: Path) -> None:
    net = tl.graph.compile(mlp().function)
    paths = net.export(tmp_path, name="net", weights="file")
    weights = np.fromfile(paths[3], np.uint8)
    assert f"#define NET_WEIGHT_BYTES {weights.size}\n" in paths[1].read_text()
    library = linked(tmp_path, "net")
    library.net_arena_bytes.restype = ctypes.c_int64
    keeping, there = arena(library.net_arena_bytes(ctypes.c_int64(2)))
    block, mapped = arena(weights.size)
    ctypes.memmove(mapped, weights.ctypes.data, weights.size)
    x, y = np.ones((2, 64), np.float32), np.zeros((2, 10), np.float32)
    addresses = [ctypes.c_void_p(each) for each in (x.ctypes.data, y.ctypes.data)]
    assert library.net(None, *addresses, ctypes.c_int64(2), ctypes.c_void_p(mapped), ctypes.c_void_p(there)) == 0
    np.testing.assert_array_equal(y, net(x))
    library.net_message.restype = ctypes.c_char_p
    for elsewhere in (None, mapped + 4):
        status = library.net(None, *addresses, ctypes.c_int64(2), ctypes.c_void_p(elsewhere), ctypes.c_void_p(there))
        assert library.net_message(status) == b"the weights are missing, or not aligned"


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_two_networks_in_one_program(tmp_path: Path) -> None:
    """The program of the page, under AddressSanitizer."""
    (source,) = re.findall(r"```c\n(.*?)```", PAGE.read_text(), re.DOTALL)
    (tmp_path / "main.c").write_text(source)
    net = tl.graph.compile(mlp().function, target=tl.Target.host(workers=2))
    net.export(tmp_path, name="first")
    smooth.export(tmp_path, name="second")
    flags = ["-std=c11", "-Wall", "-Wextra", "-Werror", "-pedantic", "-fsanitize=address,undefined", "-pthread"]
    sources = [tmp_path / name for name in ("main.c", "first.o", "second.o")]
    subprocess.run([COMPILER, *flags, "-o", tmp_path / "program", *sources, "-lm"], check=True)
    ran = subprocess.run([tmp_path / "program"], capture_output=True, text=True, check=True)
    *scores, sums, fault, size, place, version = ran.stdout.splitlines()
    x = (np.arange(3 * 64, dtype=np.float32) % 7 / np.float32(7)).reshape(3, 64)
    np.testing.assert_array_equal(np.array(scores, np.float32).reshape(3, 10), net(x))
    assert sums == "4 12"
    assert fault.startswith("assertion failed: an element is too large (test_export.py:")
    assert size == "a size is against what the function demands of it, or too large"
    assert place == "the arena is missing, or not aligned"
    assert version == "the context was made for another version of the interface"


ELSEWHERE = """
#include <stdio.h>
#include <stdlib.h>
#include "net.h"
#include "smooth.h"

int main(int count, char **given) {
  static float x[3 * 64], scores[3 * 10], y[5], z[5] = {1, 2, 3, 4, 5};
  void *weights = aligned_alloc(64, (NET_WEIGHT_BYTES + 63) / 64 * 64);
  void *arena = aligned_alloc(64, 1 << 20);
  FILE *file = fopen(given[count - 1], "rb");
  if (!file || fread(weights, 1, NET_WEIGHT_BYTES, file) != NET_WEIGHT_BYTES) return 1;
  for (int k = 0; k < 3 * 64; k++) x[k] = (float)(k % 7) / 7;
  if (net_arena_bytes(3) > 1 << 20 || net(NULL, x, scores, 3, weights, arena)) return 2;
  for (int k = 0; k < 30; k++) printf("%.9g\\n", scores[k]);
  if (smooth_arena_bytes(2.0f, 5) > 1 << 20 || smooth(NULL, z, 2.0f, y, 5, arena)) return 3;
  printf("%g %g\\n", y[0], y[4]);
  z[3] = 1001;
  printf("%s\\n", smooth_message(smooth(NULL, z, 2.0f, y, 5, arena)));
  return 0;
}
"""


def test_a_program_for_another_machine(tmp_path: Path) -> None:
    """An emulator runs it; it gives the bits of what was lowered for that machine, whose vectors group sums."""
    compiler, emulator = shutil.which("aarch64-linux-gnu-gcc"), shutil.which("qemu-aarch64")
    if compiler is None or emulator is None:
        pytest.skip("there is no compiler for aarch64, or no qemu-aarch64")
    kernel = tl.graph.compile(mlp().function, target=tl.Target("aarch64")).kernel
    paths = kernel.export(tmp_path, name="net", weights="file")
    smooth.export(tmp_path, target="aarch64")
    (tmp_path / "main.c").write_text(ELSEWHERE)
    sources = [tmp_path / name for name in ("main.c", "net.o", "smooth.o")]
    subprocess.run([compiler, "-static", "-o", tmp_path / "program", *sources, "-lm"], check=True)
    ran = subprocess.run([emulator, tmp_path / "program", paths[3]], capture_output=True, text=True, check=True)
    *scores, sums, fault = ran.stdout.splitlines()
    x = (np.arange(3 * 64, dtype=np.float32) % 7 / np.float32(7)).reshape(3, 64)
    wanted = np.zeros((3, 10), np.float32)
    named = {**kernel.fixed, "x": x, "scores": wanted}
    interpret(kernel.lowered, {**{each: named[each.name] for each in kernel.lowered.params}, kernel.lowered.dims[0]: 3})
    np.testing.assert_array_equal(np.array(scores, np.float32).reshape(3, 10), wanted)
    assert sums == "4 12"
    assert fault.startswith("assertion failed: an element is too large (test_export.py:")


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_each_worker_has_a_part_of_the_arena_in_the_place_of_a_heap(tmp_path: Path) -> None:
    net = tl.graph.compile(mlp().function, target=tl.Target.host(workers=3))
    net.export(tmp_path, name="net")
    library = linked(tmp_path, "net")
    task_kind = ctypes.CFUNCTYPE(ctypes.c_int64, ctypes.c_void_p, *[ctypes.c_int64] * 3)
    asked = []

    @ctypes.CFUNCTYPE(ctypes.c_int64, *[ctypes.c_void_p] * 3, *[ctypes.c_int64] * 3)
    def parallel(pool: int, task: int, closure: int, count: int, workers: int, chunks: int) -> int:
        asked.append(workers)
        bounds = [count * k // workers for k in range(workers + 1)]
        results = [0] * workers

        def run(worker: int) -> None:
            results[worker] = task_kind(task)(closure, bounds[worker], bounds[worker + 1], worker)

        threads = [threading.Thread(target=run, args=(worker,)) for worker in range(workers)]
        for thread in threads:
            thread.start()
        for thread in threads:
            thread.join()
        return next((each for each in results if each), 0)

    class Context(ctypes.Structure):
        _fields_ = (("abi", ctypes.c_uint32), ("parallel", ctypes.c_void_p), ("pool", ctypes.c_void_p))

    batch = 600
    library.net_arena_bytes.restype = ctypes.c_int64
    size = library.net_arena_bytes(ctypes.c_int64(batch))
    keeping, there = arena(size + 64)
    keeping[:] = 0xA5
    x = np.random.default_rng(0).standard_normal((batch, 64)).astype(np.float32)
    y = np.zeros((batch, 10), np.float32)
    context = Context(1, ctypes.cast(parallel, ctypes.c_void_p), None)
    addresses = [ctypes.c_void_p(each) for each in (x.ctypes.data, y.ctypes.data)]
    assert library.net(ctypes.byref(context), *addresses, ctypes.c_int64(batch), ctypes.c_void_p(there)) == 0
    np.testing.assert_array_equal(y, net(x))
    assert set(asked) == {3}
    end = there + size - keeping.ctypes.data
    assert (keeping[end:] == 0xA5).all()


@pytest.mark.skipif(COMPILER is None, reason="there is no C compiler")
def test_what_a_callee_takes_is_in_the_arena_where_it_has_a_bound(tmp_path: Path) -> None:
    @tl.kernel
    def turned(x: tl.f32[4, n], y: tl.f32[4, n]):
        for row in tl.parallel(4):
            line = tl.alloc(tl.f32[min(n, 3000)])
            for i in range(min(n, 3000)):
                line[i] = x[row, i]
            for i in range(min(n, 3000)):
                y[row, i] = line[min(n, 3000) - 1 - i]

    @tl.kernel(schedule=None)
    def twice(x: tl.f32[4, n], y: tl.f32[4, n], z: tl.f32[4, n]):
        tl.call(turned, x, y)
        tl.call(turned, y, z)

    twice.export(tmp_path)
    library = linked(tmp_path, "twice")
    library.twice_arena_bytes.restype = ctypes.c_int64
    for extent in (10, 4000):
        size = library.twice_arena_bytes(ctypes.c_int64(extent))
        assert size >= 3000 * 4
        keeping, there = arena(size + 64)
        keeping[:] = 0xA5
        x, (y, z) = np.arange(4 * extent, dtype=np.float32).reshape(4, extent), np.zeros((2, 4, extent), np.float32)
        addresses = [ctypes.c_void_p(each.ctypes.data) for each in (x, y, z)]
        assert library.twice(None, *addresses, ctypes.c_int64(extent), ctypes.c_void_p(there)) == 0
        assert np.array_equal(z[:, :3000], x[:, :3000])
        assert (keeping[there + size - keeping.ctypes.data :] == 0xA5).all()

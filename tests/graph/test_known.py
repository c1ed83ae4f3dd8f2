"""Networks that an earlier process has read and lowered: the same function, the same code, and nothing read again."""

from __future__ import annotations

import os
import pickle
import subprocess
import sys
import time
from pathlib import Path
from typing import Any

import numpy as np
import pytest

import tirlite as tl
from tirlite.bench.networks import mlp
from tirlite.graph.known.array_locations import FILLED, KEPT, ArrayLocation, Finder, Unkept, arrays_at
from tirlite.graph.known.lowered import LoweredFront
from tirlite.graph.known.models import ReadFunction, whole
from tirlite.graph.known.pickled import read, written
from tirlite.runtime.cache import keep, opened
from tirlite.sizes import maximum

onnx = pytest.importorskip("onnx")
helper, FLOAT = onnx.helper, onnx.TensorProto.FLOAT
RNG = np.random.default_rng(3)
X = RNG.standard_normal((2, 96), dtype=np.float32)


@pytest.fixture
def cache(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    monkeypatch.setenv("TIRLITE_CACHE", str(tmp_path / "cache"))
    return tmp_path / "cache"


@pytest.fixture
def readings(monkeypatch: pytest.MonkeyPatch) -> list[object]:
    """The models that were read while a test ran."""
    from tirlite.graph.onnx import model

    made: list[object] = []
    original = model.read_model
    monkeypatch.setattr(model, "read_model", lambda source, told: made.append(source) or original(source, told))
    return made


def weights(seed: int) -> np.ndarray:
    return np.random.default_rng(seed).standard_normal((96, 96), dtype=np.float32)


def save(path: Path, w: np.ndarray, *, external: str | None = None, name: str = "") -> str:
    """A layer of which the weights take more than what is kept of models itself, by the same way each time."""
    ones = np.ones((96, 96), np.float32)
    initializers = [onnx.numpy_helper.from_array(each, each_name) for each, each_name in ((w, "w"), (ones, "ones"))]
    nodes = [
        helper.make_node("MatMul", ["x", "w"], ["z"]),
        helper.make_node("MatMul", ["z", "ones"], ["s"]),
        helper.make_node("Add", ["s", "bias"], ["y"], name=name),
    ]
    initializers.append(onnx.numpy_helper.from_array(np.arange(96, dtype=np.float32), "bias"))
    given, made = (helper.make_tensor_value_info(each, FLOAT, ["n", 96]) for each in ("x", "y"))
    model = helper.make_model(
        helper.make_graph(nodes, "layer", [given], [made], initializers),
        opset_imports=[helper.make_opsetid("", 17)],
    )
    if external is None:
        onnx.save(model, path)
    else:
        (path.parent / external).unlink(missing_ok=True)
        onnx.save(model, path, save_as_external_data=True, location=external, size_threshold=0)
    return str(path)


def test_a_model_that_is_known_is_neither_read_nor_lowered(
    cache: Path, readings: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = save(tmp_path / "layer.onnx", weights(0))
    first = tl.from_onnx(path)
    net = tl.graph.compile(first)
    wanted = net(X)
    assert len(readings) == 1
    second = tl.from_onnx(path)
    monkeypatch.setattr("tirlite.graph.aot.lower.lower_program", None)
    again = tl.graph.compile(second)
    np.testing.assert_array_equal(again(X), wanted)
    np.testing.assert_array_equal(again(x=X, out={"y": (out := np.empty_like(wanted))}), wanted)
    np.testing.assert_array_equal(out, wanted)
    assert len(readings) == 1
    assert "cache" in again.timing
    assert tl.graph.structural_equal(first, second)
    assert str(first) == str(second)


def test_what_looks_inside_lowers_again(cache: Path, tmp_path: Path) -> None:
    path = save(tmp_path / "layer.onnx", weights(0))
    net, again = (tl.graph.compile(tl.from_onnx(path), order="memory") for _ in range(2))
    assert isinstance(again.kernel.front, LoweredFront)
    assert again.order is not None
    assert again.order.program.body.steps
    assert str(again.ir) == str(net.ir)
    assert str(again.lowered) == str(net.lowered)
    assert again.plan.total == net.plan.total
    assert str(again.safety) == str(net.safety)
    np.testing.assert_array_equal(again.interpret(X[:1]), net.interpret(X[:1]))
    assert again(X[:0]).shape == (0, 96)


@pytest.mark.parametrize("external", [None, "weights.bin"])
def test_other_weights_are_another_model(
    cache: Path, readings: list[object], tmp_path: Path, external: str | None
) -> None:
    path = tmp_path / "layer.onnx"
    results = []
    for seed in (0, 1, 0, 1):
        model = save(path, weights(seed), external=external)
        results.append(tl.graph.compile(tl.from_onnx(model))(X))
    assert not np.array_equal(results[0], results[1])
    np.testing.assert_array_equal(results[0], results[2])
    np.testing.assert_array_equal(results[1], results[3])
    # One model can have one file of data at a time: the entry is that of the last.
    assert len(readings) == (2 if external is None else 4)


def test_what_reading_was_told_counts(cache: Path, readings: list[object], tmp_path: Path) -> None:
    path = save(tmp_path / "layer.onnx", weights(0))
    told: list[dict[str, Any]] = [
        {},
        {"dims": {"n": 2}},
        {"dims": {"n": tl.dim("n", max=4)}},
        {"dims": {"n": tl.dim("n", max=8)}},
        {"outputs": ["z"]},
        {"shapes": {"x": [2, 96]}},
        {"constants": {"x": X}},
        {"constants": {"x": X + 1}},
    ]
    texts = [str(tl.from_onnx(path, **each)) for each in told]
    assert [str(tl.from_onnx(path, **each)) for each in told] == texts
    assert len(readings) == len(told)


def test_data_that_a_link_leads_out_of_the_folder_to_are_refused(cache: Path, tmp_path: Path) -> None:
    home = tmp_path / "home"
    home.mkdir()
    model = save(home / "layer.onnx", weights(0), external="weights.bin")
    tl.from_onnx(model)
    (home / "weights.bin").rename(tmp_path / "weights.bin")
    (home / "weights.bin").symlink_to(tmp_path / "weights.bin")
    with pytest.raises(tl.GraphError, match="a link out of the folder"):
        tl.from_onnx(model)


def test_data_that_change_while_they_are_read_are_not_kept(
    cache: Path, readings: list[object], tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    from tirlite.graph.onnx import model

    path = save(tmp_path / "layer.onnx", weights(0), external="weights.bin")
    counted = model.read_model

    def then_written(source: object, told: Any) -> Any:
        made = counted(source, told)
        data = (tmp_path / "weights.bin").read_bytes()
        time.sleep(0.02)  # longer than the system's clock for files takes for a step
        (tmp_path / "weights.bin").write_bytes(bytes([data[0] ^ 1]) + data[1:])
        return made

    monkeypatch.setattr(model, "read_model", then_written)
    assert not isinstance(tl.from_onnx(path), ReadFunction)
    monkeypatch.setattr(model, "read_model", counted)
    assert isinstance(tl.from_onnx(path), ReadFunction)
    assert len(readings) == 2


def test_a_graph_that_a_program_builds_is_not_lowered_again(
    cache: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    network = mlp()
    sizes = network.bindings[0]
    wanted = tl.graph.compile(network.function)(*network.arguments(sizes))
    monkeypatch.setattr("tirlite.graph.aot.lower.lower_program", None)
    again = tl.graph.compile(mlp().function)
    assert isinstance(again.kernel.front, LoweredFront)
    np.testing.assert_array_equal(again(*network.arguments(sizes)), wanted)


def other_bias(value: float) -> tl.graph.Function:
    g = tl.graph.Builder("net")
    x = g.input("x", tl.f32[tl.dim("n")])
    return g.function({"y": g.add(x, np.float32(value))})


def test_each_constant_option_and_order_counts(cache: Path) -> None:
    x = np.zeros(3, np.float32)
    for value in (1, 2, 1):
        np.testing.assert_array_equal(tl.graph.compile(other_bias(value))(x), np.full(3, value))
    kinds: list[dict[str, Any]] = [{}, {"strategy": "none"}, {"order": "memory"}, {"debug": True}]
    for each in kinds:
        tl.graph.compile(other_bias(7), **each)
    assert len({tl.graph.compile(other_bias(7), **each).kernel.front.content for each in kinds}) == 1
    assert all(isinstance(tl.graph.compile(other_bias(7), **each).kernel.front, LoweredFront) for each in kinds)
    kept = tl.graph.compile(other_bias(7), keep="all")
    assert not isinstance(kept.kernel.front, LoweredFront)


def test_extents_that_a_run_finds_are_found_for_known_graphs(cache: Path) -> None:
    def nonzero() -> tl.graph.Function:
        g = tl.graph.Builder("net")
        x = g.input("x", tl.f32[n := tl.dim("n")])
        is_positive = g.greater(x, 0.0)
        count = g.reduce_sum(g.cast(is_positive, tl.i64), 0)
        return g.function({"at": g.nonzero(is_positive, g.extent(count, n, "count"))})

    for _ in range(2):
        net = tl.graph.compile(nonzero())
        np.testing.assert_array_equal(net(np.array([0, 1, 0, 2], np.float32)), [[1, 3]])
        assert net(np.zeros(3, np.float32)).shape == (1, 0)
    assert isinstance(net.kernel.front, LoweredFront)


def test_extents_that_a_run_finds_meet_in_one_size_of_a_graph_that_is_read_back() -> None:
    g = tl.graph.Builder("found")
    n = tl.dim("n")
    y = g.input("y", tl.f32[n])
    first, second = (g.extent(g.input(name, tl.i64), n, name) for name in ("p", "q"))
    x = g.broadcast_to(y, (second * first, n))
    made = g.function(g.slice(x, [0], [maximum(second, first)], axes=[1]))
    again = read(*written(made))
    assert str(again) == str(made)
    net = tl.graph.compile(again)
    assert net(np.zeros(7, np.float32), np.int64(2), np.int64(3)).shape == (6, 3)


def test_damaged_entries_are_misses(cache: Path, readings: list[object], tmp_path: Path) -> None:
    """Bytes that are others with a checksum that is right: a miss, or a network that gives what it gave."""
    path = save(tmp_path / "layer.onnx", weights(0))
    wanted = tl.graph.compile(tl.from_onnx(path))(X)
    files = {each.name: each.read_bytes() for each in cache.iterdir()}
    rng = np.random.default_rng(0)
    for name, data in files.items():
        for at in rng.integers(0, len(data), 2):
            torn = bytearray(data)
            torn[at] ^= 1 << int(rng.integers(8))
            (cache / name).write_bytes(torn)
            np.testing.assert_array_equal(tl.graph.compile(tl.from_onnx(path))(X), wanted)
            (cache / name).write_bytes(data)


def test_entries_of_another_form_are_misses(cache: Path, readings: list[object], tmp_path: Path) -> None:
    path = save(tmp_path / "layer.onnx", weights(0))
    tl.from_onnx(path)
    (file,) = cache.iterdir()
    key = bytes.fromhex(file.name)
    listed, data, places = opened(key, file.read_bytes())
    changed = [list(places) for _ in range(4)]
    large = next(number for number, place in enumerate(places) if place[2] == 0)
    changed[0][large] = (places[large][0], (1 << 40,), *places[large][2:])
    changed[1][large] = ("|O", *places[large][1:])
    changed[2][large] = (*places[large][:3], -8, b"")
    changed[3].pop()
    cases = [None, (), (listed, data[:-9], places), (("../x", b""), data, places)]
    for number, plain in enumerate([*cases, *((listed, data, tuple(each)) for each in changed)], 2):
        keep(key, plain)
        assert tl.graph.compile(tl.from_onnx(path))(X).shape == X.shape
        assert len(readings) == number


def test_nothing_but_classes_of_tirlite_is_read(cache: Path) -> None:
    with pytest.raises(ValueError, match="no function"):
        read(pickle.dumps(os.system), [])
    data, arrays = written(other_bias(1))
    assert str(read(data, arrays)) == str(other_bias(1))


def test_arrays_are_aligned_wherever_they_lie_in_a_file(tmp_path: Path) -> None:
    """Random rows of arrays with odd bytes between them, some in one another's place."""
    rng = np.random.default_rng(1)
    for trial in range(40):
        made, parts = [], []
        for _ in range(int(rng.integers(1, 6))):
            array = rng.integers(0, 255, int(rng.integers(1, 5)) * 4096, np.uint8).view(
                rng.choice(["f4", "f8", "u1", "i2"])
            )
            made.append(array)
            parts += [rng.bytes(int(rng.integers(0, 80))), array.tobytes()]
        made.append(made[0].view(np.uint8)[:20000].copy() if made[0].nbytes > 20000 else made[0].copy())
        path = tmp_path / f"{trial}.bin"
        path.write_bytes(b"".join(parts) + b"end")
        file = whole(path)
        finder = Finder(made)
        finder.look_in(file.data)
        places = finder.places()
        assert all(place.file in (0, KEPT) for place in places)
        for array, got in zip(made, arrays_at(places, [whole(path).data]), strict=True):
            assert got.flags.aligned
            assert not got.flags.writeable
            assert got.dtype == array.dtype
            np.testing.assert_array_equal(got.view(np.uint8), array.view(np.uint8))


def test_arrays_of_one_value_take_no_room() -> None:
    made = [np.full((100, 100), -0.0, "f4"), np.full(5000, -0.0, "f4"), np.full((100, 100), np.nan, "f4")]
    finder = Finder(made)
    places = finder.places()
    assert [(place.file, len(place.data)) for place in places] == [(FILLED, 4)] * 3
    for array, got in zip(made, arrays_at(places, []), strict=True):
        assert got.tobytes() == array.tobytes()
        assert got.shape == array.shape


def test_too_much_that_is_in_no_file_is_not_kept() -> None:
    with pytest.raises(Unkept):
        Finder([RNG.standard_normal(1 << 23)]).places()
    with pytest.raises(ValueError, match="buffer"):
        arrays_at([ArrayLocation("<f4", (4,), KEPT, 0, b"123")], [])


def test_a_file_is_read_whole_or_not_at_all(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr("tirlite.graph.known.models._PIECE", 1000)
    data = RNG.bytes(12345)
    path = tmp_path / "file"
    path.write_bytes(data)
    first = whole(path)
    assert bytes(first.data) == data
    assert whole(path).digest == first.digest
    for at in (0, 999, 1000, 12344):
        path.write_bytes(data[:at] + bytes([data[at] ^ 1]) + data[at + 1 :])
        assert whole(path).digest != first.digest
    path.write_bytes(data + b"\0")
    assert whole(path).digest != first.digest
    monkeypatch.setattr("tirlite.graph.known.models._LARGEST", 12345)
    assert whole(path) is None
    path.write_bytes(data)
    assert whole(path).digest == first.digest
    path.write_bytes(b"")
    assert whole(path) is None
    assert whole(tmp_path) is None
    assert whole(tmp_path / "none") is None
    os.mkfifo(tmp_path / "pipe")
    assert whole(tmp_path / "pipe") is None


def test_a_new_process_loads_neither_the_package_nor_the_passes(tmp_path: Path) -> None:
    path = save(tmp_path / "layer.onnx", weights(0))
    program = (
        "import sys, numpy as np, tirlite as tl; net = tl.graph.compile(tl.from_onnx(sys.argv[1]));"
        "print(net(np.ones((2, 96), 'f4')).sum(), *sorted(sys.modules))"
    )
    given = {**os.environ, "TIRLITE_CACHE": str(tmp_path / "cache")}
    first, second = (
        subprocess.run([sys.executable, "-c", program, path], env=given, capture_output=True, text=True, check=True)
        for _ in range(2)
    )
    one, two = first.stdout.split(), second.stdout.split()
    assert one[0] == two[0]
    heavy = {"onnx", "llvmlite", "sympy", "tirlite.dsl.translate", "tirlite.graph.aot.lower", "tirlite.codegen.lower"}
    assert heavy - {"sympy"} <= set(one)
    assert not heavy & set(two)
    assert not [name for name in two if name.startswith(("tirlite.rewrite.st", "tirlite.kernels.operators.m"))]

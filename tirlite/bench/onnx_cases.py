"""Runs the test cases of the onnx package, and tells the outcome of each."""

from __future__ import annotations

from collections.abc import Iterator, Mapping, Sequence
from dataclasses import dataclass, replace
from importlib import import_module
from itertools import islice
from pathlib import Path
from typing import Any

import numpy as np
import numpy.typing as npt

from tirlite.diag import TirliteError
from tirlite.graph import Function, compile, evaluate, from_onnx  # noqa: A004
from tirlite.graph.onnx.model import NoOnnxPackage

KINDS = ("node", "simple", "pytorch-operator", "pytorch-converted")
PASS, UNSUPPORTED, WRONG, FAILED = "pass", "unsupported", "wrong", "failed"


@dataclass(frozen=True, slots=True)
class Outcome:
    """The outcome of a case: `state` is "pass", "unsupported", "wrong" (other numbers) or "failed" (an error).

    `is_bound`: inputs that are not floats, such as shapes, were given as constants. `operators`: those of its nodes.
    """

    kind: str
    name: str
    state: str
    why: str = ""
    is_bound: bool = False
    operators: tuple[str, ...] = ()


def outcomes(
    kinds: Sequence[str] = KINDS, *, pattern: str = "", compiled: bool = False, shard: tuple[int, int] = (1, 1)
) -> Iterator[Outcome]:
    """The outcome of each case whose name contains `pattern`, evaluated by the reference or compiled.

    `shard` (k, n) takes each n-th of these from the k-th on, as neighbours in the list are alike and cost alike.
    """
    try:
        loader = import_module("onnx.backend.test.loader")
    except ImportError:
        raise NoOnnxPackage("the cases of the package onnx").error() from None
    cases = (
        (kind, case)
        for kind in kinds
        for case in sorted(loader.load_model_tests(kind=kind), key=lambda each: str(each.name))
        if pattern in case.name
    )
    for kind, case in islice(cases, shard[0] - 1, None, shard[1]):
        yield replace(outcome(kind, case, compiled=compiled), operators=_operators(case))


def _operators(case: Any) -> tuple[str, ...]:
    """The operator types of a case's nodes, with their domain if it is not ONNX's own."""
    nodes = _model(case).graph.node
    return tuple(sorted({f"{each.domain}.{each.op_type}" if each.domain else each.op_type for each in nodes}))


def outcome(kind: str, case: Any, *, compiled: bool = False) -> Outcome:
    """The outcome of one case, an onnx.backend.test.case.TestCase.
    Cases pass shapes, axes and counts as inputs, which a graph must know. If the model cannot be read without them, it
    is read again with these inputs as constants.
    """
    first = _outcome(kind, case, {}, compiled=compiled)
    if first.state != UNSUPPORTED:
        return first
    try:
        known = _known(case)
    except Exception as error:
        return Outcome(kind, case.name, UNSUPPORTED, f"{first.why}; its data cannot be read: {type(error).__name__}")
    second = _outcome(kind, case, known, compiled=compiled) if known else first
    return first if second.state == UNSUPPORTED else replace(second, is_bound=True)


def _known(case: Any) -> dict[str, npt.NDArray[Any]]:
    """The inputs of the first data set that may determine shapes: integers, single elements, and a few by name."""
    model = _model(case)
    sets = list(_data_sets(case))
    names = [each.name for each in model.graph.input]
    found = {name: _stored(each) for name, each in zip(names, sets[0][0], strict=False)}
    return {
        name: each
        for name, each in found.items()
        if each.dtype.kind in "iub" or each.size <= 1 or name in ("scales", "roi")
    }


def _model(case: Any) -> Any:
    if case.model is not None:
        return case.model
    return import_module("onnx").load(Path(case.model_dir) / "model.onnx", load_external_data=False)


def _outcome(kind: str, case: Any, known: Mapping[str, npt.NDArray[Any]], *, compiled: bool) -> Outcome:
    try:
        model = case.model if case.model is not None else Path(case.model_dir) / "model.onnx"
        function = from_onnx(model, constants=known)
    except TirliteError as error:
        state = UNSUPPORTED if error.code in ("onnx-unsupported", "graph-shape-undecided") else FAILED
        return Outcome(kind, case.name, state, _reason(error))
    except Exception as error:
        return Outcome(kind, case.name, FAILED, f"{type(error).__name__}: {error}")
    try:
        given = [each.name for each in _model(case).graph.input]
        why = _compared(case, function, [name not in known for name in given], compiled=compiled)
    except TirliteError as error:
        return Outcome(kind, case.name, FAILED, _reason(error))
    except Exception as error:
        return Outcome(kind, case.name, FAILED, f"{type(error).__name__}: {error}")
    return Outcome(kind, case.name, WRONG if why else PASS, why)


def _reason(error: TirliteError) -> str:
    """The first informative line of an error."""
    lines = str(error).splitlines()
    return (lines[1] if error.code == "onnx-unsupported" and len(lines) > 1 else lines[0]).strip()


def _compared(case: Any, function: Function, is_passed: Sequence[bool], *, compiled: bool) -> str:
    """The first difference, or ""."""
    run = compile(function) if compiled else lambda *arrays: evaluate(function, *arrays)
    for inputs, wanted in _data_sets(case):
        passed = [each for each, is_param in zip(inputs, is_passed, strict=False) if is_param]
        arrays = [_stored(each) for each in passed[: len(function.params)]]
        found = run(*arrays)
        results = found if isinstance(found, tuple) else (found,)
        for name, mine, theirs in zip(function.outputs, results, wanted, strict=False):
            why = _difference(mine, theirs, case, inputs[0] if inputs else None)
            if why:
                return f"{name}: {why}"
    return ""


# A unit in the last place of types that are coarser than the tolerance of a case.
_COARSE = {"float16": 2.0**-9, "bfloat16": 2.0**-6}


# Integers of less than a byte, by the least and the greatest.
_SMALL = {"int2": (-2, 1), "uint2": (0, 3), "int4": (-8, 7), "uint4": (0, 15)}


def _difference(mine: Any, given: Any, case: Any, source: Any) -> str:
    theirs = _stored(given)
    if mine.shape != theirs.shape:
        return f"shape {mine.shape}, wanted {theirs.shape}"
    if mine.dtype != theirs.dtype:
        return f"{mine.dtype}, wanted {theirs.dtype}"
    kind = _kind(given)
    if theirs.dtype.kind == "f" or kind == "bfloat16" or kind.startswith("float"):
        a, b = (_numbers(each, kind) for each in (mine, theirs))
        coarse = _COARSE.get(kind, 0.0)
        # If a sum should be 0, the expected value is the rounding error of its largest terms.
        rest = np.abs(b[np.isfinite(b)]).max(initial=0) * 2.0**-23
        close = np.asarray(np.isclose(a, b, max(case.rtol, coarse), max(case.atol, coarse, rest), equal_nan=True))
        return "" if close.all() else f"{int((~close).sum())} of {close.size} elements differ"
    defined = _fits(source, kind) if kind in _SMALL and "cast" in case.name else True
    return "" if np.all((mine == theirs) | np.logical_not(defined)) else "elements differ"


def _fits(given: Any, kind: str) -> npt.NDArray[Any]:
    """Which numbers small integers hold: what casts make of other floats is open, and differs between ml_dtypes."""
    numbers, (least, most) = np.trunc(_numbers(_stored(given), _kind(given))), _SMALL[kind]
    return np.asarray((least <= numbers) & (numbers <= most))


def _numbers(array: npt.NDArray[Any], kind: str) -> npt.NDArray[Any]:
    """The array; for bits of bfloat16 and narrower floats, their values."""
    if kind == "bfloat16":
        return (array.astype(np.uint32) << 16).view(np.float32)
    return (
        array if array.dtype.kind == "f" else array.view(import_module("ml_dtypes").__dict__[kind]).astype(np.float32)
    )


def _kind(array: Any) -> str:
    """The name of the element type."""
    found = import_module("onnx.numpy_helper").to_array(array) if hasattr(array, "data_type") else np.asarray(array)
    return str(found.dtype.name)


def _stored(array: Any) -> npt.NDArray[Any]:
    """An array or TensorProto in the form that graphs take: bfloat16 and narrower floats as their bits."""
    made = np.asarray(import_module("onnx.numpy_helper").to_array(array) if hasattr(array, "data_type") else array)
    name = made.dtype.name
    if name in _SMALL:
        return made.astype(np.int8 if name.startswith("i") else np.uint8)
    if name == "bfloat16" or name.startswith(("float8", "float4")):
        return made.view(np.uint16 if name == "bfloat16" else np.uint8)
    return made


def _data_sets(case: Any) -> Iterator[tuple[list[Any], list[Any]]]:
    if case.model_dir is None:
        yield from ((list(inputs), list(outputs)) for inputs, outputs in case.data_sets or ())
        return
    for folder in sorted(Path(case.model_dir).glob("test_data_set_*")):
        yield _tensors(folder, "input"), _tensors(folder, "output")


def _tensors(folder: Path, kind: str) -> list[Any]:
    onnx, helper = import_module("onnx"), import_module("onnx.numpy_helper")
    made = []
    for number in range(len(list(folder.glob(f"{kind}_*.pb")))):
        proto = onnx.TensorProto()
        proto.ParseFromString((folder / f"{kind}_{number}.pb").read_bytes())
        made.append(helper.to_array(proto))
    return made

"""A sample in, what becomes of it out: the same as onnxruntime or the standard's reference gives, or what is wrong."""

from __future__ import annotations

import warnings
from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

import numpy as np
import onnx
from graph.onnx.beside import session
from graph.onnx.nodes.arrangement import ARRANGEMENT
from graph.onnx.nodes.elementwise import ELEMENTWISE
from graph.onnx.nodes.indexing import INDEXING
from graph.onnx.nodes.layers import LAYERS
from graph.onnx.nodes.reduction import REDUCTION
from graph.onnx.nodes.sample import Array, Draw, Sample
from graph.onnx.nodes.selection import SELECTION
from graph.onnx.nodes.window import WINDOW

import tirlite as tl

MAKERS: dict[str, Callable[[Draw], Sample]] = (
    ELEMENTWISE | ARRANGEMENT | WINDOW | INDEXING | REDUCTION | LAYERS | SELECTION
)
NEWEST = min(onnx.defs.onnx_opset_version(), 26)
SAME, UNSUPPORTED, UNDECIDED, NO_ORACLE, WRONG, FAILED = (
    "same",
    "unsupported",
    "undecided",
    "no oracle",
    "wrong",
    "failed",
)
# Relative errors: of f32 after some sums, and of types with fewer digits.
_CLOSE = {"float64": 2e-5, "float32": 2e-4, "float16": 1e-2, "bfloat16": 6e-2}


@dataclass(frozen=True)
class Verdict:
    state: str
    why: str = ""


def sample_of(seed: int, op: str = "") -> Sample:
    """The sample of a seed, of any operator or of this one."""
    names = sorted(MAKERS)
    return MAKERS[op or names[seed % len(names)]](Draw(seed, NEWEST))


def trial(sample: Sample, *, compiled: bool = False) -> Verdict:
    """Reads the node, computes it, and compares."""
    with warnings.catch_warnings(), np.errstate(all="ignore"):
        warnings.simplefilter("ignore")
        return _trial(sample, compiled=compiled)


def _trial(sample: Sample, *, compiled: bool) -> Verdict:
    wanted = [oracle(sample.model(), sample) for oracle in (onnxruntime, reference)]
    known = [each for each in wanted if each is not None]
    if not known:
        return Verdict(NO_ORACLE)
    try:
        function = tl.from_onnx(sample.model())
    except tl.TirliteError as error:
        return _refused(sample, error)
    except Exception as error:
        return Verdict(FAILED, f"{type(error).__name__}: {error}")
    for way in ("evaluated", "compiled") if compiled else ("evaluated",):
        try:
            run = (
                tl.graph.compile(function)
                if way == "compiled"
                else lambda *arrays: tl.graph.evaluate(function, *arrays)
            )
            found = run(*(_stored(sample.given[name]) for name in _names(function, sample)))
        except Exception as error:
            return Verdict(FAILED, f"{way}: {type(error).__name__}: {error}")
        results = found if isinstance(found, tuple) else (found,)
        differences = [difference(results, each) for each in known]
        if all(differences):
            return Verdict(WRONG, f"{way}: {differences[0]}")
    return Verdict(SAME)


def _refused(sample: Sample, error: tl.TirliteError) -> Verdict:
    """A model with dims may ask for what holds for some of their values only."""
    if error.code == "onnx-unsupported":
        return Verdict(UNSUPPORTED, str(error).splitlines()[1].strip())
    return Verdict(UNDECIDED if sample.symbolic and error.code.startswith("graph-") else FAILED, str(error))


def _names(function: Any, sample: Sample) -> list[str]:
    return list(sample.given)[: len(function.params)]


def _stored(array: Array) -> Array:
    return array.view(np.uint16) if array.dtype.name == "bfloat16" else array


def onnxruntime(model: onnx.ModelProto, sample: Sample) -> list[Array] | None:
    """The results, None where it does not take the model."""
    if any(each.dtype.name == "bfloat16" for each in (*sample.given.values(), *sample.fixed.values())):
        return None
    try:
        return [np.asarray(each) for each in session(model).run(None, dict(sample.given))]
    except Exception:
        return None


def reference(model: onnx.ModelProto, sample: Sample) -> list[Array] | None:
    """The results of the reference of the onnx package, None where it has none."""
    from onnx.reference import ReferenceEvaluator

    if _is_wrong(sample):
        return None
    try:
        found: Sequence[Any] = ReferenceEvaluator(model).run(None, dict(sample.given))
        return [np.asarray(each) for each in found]
    except Exception:
        return None


# Attributes of recurrent layers of which the reference takes no notice.
_IGNORED = ("activations", "clip", "direction", "input_forget")


def _is_wrong(sample: Sample) -> bool:
    """Whether the reference is known not to follow the standard, or coarse: it computes old operators as new ones."""
    op, attributes = sample.node.op_type, {each.name: each.i for each in sample.node.attribute}
    if op in ("LSTM", "GRU", "RNN"):
        return any(each.name in _IGNORED for each in sample.node.attribute) or "x4" in sample.node.input
    old = op in ("Softmax", "LogSoftmax", "Hardmax") and sample.opset < 13
    low = any(each.s == b"SAME_LOWER" for each in sample.node.attribute)
    return (
        old
        or op in ("Gelu", "GlobalMaxPool", "LpPool")
        or (op == "MaxPool" and low)
        or (op == "ConvTranspose" and attributes.get("group", 1) > 1)
    )


def difference(mine: Sequence[Array], theirs: Sequence[Array]) -> str:
    """What differs first, or ""."""
    for number, (a, b) in enumerate(zip(mine, theirs, strict=True)):
        if a.shape != b.shape:
            return f"result {number} has the shape {a.shape}, wanted {b.shape}"
        name = b.dtype.name
        if name == "bfloat16" and a.dtype == np.uint16:
            a = (a.astype(np.uint32) << 16).view(np.float32)
        elif a.dtype != b.dtype:
            return f"result {number} is {a.dtype}, wanted {b.dtype}"
        if name in _CLOSE:
            a, b = a.astype(np.float64), b.astype(np.float64)
            most = np.abs(b[np.isfinite(b)]).max(initial=0)
            least = _CLOSE[name] * most + (1e-6 if name == "float32" else 1e-30)
            close = np.isclose(a, b, _CLOSE[name], least, equal_nan=True)
        else:
            close = np.asarray(a == b)
        if not close.all():
            at = tuple(int(each[0]) for each in np.nonzero(np.atleast_1d(~close)))
            pair = np.atleast_1d(a)[at], np.atleast_1d(b)[at]
            return (
                f"{int((~close).sum())} of {close.size} of result {number}: {pair[0]} at {list(at)}, wanted {pair[1]}"
            )
    return ""

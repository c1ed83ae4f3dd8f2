"""The table of importers by domain and operator name: declared by a single operator here, or composed of several."""

from collections.abc import Mapping
from types import MappingProxyType

from tirlite.graph.onnx.importers.control import CONTROL
from tirlite.graph.onnx.importers.convolution import CONVOLUTION
from tirlite.graph.onnx.importers.declared import declared
from tirlite.graph.onnx.importers.elementwise import BINARY, ELEMENTWISE
from tirlite.graph.onnx.importers.features import FEATURES, VECTORIZER
from tirlite.graph.onnx.importers.microsoft import MICROSOFT, MICROSOFT_QUANTIZED
from tirlite.graph.onnx.importers.microsoft_language import ATTENTION, BLOCKS
from tirlite.graph.onnx.importers.quantization import QUANTIZATION
from tirlite.graph.onnx.importers.recurrence import RECURRENCE
from tirlite.graph.onnx.importers.reduction import NORMALIZATION, REDUCTION
from tirlite.graph.onnx.importers.sampling import RESIZING, SAMPLING
from tirlite.graph.onnx.importers.selection import INDEXING, SELECTION, check_indices
from tirlite.graph.onnx.importers.shape import SHAPE
from tirlite.graph.onnx.importers.spectral import SPECTRAL
from tirlite.graph.onnx.importers.trees import TREES
from tirlite.graph.onnx.translation import Importer
from tirlite.graph.op import OPS

_FAMILIES = (
    *(ELEMENTWISE, BINARY, SHAPE, CONVOLUTION, NORMALIZATION, REDUCTION, INDEXING),
    *(RESIZING, QUANTIZATION, RECURRENCE, CONTROL, SAMPLING, SELECTION, SPECTRAL, VECTORIZER),
)
_BY_INDEX = ("Gather", "GatherElements", "GatherND", "ScatterND")
_DECLARED = {
    (op.onnx.domain, op.onnx.name): declared(op, check_indices if op.onnx.name in _BY_INDEX else None)
    for op in OPS.values()
    if op.onnx is not None
}
_COMPOSED = {("", op): importer for family in _FAMILIES for op, importer in family.items()} | {
    (domain, op): importer
    for domain, importers in (
        ("com.microsoft", {**MICROSOFT, **ATTENTION, **BLOCKS, **MICROSOFT_QUANTIZED}),
        ("ai.onnx.ml", {**TREES, **FEATURES}),
    )
    for op, importer in importers.items()
}
assert not _DECLARED.keys() & _COMPOSED.keys(), "an operator declares itself and is composed"
IMPORTERS: Mapping[tuple[str, str], Importer] = MappingProxyType(_DECLARED | _COMPOSED)

__all__ = ["IMPORTERS"]

"""The closed table of importers: who makes which operator of ONNX, by domain and name."""

from collections.abc import Mapping
from types import MappingProxyType

from tirlite.graph.onnx.importers.binary import BINARY
from tirlite.graph.onnx.importers.control import CONTROL
from tirlite.graph.onnx.importers.convolution import CONVOLUTION
from tirlite.graph.onnx.importers.elementwise import ELEMENTWISE
from tirlite.graph.onnx.importers.indexing import INDEXING
from tirlite.graph.onnx.importers.microsoft import ADDED, MICROSOFT
from tirlite.graph.onnx.importers.microsoft_quantized import MICROSOFT_QUANTIZED
from tirlite.graph.onnx.importers.normalization import NORMALIZATION
from tirlite.graph.onnx.importers.quantization import QUANTIZATION
from tirlite.graph.onnx.importers.recurrence import RECURRENCE
from tirlite.graph.onnx.importers.reduction import REDUCTION
from tirlite.graph.onnx.importers.resizing import RESIZING
from tirlite.graph.onnx.importers.sampling import SAMPLING
from tirlite.graph.onnx.importers.selection import SELECTION
from tirlite.graph.onnx.importers.shape import SHAPE
from tirlite.graph.onnx.importers.spectral import SPECTRAL
from tirlite.graph.onnx.translation import Importer

_FAMILIES = (
    *(ELEMENTWISE, BINARY, SHAPE, CONVOLUTION, NORMALIZATION, REDUCTION, INDEXING),
    *(RESIZING, QUANTIZATION, RECURRENCE, CONTROL, SAMPLING, SELECTION, SPECTRAL, ADDED),
)
IMPORTERS: Mapping[tuple[str, str], Importer] = MappingProxyType(
    {("", op): importer for family in _FAMILIES for op, importer in family.items()}
    | {("com.microsoft", op): importer for op, importer in {**MICROSOFT, **MICROSOFT_QUANTIZED}.items()}
)

__all__ = ["IMPORTERS"]

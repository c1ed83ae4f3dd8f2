"""Models as text, in the form that ONNX gives them."""

from __future__ import annotations

from typing import Any

import numpy as np


def model(text: str, *, opset: int = 18, **weights: Any) -> Any:
    """The model of a graph such as `(float[n, 3] x) => (y) { y = Neg(x) }`, with these arrays as constants."""
    from onnx import numpy_helper, parser

    made = parser.parse_model(f'<ir_version: 8, opset_import: ["" : {opset}]> net {text}')
    made.graph.initializer.extend(numpy_helper.from_array(np.asarray(value), name) for name, value in weights.items())
    return made

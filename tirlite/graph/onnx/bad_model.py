"""The error that a file is not a model, or contradicts itself."""

from __future__ import annotations

from tirlite.diag import GraphError, Message


class BadOnnxModel(Message):
    """A file is not an ONNX model, or contradicts itself.

    Example: `tl.from_onnx("notes.txt")`.
    Fix: Give the path of a model that an exporter wrote.
    """

    code = "onnx-bad-model"
    raises = GraphError
    title = "`{model}`: {why}"

    model: str
    why: str

"""Reads ONNX models as functions of operators: import, folding, and one family of operators a file."""

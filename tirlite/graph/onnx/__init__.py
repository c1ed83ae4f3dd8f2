"""ONNX models become functions of operators: reading, folding, one family of operators a file."""

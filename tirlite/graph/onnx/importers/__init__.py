"""Importers of the operators of ONNX: nodes in, values of a graph out, one family a file, and the table of all."""

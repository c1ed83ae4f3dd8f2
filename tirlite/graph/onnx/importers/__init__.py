"""Importers turn the operators of ONNX from nodes into values of a graph: one family a file, and the table of all."""

"""Measures tirlite: the commands `bench` and `onnx-coverage`, which exist only in a checkout."""

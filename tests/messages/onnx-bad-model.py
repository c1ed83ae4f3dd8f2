import tirlite as tl

tl.from_onnx(b"this is no model")

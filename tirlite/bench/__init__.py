"""What measures tirlite: the commands `bench` and `onnx-coverage`, in a checkout alone."""

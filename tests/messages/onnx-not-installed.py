import sys
from unittest.mock import patch

import tirlite as tl

with patch.dict(sys.modules, {"onnx": None}):
    tl.from_onnx("model.onnx")

"""Writes ResNet-50 with random weights to an ONNX file, or measures the time from such a file to the first result.

python -m tirlite.bench.probes.network write FILE BLOCKS
python -m tirlite.bench.probes.network run FILE
"""

from __future__ import annotations

import json
import sys
from time import perf_counter, process_time
from typing import Any

STAGES = ((3, 64), (4, 128), (6, 256), (3, 512))


def write(path: str, most_blocks: int) -> None:
    """Writes the network, with at most `most_blocks` blocks in each of its stages. Source: He et al., 2016."""
    import numpy as np
    import onnx
    from onnx import helper, numpy_helper

    rng = np.random.default_rng(5)
    nodes: list[Any] = []
    weights: list[Any] = []

    def weight(*shape: int, mean: float = 0.0, scale: float = 0.1) -> str:
        name = f"w{len(weights)}"
        values = mean + scale * rng.standard_normal(shape, np.float32)
        weights.append(numpy_helper.from_array(values.astype(np.float32), name))
        return name

    def node(kind: str, *inputs: str, **attributes: Any) -> str:
        nodes.append(helper.make_node(kind, list(inputs), [f"v{len(nodes)}"], **attributes))
        return f"v{len(nodes) - 1}"

    def conv(x: str, channels: int, made: int, window: int, stride: int = 1) -> str:
        scale = (2 / (channels * window * window)) ** 0.5
        taps = weight(made, channels, window, window, scale=scale)
        y = node("Conv", x, taps, strides=[stride] * 2, pads=[window // 2] * 4)
        variance = weight(made, mean=1.0)
        return node("BatchNormalization", y, weight(made, mean=0.5), weight(made), weight(made), variance)

    def bottleneck(x: str, channels: int, inner: int, stride: int) -> str:
        y = node("Relu", conv(x, channels, inner, 1))
        y = conv(node("Relu", conv(y, inner, inner, 3, stride)), inner, 4 * inner, 1)
        same = x if channels == 4 * inner and stride == 1 else conv(x, channels, 4 * inner, 1, stride)
        return node("Relu", node("Add", y, same))

    y = node("Relu", conv("image", 3, 64, 7, 2))
    y, channels = node("MaxPool", y, kernel_shape=[3, 3], strides=[2, 2], pads=[1] * 4), 64
    for stage, (blocks, inner) in enumerate(STAGES):
        for block in range(min(blocks, most_blocks)):
            y, channels = bottleneck(y, channels, inner, 2 if stage and not block else 1), 4 * inner
    pooled = node("Flatten", node("GlobalAveragePool", y))
    scores = node("Softmax", node("Gemm", pooled, weight(1000, channels), weight(1000), transB=1))
    given = helper.make_tensor_value_info("image", onnx.TensorProto.FLOAT, ["batch", 3, 224, 224])
    made = helper.make_tensor_value_info(scores, onnx.TensorProto.FLOAT, ["batch", 1000])
    graph = helper.make_graph(nodes, "resnet50", [given], [made], weights)
    onnx.save(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]), path)


def run(path: str) -> dict[str, float]:
    """Wall and CPU seconds from the import of tirlite to the result for one image; wall seconds of a second call."""
    import numpy as np

    image = np.ones((1, 3, 224, 224), np.float32)
    start, start_cpu = perf_counter(), process_time()
    import tirlite as tl

    net = tl.graph.compile(tl.from_onnx(path))
    net(image)
    first, cpu = perf_counter() - start, process_time() - start_cpu
    start = perf_counter()
    net(image)
    return {"first": first, "cpu": cpu, "second": perf_counter() - start}


if __name__ == "__main__":
    if sys.argv[1] == "write":
        write(sys.argv[2], int(sys.argv[3]))
    else:
        print(json.dumps(run(sys.argv[2])))

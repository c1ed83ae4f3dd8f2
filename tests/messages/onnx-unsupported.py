from onnx import TensorProto, helper

import tirlite as tl

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
nodes = [
    helper.make_node("ImageDecoder", ["x"], ["once"]),
    helper.make_node("Relu", ["once"], ["kept"]),
    helper.make_node("Frobnicate", ["x"], ["z"], domain="com.example"),
    helper.make_node("Add", ["kept", "z"], ["y"]),
]
graph = helper.make_graph(nodes, "net", [x], [y])
tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

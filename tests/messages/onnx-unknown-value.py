from onnx import TensorProto, helper

import tirlite as tl

x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
graph = helper.make_graph([helper.make_node("Relu", ["z"], ["y"])], "net", [x], [y])
tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

from onnx import TensorProto, helper

import tirlite as tl

weights = helper.make_tensor("w", TensorProto.FLOAT, [4], bytes(16), raw=True)
weights.raw_data = bytes(8)
x, y = (helper.make_tensor_value_info(name, TensorProto.FLOAT, [4]) for name in "xy")
graph = helper.make_graph([helper.make_node("Add", ["x", "w"], ["y"])], "net", [x], [y], [weights])
tl.from_onnx(helper.make_model(graph, opset_imports=[helper.make_opsetid("", 17)]))

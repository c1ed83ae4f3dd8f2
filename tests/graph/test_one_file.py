"""An operator is one file: a new one in the folder of operators is a method, an importer, a kernel and a plan."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("onnx")

# Twice `x * tanh(log(1 + exp(x)))`, and sums of squares along rows by loops of its own and no NumPy function.
OPERATORS = '''
import numpy as np
import tirlite as tl
from tirlite.graph.builder.calls import CallBuilder, Operand
from tirlite.graph.builder.calls import operator, unary
from tirlite.graph.expr import Call
from tirlite.graph.op import Attrs, Lowering, Site, Spelling
from tirlite.graph.types import TensorType
from tirlite.kernels.operators import formulas as f
from tirlite.kernels.operators.factory import factory
from tirlite.record import record


def same(site: Site, attrs: Attrs) -> TensorType:
    return site.tensor(0)


@record
class Scaled(Attrs):
    """What sums are multiplied by."""

    scale: float = 1.0


def rows(site: Site, attrs: Scaled) -> TensorType:
    x = site.tensor(0)
    if x.rank != 2 or x.dtype != tl.f32:
        raise site.mismatch("operand 0 must be a matrix of f32")
    return TensorType(x.shape[:1], x.dtype)


@factory
def squares(X, Y, *, scale):
    rows, columns = X.shape

    @tl.kernel
    def row_squares(x: X, y: tl.out[Y]):
        for i in tl.parallel(rows):
            total = tl.f32(0.0)
            for j in tl.reduce(columns):
                total += x[i, j] * x[i, j]
            y[i] = total * scale

    return row_squares.ir


class Exercise(CallBuilder):
    """Two operators."""

    double_mish = unary(
        "2 * mish(x).", same, lambda x: 2 * x * np.tanh(np.log1p(np.exp(x))),
        lambda x: x * f.tanh(f.softplus(x)) * 2, "DoubleMish",
    )

    @operator(
        rows, None, Lowering(squares), attrs=Scaled,
        onnx=Spelling("RowSquares", lambda node: Scaled(node.number("scale", 1.0)), "exercise"),
    )
    def row_squares(self, x: Operand, scale: float = 1.0) -> Call:
        """The sums of the squares along rows, times `scale`."""
        return self.call("row_squares", x, attrs=Scaled(scale))
'''

USE = """
import sys
import numpy as np
import onnx
from onnx import TensorProto, helper
import tirlite as tl
import tirlite.graph.operators

tirlite.graph.operators.__path__.append(sys.argv[1])

n = tl.dim("n")
g = tl.graph.Builder("own")
x = g.input("x", tl.f32[n, 6])
f = g.function(g.row_squares(g.double_mish(g.add(x, 1.0)), scale=0.5))
assert g.double_mish.__doc__.endswith("* mish(x).") and "double_mish" in tl.graph.OPS

nodes = [
    helper.make_node("Add", ["x", "one"], ["a"]),
    helper.make_node("DoubleMish", ["a"], ["b"]),
    helper.make_node("RowSquares", ["b"], ["y"], domain="exercise", scale=0.5),
]
info = helper.make_tensor_value_info
graph = helper.make_graph(
    nodes, "read", [info("x", TensorProto.FLOAT, ["n", 6])], [info("y", TensorProto.FLOAT, ["n"])],
    [helper.make_tensor("one", TensorProto.FLOAT, [], [1.0])],
)
opsets = [helper.make_opsetid("", 20), helper.make_opsetid("exercise", 1)]
read = tl.from_onnx(helper.make_model(graph, opset_imports=opsets))

for function in (f, read):
    for rows in (1, 5):
        x = np.random.default_rng(rows).standard_normal((rows, 6)).astype(np.float32)
        mish = (x + 1) * np.tanh(np.log1p(np.exp(x + 1)))
        wanted = 0.5 * ((float(sys.argv[2]) * mish) ** 2).sum(1)
        net = tl.graph.compile(function)
        for made in (tl.graph.evaluate(function, x), net(x)):
            np.testing.assert_allclose(made, wanted, rtol=1e-5)
    print(function.body.op, net.plan.total)
"""


def test_a_new_operator_is_a_file_of_its_own(tmp_path: Path) -> None:
    folder = tmp_path / "operators"
    folder.mkdir()
    (tmp_path / "use.py").write_text(USE)
    # The cache outlives an edit of the file.
    for factor in ("2", "3"):
        (folder / "exercise.py").write_text(OPERATORS.replace("2 * x", f"{factor} * x").replace("* 2,", f"* {factor},"))
        command = [sys.executable, str(tmp_path / "use.py"), str(folder), factor]
        # Python's own cache takes files of one size and one second for the same.
        given = {**os.environ, "TIRLITE_CACHE": str(tmp_path / "cache"), "PYTHONDONTWRITEBYTECODE": "1"}
        done = subprocess.run(command, capture_output=True, text=True, check=False, env=given)
        assert done.stderr == ""
        # What is added goes in place of itself: one tensor of 6 n floats lies between the operators.
        assert done.stdout.split("\n")[:2] == ["<operator row_squares> 24*n", "<operator row_squares> 24*n"]

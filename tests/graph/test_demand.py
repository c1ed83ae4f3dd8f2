"""What is not a function of a graph is told in one way by all that takes one."""

import re

import numpy as np
import pytest
from every import every

import tirlite as tl
from tirlite.diag import CallTypeError, GraphError, KernelRunError
from tirlite.graph.evaluate import apply
from tirlite.graph.expr import constant

g = tl.graph.Builder("net")
f = g.function(g.gather(g.input("x", tl.f32[4]), g.input("at", tl.i64[2]), 0))


@tl.kernel
def double(x: tl.f32[8], y: tl.out[tl.f32[8]]):
    for i in range(8):
        y[i] = 2 * x[i]


class Liar:
    """Something that claims to be a function of a graph."""

    @property
    def __class__(self):
        return tl.graph.Function


TAKERS = [
    tl.graph.compile,
    tl.graph.evaluate,
    tl.graph.explicit_allocation,
    tl.graph.lower,
    tl.graph.memory_problem,
    tl.graph.plan_memory,
    tl.graph.program,
    tl.graph.StaticRuntime,
    tl.graph.trace,
    tl.graph.validate,
    lambda given: tl.graph.structural_equal(given, f),
    lambda given: tl.graph.structural_equal(f, given),
]


@pytest.mark.parametrize(
    "given", [3, None, "net", [], g, object(), int, Liar()], ids=lambda given: type(given).__name__
)
def test_all_that_takes_a_function_tells_of_anything_else(given):
    for take in TAKERS:
        with pytest.raises(CallTypeError, match="no-graph-function"):
            take(given)


@pytest.mark.parametrize(
    ("take", "told"),
    [
        (tl.graph.memory_order, "memory_order() takes a Program, and is given a"),
        (tl.graph.storage_problem, "storage_problem() takes a Routine, and is given a"),
        (lambda given: constant(given, tl.f32), "constant() takes a ndarray, and is given a"),
        (lambda given: constant(np.zeros(3), given), "constant() takes a DType, and is given a"),
        (lambda given: apply(given, (), {}), "apply() takes a Call, and is given a"),
        (lambda given: tl.graph.CompiledGraph(f, given, None), "CompiledGraph() takes a Lowered, and is given a"),
        (tl.graph.Executable, "Executable() takes a tuple, and is given a"),
        (lambda given: tl.graph.Executable((given,)), "Executable() takes a Routine, and is given a"),
        (lambda given: tl.graph.Call(f.body.op, (given,)), "Call() takes an Expr, and is given a"),
        (lambda given: tl.graph.Constant(given, tl.f32), "Constant() takes a ndarray, and is given a"),
        (lambda given: tl.graph.Tuple((given,)), "Tuple() takes an Expr, and is given a"),
        (lambda given: tl.graph.TupleGetItem(given, 0), "TupleGetItem() takes an Expr, and is given a"),
        (lambda given: tl.graph.If(given, f.body, f.body), "If() takes an Expr, and is given a"),
        (lambda given: tl.graph.Let(given, f.body, f.body), "Let() takes a Var, and is given a"),
        (lambda given: tl.graph.Function("net", (), given), "Function() takes an Expr, and is given a"),
        (lambda given: tl.graph.StaticRuntime(f, given or 3), "StaticRuntime() takes a RuntimeOptions, and is given a"),
        (tl.passes.verify_after, "verify_after() takes a Step, and is given a"),
        (lambda given: tl.Kernel(double.ir, given), "Kernel() takes an Options, and is given a"),
        (lambda given: tl.Kernel(given, double.options), "Kernel() takes a PrimFunc, and is given a"),
    ],
)
@every("given", [3, None, "net", [3], object(), f])
def test_what_is_of_another_kind_is_told(take, told, given):
    with pytest.raises(CallTypeError, match=rf"^error\[(argument-kind|no-primfunc)\]: {re.escape(told)}"):
        take(given)


def test_a_compiled_graph_is_known_to_have_one():
    with pytest.raises(CallTypeError, match="give its `.function`"):
        tl.graph.plan_memory(tl.graph.compile(f))


@pytest.mark.parametrize("given", [3, None, "f32", [1], (3,), object(), f])
def test_what_is_no_type_is_told(given):
    with pytest.raises(CallTypeError, match="no-tensor-type"):
        tl.graph.Builder("net").input("p", given)
    with pytest.raises(CallTypeError, match="no-tensor-type"):
        tl.graph.TensorType((3,), given)


@pytest.mark.parametrize("extent", [2**63, -(2**70), 10**5000], ids=["over", "under", "long"])
def test_extents_have_64_bits(extent):
    with pytest.raises(GraphError, match="bad-graph-extent"):
        tl.graph.TensorType((extent,), tl.f32)


@pytest.mark.parametrize("library", [tl.graph.NUMPY, tl.graph.NATIVE])
def test_an_index_out_of_bounds_is_told_by_every_executor(library):
    x, at = np.zeros(4, np.float32), np.array([0, 9])
    for run in (tl.graph.StaticRuntime(f, library=library), tl.graph.compile(f)):
        with pytest.raises(KernelRunError, match="index 9"):
            run(x, at)


def test_a_constant_index_out_of_bounds_is_told_when_it_is_computed():
    g = tl.graph.Builder("net")
    chosen = g.if_(g.input("c", tl.bool_), g.gather(g.constant(np.arange(4.0)), g.constant(np.array(9)), 0), 1.0)
    net = tl.graph.compile(g.function(chosen))
    assert net(np.array(False)) == 1
    with pytest.raises(KernelRunError, match="index 9"):
        net(np.array(True))

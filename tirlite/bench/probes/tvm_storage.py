"""Prints the bytes that TVM allocates for the buffers of a table, or for the tensors between a model's operators.

For a table, it makes a program that touches each buffer where its lifetime begins and ends, with one statement per
time, and counts what StorageRewrite leaves allocated. A model goes through TVM's passes for a CPU, up to
StaticPlanBlockMemory. This runs as a process of its own because TVM brings its own LLVM.
"""

from __future__ import annotations

import sys
from importlib import import_module
from pathlib import Path
from typing import Any

from tirlite.plan import Problem, read_csv


def rewritten(problem: Problem) -> int:
    """The bytes that are allocated after StorageRewrite."""
    tvm, tirx = import_module("tvm"), import_module("tvm.tirx")
    buffers: dict[str, Any] = {}
    touched: dict[int, list[Any]] = {}
    for number, request in enumerate(problem.requests):
        buffer = tirx.decl_buffer((request.size,), "int8", name=f"b{number}", scope="global")
        buffers[request.id] = buffer
        for time in {each for start, end in request.live for each in (start, end - 1)}:
            touched.setdefault(time, []).append(tirx.BufferLoad(buffer, [tirx.IntImm("int32", 0)]))
    touches = [tirx.Evaluate(tirx.call_extern("int32", "touch", *touched[time])) for time in sorted(touched)]
    body = tirx.SeqStmt([*map(tirx.AllocBuffer, buffers.values()), *touches])
    module = tvm.IRModule({"main": tirx.PrimFunc([], body).with_attr("global_symbol", "main")})
    return _allocated(tirx, tirx.transform.StorageRewrite()(module)["main"].body)


def _allocated(tirx: Any, body: Any) -> int:
    data_type = import_module("tvm").DataType
    total, waiting = 0, [body]
    while waiting:
        stmt = waiting.pop()
        if isinstance(stmt, tirx.AllocBuffer):
            kind = data_type(stmt.buffer.dtype)
            count = 1
            for extent in stmt.buffer.shape:
                count *= int(extent)
            total += count * kind.bits * kind.lanes // 8
        waiting += list(stmt.seq) if isinstance(stmt, tirx.SeqStmt) else [stmt.body] if hasattr(stmt, "body") else []
    return total


def planned(model: Path) -> int:
    """The bytes of the storages that Relax shares between a model's tensors, without its results."""
    tvm, relax, onnx = import_module("tvm"), import_module("tvm.relax"), import_module("onnx")
    passes = import_module("tvm.relax.backend.cpu_generic.pipeline")
    module = import_module("tvm.relax.frontend.onnx").from_onnx(onnx.load(model), keep_params_in_input=False)
    target = tvm.target.Target("llvm")
    stages = (passes.library_dispatch_passes, passes.legalize_passes, passes.dataflow_lower_passes)
    with target:
        module = tvm.transform.Sequential([each for stage in stages for each in stage(target)])(module)
        module = relax.transform.StaticPlanBlockMemory()(module)
    sizes: list[int] = []

    def visit(node: Any) -> None:
        if isinstance(node, relax.Call) and getattr(node.op, "name", "") == "relax.memory.alloc_storage":
            sizes.append(int(node.args[0].values[0]))

    relax.analysis.post_order_visit(module["main"], visit)
    return sum(sizes)


if __name__ == "__main__":
    file = Path(sys.argv[1])
    print(planned(file) if file.suffix == ".onnx" else rewritten(read_csv(file)), flush=True)

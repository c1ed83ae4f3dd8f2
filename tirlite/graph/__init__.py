"""Operator graphs: their expressions and types, a builder, their meaning, the plans of their storage, native code."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.graph.aot.compile import compile  # noqa: A004
    from tirlite.graph.aot.compiled_graph import CompiledGraph
    from tirlite.graph.aot.lower import Lowered, lower
    from tirlite.graph.builder.builder import Builder
    from tirlite.graph.equal import structural_equal
    from tirlite.graph.evaluate import apply, evaluate, trace
    from tirlite.graph.explicit.allocation import explicit_allocation
    from tirlite.graph.explicit.coalesce import StorageCoalesce
    from tirlite.graph.explicit.executable import Executable
    from tirlite.graph.explicit.execute import Run
    from tirlite.graph.explicit.instructions import Routine
    from tirlite.graph.explicit.lifetimes import storage_problem
    from tirlite.graph.explicit.lift import LiftConstants
    from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, Var, constant
    from tirlite.graph.function import Function
    from tirlite.graph.memory.plan_memory import MemoryPlan, plan_memory
    from tirlite.graph.memory.problem import memory_problem
    from tirlite.graph.onnx.entry import from_onnx
    from tirlite.graph.op import Attrs, Op, Site
    from tirlite.graph.order.memory_order import Ordered, memory_order
    from tirlite.graph.out_variants import NATIVE, NUMPY, Library, OutVariants
    from tirlite.graph.program import Block, Branches, Program, program
    from tirlite.graph.registry import OPS
    from tirlite.graph.static_runtime.runtime import Figures, RuntimeOptions, StaticRuntime
    from tirlite.graph.types import TensorType, TupleType, Type, tensor_type
    from tirlite.graph.validate import validate
else:
    __getattr__ = late_names(
        __name__,
        {
            "aot.compile": "compile",
            "aot.compiled_graph": "CompiledGraph",
            "aot.lower": "Lowered lower",
            "builder.builder": "Builder",
            "equal": "structural_equal",
            "evaluate": "apply evaluate trace",
            "explicit.allocation": "explicit_allocation",
            "explicit.coalesce": "StorageCoalesce",
            "explicit.executable": "Executable",
            "explicit.execute": "Run",
            "explicit.instructions": "Routine",
            "explicit.lifetimes": "storage_problem",
            "explicit.lift": "LiftConstants",
            "expr": "Call Constant Expr FunctionNode If Let Tuple TupleGetItem Var constant",
            "function": "Function",
            "memory.plan_memory": "MemoryPlan plan_memory",
            "memory.problem": "memory_problem",
            "onnx.entry": "from_onnx",
            "op": "Attrs Op Site",
            "order.memory_order": "Ordered memory_order",
            "out_variants": "NATIVE NUMPY Library OutVariants",
            "program": "Block Branches Program program",
            "registry": "OPS",
            "static_runtime.runtime": "Figures RuntimeOptions StaticRuntime",
            "types": "TensorType TupleType Type tensor_type",
            "validate": "validate",
        },
    )

__all__ = [
    "Attrs",
    "Block",
    "Branches",
    "Builder",
    "Call",
    "CompiledGraph",
    "Constant",
    "Executable",
    "Expr",
    "Figures",
    "Function",
    "FunctionNode",
    "If",
    "Let",
    "Library",
    "LiftConstants",
    "Lowered",
    "NATIVE",
    "NUMPY",
    "OPS",
    "MemoryPlan",
    "Op",
    "Ordered",
    "OutVariants",
    "Program",
    "Routine",
    "Run",
    "RuntimeOptions",
    "Site",
    "StaticRuntime",
    "StorageCoalesce",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "Var",
    "apply",
    "compile",
    "constant",
    "evaluate",
    "from_onnx",
    "explicit_allocation",
    "lower",
    "memory_order",
    "memory_problem",
    "plan_memory",
    "program",
    "storage_problem",
    "structural_equal",
    "tensor_type",
    "trace",
    "validate",
]

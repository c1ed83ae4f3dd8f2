"""Operator graphs: their expressions and types, a builder, their meaning, the plans of their storage, native code."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.graph.aot.compile import compile as compile  # noqa: A004
    from tirlite.graph.aot.compiled_graph import CompiledGraph as CompiledGraph
    from tirlite.graph.aot.lower import Lowered as Lowered, lower as lower
    from tirlite.graph.builder.builder import Builder as Builder
    from tirlite.graph.equal import structural_equal as structural_equal
    from tirlite.graph.evaluate import apply as apply, evaluate as evaluate, trace as trace
    from tirlite.graph.explicit.allocation import explicit_allocation as explicit_allocation
    from tirlite.graph.explicit.coalesce import (
        LiftConstants as LiftConstants,
        StorageCoalesce as StorageCoalesce,
        storage_problem as storage_problem,
    )
    from tirlite.graph.explicit.executable import Executable as Executable, Run as Run
    from tirlite.graph.explicit.instructions import Routine as Routine
    from tirlite.graph.expr import (
        Call as Call,
        Constant as Constant,
        Expr as Expr,
        FunctionNode as FunctionNode,
        If as If,
        Let as Let,
        Tuple as Tuple,
        TupleGetItem as TupleGetItem,
        Var as Var,
        constant as constant,
    )
    from tirlite.graph.function import Function as Function
    from tirlite.graph.memory.plan_memory import MemoryPlan as MemoryPlan, plan_memory as plan_memory
    from tirlite.graph.memory.problem import memory_problem as memory_problem
    from tirlite.graph.onnx.entry import from_onnx as from_onnx
    from tirlite.graph.op import OPS as OPS, Attrs as Attrs, Op as Op, Site as Site
    from tirlite.graph.order.memory_order import Ordered as Ordered, memory_order as memory_order
    from tirlite.graph.out_variants import (
        NATIVE as NATIVE,
        NUMPY as NUMPY,
        Library as Library,
        OutVariants as OutVariants,
    )
    from tirlite.graph.program import Block as Block, Branches as Branches, Program as Program, program as program
    from tirlite.graph.static_runtime.runtime import (
        Figures as Figures,
        RuntimeOptions as RuntimeOptions,
        StaticRuntime as StaticRuntime,
    )
    from tirlite.graph.types import (
        TensorType as TensorType,
        TupleType as TupleType,
        Type as Type,
        tensor_type as tensor_type,
    )
    from tirlite.graph.validate import validate as validate
else:
    __getattr__, __all__ = late_names(__name__)

"""Operator graphs: their expressions and types, a builder, what they mean, and the plans of their storage."""

from tirlite.graph.builder.builder import Builder
from tirlite.graph.equal import structural_equal
from tirlite.graph.evaluate import apply, evaluate, trace
from tirlite.graph.expr import Call, Constant, Expr, FunctionNode, If, Let, Tuple, TupleGetItem, Var, constant
from tirlite.graph.function import Function
from tirlite.graph.memory.plan_memory import MemoryPlan, plan_memory
from tirlite.graph.memory.problem import memory_problem
from tirlite.graph.op import Attrs, Op, Site
from tirlite.graph.ops import OPS
from tirlite.graph.program import Block, Branches, Program, program
from tirlite.graph.types import TensorType, TupleType, Type, tensor_type
from tirlite.graph.validate import validate

__all__ = [
    "Attrs",
    "Block",
    "Branches",
    "Builder",
    "Call",
    "Constant",
    "Expr",
    "Function",
    "FunctionNode",
    "If",
    "Let",
    "OPS",
    "MemoryPlan",
    "Op",
    "Program",
    "Site",
    "TensorType",
    "Tuple",
    "TupleGetItem",
    "TupleType",
    "Type",
    "Var",
    "apply",
    "constant",
    "evaluate",
    "memory_problem",
    "plan_memory",
    "program",
    "structural_equal",
    "tensor_type",
    "trace",
    "validate",
]

"""tirlite: a compiler for loop-nest kernels whose speciality is storage.

    import tirlite as tl

Names are loaded when they are first used, so that importing tirlite costs nothing that is not needed.
"""

from __future__ import annotations

from importlib import import_module

import tirlite.gate  # noqa: F401  # it sees to forks, which may come before anything else is loaded

# Module -> the public names that come from it. A module that stands for itself has its own name among them.
_PUBLIC = {
    "tirlite.driver": "Kernel",
    "tirlite.solver": "compile kernel",
    "tirlite.dsl": (
        "access_ptr address_of alloc allow argmax argmin array attr barrier broadcast buffer call call_extern checked"
        " dim dims if_then_else inline let out parallel parse ramp reduce select static thread truncdiv truncmod unroll"
        " unchecked vectorized view"
        " abs acos asin atan atan2 ceil cos cosh erf exp exp2 expm1 floor fma isnan log log10 log1p log2 pow round"
        " reciprocal rsqrt sigmoid sin sinh sqrt tan tanh trunc"
    ),
    "tirlite.graph": "from_onnx",
    "tirlite.ir": "PrimFunc bf16 bool_ f16 f32 f64 i8 i16 i32 i64 structural_equal u8 u16 u32 u64",
    "tirlite.analysis": "allocations",
    "tirlite.runtime": "set_num_threads",
    "tirlite.schedules": "Schedule schedule",
    "tirlite.target": "MemoryInfo Target",
    "tirlite.tune": "autotune",
    "tirlite.diag": (
        "CallError CallTypeError CallValueError CapacityError GraphError InternalError KernelAssertionError"
        " KernelError KernelIndexError KernelRunError PlanError TirliteError"
    ),
}
_MODULES = {
    "analysis": "tirlite.analysis",
    "graph": "tirlite.graph",
    "ir": "tirlite.ir",
    "passes": "tirlite.rewrite",
    "plan": "tirlite.plan",
    "schedules": "tirlite.schedules",
    "solver": "tirlite.solver",
}
_HOMES = {name: module for module, names in _PUBLIC.items() for name in names.split()}

__all__ = sorted([*_HOMES, *_MODULES])
__version__ = "0.1.0"


def __getattr__(name: str) -> object:
    if name not in _MODULES and name not in _HOMES:
        raise AttributeError(f"module 'tirlite' has no attribute {name!r}{_similar(name)}")
    if name in _MODULES:
        value: object = import_module(_MODULES[name])
    else:
        value = getattr(import_module(_HOMES[name]), name)
    globals()[name] = value
    return value


def _similar(name: str) -> str:
    """What a misspelt name of an annotation may have meant; nothing for those that Python itself looks for."""
    if name.startswith("_"):
        return ""
    if advice := import_module("tirlite.dsl.foreign_names").advice_on(name):
        return f": {advice}"
    near = import_module("tirlite.diag.nearest").nearest(name, __all__)
    return f"; did you mean {near}?" if near else ""


def __dir__() -> list[str]:
    return __all__

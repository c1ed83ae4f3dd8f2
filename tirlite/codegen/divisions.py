"""A division under a condition in, a call of a function that has a value for all operands out.

LLVM 22, where it vectorizes a loop, computes a division under a condition once for all lanes if its operands are the
same in all of them, and then only if the condition holds in the first lane; the other lanes get an undefined value. A
call of a function that it may run in vain it takes out of the loop, or makes for each lane.
"""

from __future__ import annotations

from collections.abc import Callable

from tirlite.codegen.text import FunctionText
from tirlite.codegen.types import register_type
from tirlite.ir import DType

Rule = Callable[[FunctionText, DType, str, str, int | None], str]


def by_function(out: FunctionText, name: str, rule: Rule, dtype: DType, a: str, b: str) -> str:
    """What `rule` computes of scalars, by a function that is not inlined."""
    kind, functions = register_type(dtype), out.module.inlined
    full = f"tirlite.{name}.{dtype}"
    if full not in functions:
        body = FunctionText(out.module)
        body.effect(f"ret {kind} {rule(body, dtype, '%a', '%b', None)}")
        functions[full] = body.definition(
            f"internal {kind} @{full}({kind} %a, {kind} %b) noinline nounwind willreturn speculatable memory(none)"
        )
        # From what holds where it is called LLVM would conclude what never divides, and run it elsewhere nonetheless.
        out.module.kept.append(full)
    return out.value(f"call {kind} @{full}({kind} {a}, {kind} {b})")

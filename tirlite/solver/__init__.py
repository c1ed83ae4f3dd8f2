"""The compiled search engine of strategy `exact`: its rules, compiled by tirlite itself; and the compiler that has it.

`compile` and `kernel` are those of the driver, with this engine for searches that are long enough; `options` gives
the same to other compilers.
"""

from typing import TYPE_CHECKING

from tirlite.driver import Compiler
from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.plan.search.engine import Engine
    from tirlite.solver.engine import CompiledEngine
    from tirlite.solver.late import LateEngine
    from tirlite.solver.offsets import compiled_offsets
else:
    __getattr__ = late_names(
        __name__, {"engine": "CompiledEngine", "late": "LateEngine", "offsets": "compiled_offsets"}
    )

__all__ = ["CompiledEngine", "LateEngine", "compile", "compiled_offsets", "kernel", "options"]


def _engine() -> "Engine":
    from tirlite.solver.late import LateEngine

    return LateEngine()


_COMPILER = Compiler(_engine)
compile = _COMPILER.compile  # noqa: A001
kernel = _COMPILER.kernel
options = _COMPILER.options

"""The compiled search engine of strategy `exact`: its rules, compiled by tirlite itself; and the compiler that has it.

`compile` and `kernel` are those of the driver, with this engine for searches that are long enough.
"""

from tirlite.driver import Compiler
from tirlite.solver.engine import CompiledEngine
from tirlite.solver.late import LateEngine

__all__ = ["CompiledEngine", "LateEngine", "compile", "kernel"]

_COMPILER = Compiler(LateEngine)
compile = _COMPILER.compile  # noqa: A001
kernel = _COMPILER.kernel

"""The compiled search engine of strategy `exact`: its rules, compiled by tirlite itself; and the compiler that has it.

`compile` and `kernel` are those of the driver, with this engine for searches that are long enough; `options` gives
the same to other compilers.
"""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.solver.compiler import compile as compile, kernel as kernel, options as options  # noqa: A004
    from tirlite.solver.engine import CompiledEngine as CompiledEngine
    from tirlite.solver.late import LateEngine as LateEngine
    from tirlite.solver.offsets import compiled_offsets as compiled_offsets
else:
    __getattr__, __all__ = late_names(__name__)

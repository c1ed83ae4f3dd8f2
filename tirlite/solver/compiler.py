"""The driver's compiler with an engine for long searches: `compile`, `kernel`, and the options of both."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.driver import Compiler

if TYPE_CHECKING:
    from tirlite.plan.search.engine import Engine


def _engine() -> Engine:
    from tirlite.solver.late import LateEngine

    return LateEngine()


_COMPILER = Compiler(_engine)
compile = _COMPILER.compile  # noqa: A001
kernel = _COMPILER.kernel
options = _COMPILER.options

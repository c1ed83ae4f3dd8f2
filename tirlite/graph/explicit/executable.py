"""Executables: routines that can be run, printed, and written as JSON."""

from __future__ import annotations

import numpy.typing as npt

from tirlite.diag import public
from tirlite.diag.argument import demand_kind
from tirlite.graph.explicit.execute import Run, Value, execute
from tirlite.graph.explicit.instructions import Routine
from tirlite.graph.explicit.printer import text
from tirlite.graph.explicit.serialise import from_text, text_of
from tirlite.graph.explicit.verify import verify
from tirlite.graph.out_variants import NUMPY, Library, OutVariants
from tirlite.record import record


@record(eq=False, repr=False)
class Executable:
    """Routines, each behind those that it invokes; the last one is run. `print` shows the instructions.

    Raises GraphError where a name is used that has no value there, or is given twice.
    """

    routines: tuple[Routine, ...]

    @public
    def __post_init__(self) -> None:
        demand_kind("Executable", self.routines, tuple)
        for each in self.routines:
            demand_kind("Executable", each, Routine)
        verify(self.routines)

    @property
    def main(self) -> Routine:
        return self.routines[-1]

    @public
    def __call__(self, *arrays: npt.ArrayLike, library: Library = NUMPY) -> Value:
        """The result: an array, or a tuple. Results lie in the storages that the run allocated."""
        return execute(self.routines, arrays, OutVariants(library)).result

    @public
    def run(self, *arrays: npt.ArrayLike, variants: OutVariants | None = None) -> Run:
        """The result, and the bytes of the storages that were allocated. `variants` keeps compiled operators."""
        return execute(self.routines, arrays, variants or OutVariants())

    def to_json(self) -> str:
        """The executable as JSON, its constants included."""
        return text_of(self.routines)

    @classmethod
    @public
    def from_json(cls, given: str) -> Executable:
        """The executable that `to_json` wrote. Its dims have the same names and facts.

        Raises GraphError for anything else.
        """
        return cls(from_text(given))

    def __str__(self) -> str:
        return text(self.routines)

    def __repr__(self) -> str:
        return f"<Executable {self.main.name}, {len(self.routines)} routines>"

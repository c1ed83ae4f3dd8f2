"""A compiled function as plain data: its code, its calling convention, and the memory its caller provides."""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.record import record
from tirlite.runtime.artifact.image import Damaged, Image, Plain
from tirlite.runtime.artifact.load import Library, loaded

if TYPE_CHECKING:
    from tirlite.runtime.artifact.object_files import ObjectFiles

Code: TypeAlias = "Image | ObjectFiles"


@record
class Artifact:
    """All that is needed to run one function.
    `parameters`: the types of the entry's parameters as letters of `struct`: those of the function, the dims, and the
    workspace if there is one. `size_entry`: the function that computes the bytes of the workspace from the numbers
    among the parameters, see `codegen.Workspace`; if empty, they are `workspace_bytes`. `plan_at`: the position of the
    plan among the parameters, or -1. `small_below`, `large_from`: calls whose arrays have fewer or at least so many
    bytes in all are for the versions `SMALL` and `LARGE`; 0 if there is no such version. `elsewhere`, `in_order`: the
    faults that say that a call is for the other part of the function, or for the version with sequential loops; or 0.
    `addresses`: those of externs without a name.
    """

    code: Code
    entry: str
    parameters: str
    size_entry: str
    size_parameters: str
    has_workspace: bool
    workspace_bytes: int
    alignment: int
    plan_at: int
    small_below: int
    large_from: int
    elsewhere: int = 0
    in_order: int = 0
    addresses: tuple[tuple[str, int], ...] = ()

    def loaded(self, known: Mapping[str, int]) -> Library:
        """Loads the code; `known` has addresses of further externs. Raises KernelError for a missing one."""
        return library_of(self.code, {**dict(self.addresses), **known})

    def plain(self) -> Plain | None:
        """The artifact as bytes, numbers, strings and tuples; None if it is valid in this process alone."""
        if self.addresses or not isinstance(self.code, Image):
            return None
        called = (self.entry, self.parameters, self.size_entry, self.size_parameters)
        numbers = (
            self.has_workspace,
            self.workspace_bytes,
            self.alignment,
            self.plan_at,
            self.small_below,
            self.large_from,
            self.elsewhere,
            self.in_order,
        )
        return self.code.plain(), *called, *numbers

    @classmethod
    def of_plain(cls, plain: Any) -> Artifact:
        """The inverse of `plain`. Raises Damaged for other data."""
        try:
            image, *rest = plain
            made = cls(Image.of_plain(image), *rest)
            made._check()
        except (TypeError, ValueError, OverflowError, AttributeError):
            raise Damaged from None
        return made

    def _check(self) -> None:
        names = {symbol.name for symbol in self.code.symbols if not isinstance(symbol, str)}
        fits = self.entry in names and self.size_entry in {"", *names}
        fits = fits and not (set(self.parameters) | set(self.size_parameters)) - set("PbhiqBHIQfd")
        fits = fits and self.has_workspace == (self.workspace_bytes > 0 or self.size_entry != "")
        fits = fits and 0 <= self.workspace_bytes < 1 << 62 and -1 <= self.plan_at < len(self.parameters)
        fits = fits and min(self.small_below, self.large_from, self.elsewhere, self.in_order) >= 0
        if not fits or self.alignment <= 0 or self.alignment & (self.alignment - 1):
            raise Damaged


def library_of(code: Code, known: Mapping[str, int]) -> Library:
    """Loads code into this process. Raises KernelError for a missing extern."""
    if isinstance(code, Image):
        return loaded(code, known)
    from tirlite.runtime.artifact.object_files import jit_loaded

    return jit_loaded(code, known)

"""A compiled function as plain data: its code, how it is called, and what memory its caller provides."""

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
    """What a run of one function takes.

    `parameters` are the types of the entry's parameters by the letters of `struct`: those of the function, its dims,
    and the workspace if it has one. The function `size_entry`, if there is one, computes the bytes of the workspace
    from the numbers among the parameters, as `codegen.Workspace` says; else they are `workspace_bytes`. `plan_at` is
    the position of the plan among the parameters, or -1. Calls whose arrays take less than `small_below` bytes in all
    are for the version `SMALL`, and from `large_from` bytes on for `LARGE`, if these are not 0. The fault `elsewhere`,
    if it is not 0, says that the sizes of a call are for the other part of the function, and the fault `in_order` that
    they are for the version whose loops run in order. `addresses` are those of externs without a name.
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
        """The code in this process; `known` are addresses of further externs. Raises KernelError for a missing one."""
        return library_of(self.code, {**dict(self.addresses), **known})

    def plain(self) -> Plain | None:
        """What it is made of, as bytes, numbers, texts and tuples; None where it makes sense in this process alone."""
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
        """The inverse of `plain`. Raises Damaged where what is given cannot be one."""
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
    """The code in this process. Raises KernelError for an extern that is missing."""
    if isinstance(code, Image):
        return loaded(code, known)
    from tirlite.runtime.artifact.object_files import jit_loaded

    return jit_loaded(code, known)

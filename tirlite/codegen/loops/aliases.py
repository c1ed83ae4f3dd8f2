"""Makes the alias metadata of a loop nest, which tells LLVM which accesses never touch the same byte.

All ranges of the workspace are derived from one pointer, so LLVM cannot tell them apart. Metadata declares two as
noalias only if their bytes are proved disjoint for all values of all variables (see `analysis.byte_ranges`), or if
every plan that a call may pass keeps them apart: noalias holds for all time, not just for a buffer's lifetime.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import TYPE_CHECKING

from tirlite.codegen.llvm.text import ModuleText
from tirlite.ir import Buffer, For, View, While
from tirlite.ir.shapes import least_alignment
from tirlite.ir.walk import accesses_in

if TYPE_CHECKING:
    from tirlite.analysis import ByteRange

# The most ranges per nest with metadata, as LLVM's alias analysis compares each pair of accesses.
MOST = 64


class Aliases:
    """The alias metadata of the loop nests in one module."""

    def __init__(self, ranges: Mapping[Buffer, ByteRange], module: ModuleText) -> None:
        """`ranges`: the byte ranges in allocations that share a pointer."""
        self.ranges = ranges
        self.module = module
        self.domain = ""
        self.scopes: dict[ByteRange, str] = {}
        self.lists: dict[tuple[str, ...], str] = {}

    def notes(self, nest: For | While) -> dict[Buffer, str]:
        """The metadata for the loads and stores of each buffer in an outermost loop."""
        accesses = accesses_in(nest) if self.ranges else ()
        buffers = dict.fromkeys(each.buffer for each in accesses if each.buffer in self.ranges)
        if not buffers:
            return {}
        from tirlite.analysis.byte_ranges import are_disjoint

        known = list(dict.fromkeys(self.ranges[buffer] for buffer in buffers))[:MOST]
        notes: dict[Buffer, str] = {}
        for buffer in buffers:
            own = self.ranges[buffer]
            others = tuple(self._scope(other) for other in known if are_disjoint(own, other))
            if own in known and others:
                notes[buffer] = f", !alias.scope {self._list((self._scope(own),))}, !noalias {self._list(others)}"
        return notes

    def alignment(self, view: View) -> int | None:
        """A divisor of the offset of a view placed by a plan's entry, which every plan is checked for; else None."""
        own = self.ranges.get(view.buffer)
        is_at_entry = own is not None and own.entry is not None and own.root is view.source
        return least_alignment(view.buffer) if is_at_entry else None

    def _scope(self, own: ByteRange) -> str:
        if not self.domain:
            self.domain = self.module.node('!"workspace"', distinct=True)
        if own not in self.scopes:
            self.scopes[own] = self.module.node(self.domain, distinct=True)
        return self.scopes[own]

    def _list(self, scopes: tuple[str, ...]) -> str:
        if scopes not in self.lists:
            self.lists[scopes] = self.module.node(*scopes)
        return self.lists[scopes]

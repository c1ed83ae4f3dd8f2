"""A flat image of position-independent machine code, with slots for addresses that loading fills in."""

from __future__ import annotations

from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.record import record

if TYPE_CHECKING:
    from tirlite.runtime.artifact.line_table import Stretch

# The smallest page size; the data of an image begin at a multiple of it.
PAGE = 1 << 12
WORD = 8
# Larger images are taken for damaged.
_MOST_BYTES = 1 << 31

Plain: TypeAlias = "tuple[object, ...]"


class Damaged(Exception):
    """Plain data that does not describe an image or artifact."""


@record
class Slot:
    """A word at `offset` for an address: that of the extern `symbol`, or of the image itself, plus `addend`."""

    offset: int
    symbol: str  # empty for the image itself
    addend: int


@record
class Symbol:
    """A function of the image."""

    name: str
    offset: int
    size: int  # bytes


@record
class Image:
    """Code and constants in `code`, which is read-only once the `slots` are filled, then `data`, which the code writes.

    Both begin at a multiple of `PAGE`, code first. `data_bytes` includes data that begin as zeros. `lines`: the source
    lines of the code if requested; they are not part of its plain data.
    """

    code: bytes
    data: bytes
    data_bytes: int
    slots: tuple[Slot, ...]
    symbols: tuple[Symbol, ...]
    lines: tuple[Stretch, ...] = ()

    @property
    def code_bytes(self) -> int:
        """The size of the code in whole pages."""
        return -(-len(self.code) // PAGE) * PAGE

    @property
    def externs(self) -> tuple[str, ...]:
        """The external functions that it calls, each once."""
        return tuple(dict.fromkeys(slot.symbol for slot in self.slots if slot.symbol))

    def offset(self, name: str) -> int:
        """The offset of the function of that name."""
        return next(symbol.offset for symbol in self.symbols if symbol.name == name)

    def plain(self) -> Plain:
        """The image as bytes, numbers, strings and tuples."""
        slots = tuple((slot.offset, slot.symbol, slot.addend) for slot in self.slots)
        symbols = tuple((symbol.name, symbol.offset, symbol.size) for symbol in self.symbols)
        return self.code, self.data, self.data_bytes, slots, symbols

    @classmethod
    def of_plain(cls, plain: Any) -> Image:
        """The inverse of `plain`. Raises Damaged for other data."""
        try:
            code, data, data_bytes, slots, symbols = plain
            made = cls(code, data, data_bytes, tuple(Slot(*each) for each in slots), tuple(Symbol(*s) for s in symbols))
            made._check()
        except (TypeError, ValueError, OverflowError):
            raise Damaged from None
        return made

    def _check(self) -> None:
        size = self.code_bytes + self.data_bytes
        fits = type(self.code) is type(self.data) is bytes and len(self.data) <= self.data_bytes and size < _MOST_BYTES
        for slot in self.slots:
            fits = fits and 0 <= slot.offset <= size - WORD and type(slot.symbol) is str
            fits = fits and (slot.symbol != "" or 0 <= slot.addend <= size)
        for symbol in self.symbols:
            fits = fits and 0 <= symbol.offset <= symbol.offset + symbol.size <= len(self.code)
            fits = fits and type(symbol.name) is str
        if not fits:
            raise Damaged

"""Translates the kernel language, a Python function or printed text, to a PrimFunc, and defines its words."""

from __future__ import annotations

from typing import TYPE_CHECKING

from tirlite.dsl.vocabulary import WORDS, Word
from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.dsl.dims import dim as dim, dims as dims
    from tirlite.dsl.inline import Inline as Inline, inline as inline
    from tirlite.dsl.parameters import array as array, buffer as buffer, out as out
    from tirlite.dsl.translate import Translation as Translation, parse as parse, translate as translate

    def __getattr__(name: str) -> Word:
        """The words that have a meaning only inside kernels: loops, declarations, functions."""
else:
    __getattr__, __all__ = late_names(__name__, vocabulary=WORDS)

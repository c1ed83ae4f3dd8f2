"""Translates the kernel language, a Python function or printed text, to a PrimFunc, and holds its words."""

from typing import TYPE_CHECKING

from tirlite.dsl.vocabulary import WORDS, Word
from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.dsl.dims import dim, dims
    from tirlite.dsl.inline import Inline, inline
    from tirlite.dsl.parameters import array, buffer, out
    from tirlite.dsl.translate import Translation, parse, translate

    def __getattr__(name: str) -> Word:
        """The words that mean something inside kernels alone: loops, declarations, functions."""
else:
    __getattr__ = late_names(
        __name__,
        {
            "dims": "dim dims",
            "inline": "Inline inline",
            "parameters": "array buffer out",
            "translate": "Translation parse translate",
            "vocabulary": " ".join(WORDS),
        },
    )

__all__ = ["Inline", "Translation", "array", "buffer", "dim", "dims", "inline", "out", "parse", "translate", *WORDS]

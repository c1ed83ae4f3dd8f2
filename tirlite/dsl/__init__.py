"""The kernel language: a Python function or printed text in, a PrimFunc out; and the words that it is written in."""

from tirlite.dsl.dims import dim, dims
from tirlite.dsl.inline import Inline, inline
from tirlite.dsl.parameters import buffer, out
from tirlite.dsl.translate import Translation, parse, translate
from tirlite.dsl.vocabulary import WORDS, Word

__all__ = ["Inline", "Translation", "buffer", "dim", "dims", "inline", "out", "parse", "translate", *WORDS]


def __getattr__(name: str) -> Word:
    """The words that mean something inside kernels alone: loops, declarations, functions."""
    if name in WORDS:
        return WORDS[name]
    raise AttributeError(f"module 'tirlite.dsl' has no attribute {name!r}")

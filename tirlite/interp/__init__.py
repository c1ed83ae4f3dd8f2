"""The reference interpreter: what a function of the IR means."""

from tirlite.interp.interpret import interpret, interpreter

__all__ = ["interpret", "interpreter"]

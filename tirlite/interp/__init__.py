"""The reference interpreter: what a function of the IR means."""

from tirlite.interp.interpret import interpret

__all__ = ["interpret"]

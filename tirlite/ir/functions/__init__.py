"""Formulas of the elementary functions.

The interpreter and the compiled code both evaluate these, so they agree bit for bit, scalar or vector.
"""

from tirlite.ir.functions.table import formula_of, has_fast

__all__ = ["formula_of", "has_fast"]

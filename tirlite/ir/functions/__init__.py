"""Gives the formula of each operation that is an elementary function, as a formula of f64.

The interpreter and the compiled code both carry these out, so that they agree to the last bit, scalar or vector.
"""

from tirlite.ir.functions.table import formula_of, has_fast

__all__ = ["formula_of", "has_fast"]

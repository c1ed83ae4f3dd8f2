"""The compiled search engine of strategy `exact`: its rules, compiled by tirlite itself."""

from tirlite.solver.engine import CompiledEngine

__all__ = ["CompiledEngine"]

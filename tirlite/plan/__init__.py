"""Storage planning: makes a checked Plan for a Problem. Knows no IR."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.plan.bound import lower_bound
    from tirlite.plan.cache import PlanCache, Repeatable
    from tirlite.plan.check import check
    from tirlite.plan.layout import Choice, Decision, Layout, Placement, Region
    from tirlite.plan.plan import Plan
    from tirlite.plan.problem import Problem
    from tirlite.plan.report.beside import Comparison, beside
    from tirlite.plan.request import Pool, Request
    from tirlite.plan.scope import Rank, StorageScope
    from tirlite.plan.shape.conditions import Conditions
    from tirlite.plan.shape.formulas import offset_evaluator
    from tirlite.plan.shape.per_shape import PerShape
    from tirlite.plan.solve import solve
    from tirlite.plan.strategy import STRATEGIES, Strategy
    from tirlite.plan.tables.csv import read_csv, write_csv
    from tirlite.plan.tables.text import parse_facts
    from tirlite.plan.verdict import Counterexample, Fault, Ok
else:
    __getattr__ = late_names(
        __name__,
        {
            "report.beside": "Comparison beside",
            "bound": "lower_bound",
            "cache": "PlanCache Repeatable",
            "check": "check",
            "tables.csv": "read_csv write_csv",
            "tables.text": "parse_facts",
            "layout": "Choice Decision Layout Placement Region",
            "plan": "Plan",
            "problem": "Problem",
            "request": "Pool Request",
            "scope": "Rank StorageScope",
            "shape.conditions": "Conditions",
            "shape.formulas": "offset_evaluator",
            "shape.per_shape": "PerShape",
            "solve": "solve",
            "strategy": "STRATEGIES Strategy",
            "verdict": "Counterexample Fault Ok",
        },
    )

__all__ = [
    "Choice",
    "Comparison",
    "Conditions",
    "Counterexample",
    "Decision",
    "Fault",
    "Layout",
    "Ok",
    "PerShape",
    "Placement",
    "Plan",
    "PlanCache",
    "Pool",
    "Problem",
    "Rank",
    "Region",
    "Repeatable",
    "Request",
    "STRATEGIES",
    "StorageScope",
    "Strategy",
    "beside",
    "check",
    "lower_bound",
    "offset_evaluator",
    "parse_facts",
    "read_csv",
    "solve",
    "write_csv",
]

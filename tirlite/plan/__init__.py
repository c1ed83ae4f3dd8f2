"""Storage planning: makes a checked Plan for a Problem. Knows no IR."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.plan.bound import lower_bound
    from tirlite.plan.cache import PlanCache, Repeatable
    from tirlite.plan.check import check
    from tirlite.plan.decision import Choice, Decision
    from tirlite.plan.layout import Layout, Placement, Region
    from tirlite.plan.plan import Plan
    from tirlite.plan.pool import Pool
    from tirlite.plan.problem import Problem
    from tirlite.plan.report.beside import Comparison, beside
    from tirlite.plan.request import Request
    from tirlite.plan.scope import Rank, StorageScope
    from tirlite.plan.shape.conditions import Conditions
    from tirlite.plan.shape.formulas import offset_evaluator
    from tirlite.plan.shape.per_shape import PerShape
    from tirlite.plan.solve import solve
    from tirlite.plan.strategy import STRATEGIES, Strategy
    from tirlite.plan.tables.csv_read import read_csv
    from tirlite.plan.tables.csv_write import write_csv
    from tirlite.plan.tables.facts_text import parse_facts
    from tirlite.plan.verdict import Counterexample, Fault, Ok
else:
    __getattr__ = late_names(
        __name__,
        {
            "report.beside": "Comparison beside",
            "bound": "lower_bound",
            "cache": "PlanCache Repeatable",
            "check": "check",
            "tables.csv_read": "read_csv",
            "tables.csv_write": "write_csv",
            "decision": "Choice Decision",
            "tables.facts_text": "parse_facts",
            "layout": "Layout Placement Region",
            "plan": "Plan",
            "pool": "Pool",
            "problem": "Problem",
            "request": "Request",
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

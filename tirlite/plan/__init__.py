"""Storage planning: makes a checked Plan for a Problem. Knows no IR."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.plan.bound import lower_bound as lower_bound
    from tirlite.plan.cache import PlanCache as PlanCache, Repeatable as Repeatable
    from tirlite.plan.check import check as check
    from tirlite.plan.layout import (
        Choice as Choice,
        Decision as Decision,
        Layout as Layout,
        Placement as Placement,
        PlannedPool as PlannedPool,
    )
    from tirlite.plan.plan import Plan as Plan
    from tirlite.plan.problem import Problem as Problem
    from tirlite.plan.report.beside import Comparison as Comparison, beside as beside
    from tirlite.plan.request import Pool as Pool, Request as Request
    from tirlite.plan.scope import Rank as Rank, StorageScope as StorageScope
    from tirlite.plan.shape.formulas import Conditions as Conditions, offset_evaluator as offset_evaluator
    from tirlite.plan.shape.per_shape import PerShape as PerShape
    from tirlite.plan.solve import solve as solve
    from tirlite.plan.strategy import STRATEGIES as STRATEGIES, Strategy as Strategy
    from tirlite.plan.tables.csv import read_csv as read_csv, write_csv as write_csv
    from tirlite.plan.tables.text import parse_facts as parse_facts
    from tirlite.plan.verdict import Counterexample as Counterexample, Fault as Fault, Ok as Ok
else:
    __getattr__, __all__ = late_names(__name__)

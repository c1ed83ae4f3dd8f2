"""A random program and a setup in, what goes wrong with it out: text, passes, native code against the interpreter."""

from __future__ import annotations

import os
import pickle
import signal
import traceback
import warnings
from collections.abc import Callable
from dataclasses import dataclass

import numpy as np
from fuzz.program import Program, assert_same, outcomes
from fuzz.setups import FORMS, Setup, target_of

import tirlite as tl
from tirlite.diag import KernelAssertionError, TirliteError
from tirlite.ir import PrimFunc, structural_equal
from tirlite.ir.checked import asks_for_order
from tirlite.rewrite import run_pipeline
from tirlite.rewrite.forms import Form
from tirlite.rewrite.options import Options
from tirlite.rewrite.pipelines import pipeline
from tirlite.schedules.auto import auto

# What a trial may take, in seconds of its own process, whatever else runs; most take a tenth of one.
PATIENCE = 120

# One program in so many is printed and parsed, or interpreted after all passes: both take long, and all are compiled.
# What is spliced is printed and parsed as well.
ROUND_TRIPS = 4
REWRITTEN = 6


@dataclass(frozen=True)
class Failure:
    """The step that failed, the kind of failure, and all that is known of it."""

    step: str
    kind: str
    told: str

    def is_like(self, other: Failure | None) -> bool:
        """Whether another failure shows the same mistake, as far as that can be seen from outside."""
        return other is not None and (self.step, self.kind) == (other.step, other.kind)


def trial(program: Program, setup: Setup) -> Failure | None:
    """The first failure of a program: None if it means the same printed, rewritten, and compiled."""
    step = "print"
    try:
        if program.seed % ROUND_TRIPS == 0:
            assert structural_equal(tl.parse(str(program.func)), program.func)
        step = "interpret"
        wanted = outcomes(program)
        step = "form"
        func = FORMS[setup.form](program.func)
        step = "passes"
        if setup.form != "externs" and setup.strategy != "per_shape" and program.seed % REWRITTEN == 0:
            assert_same(wanted, _after_passes(program, func, setup))
        step = "compile"
        with setup.applied() as run:
            assert_same(wanted, outcomes(program, run, func=func))
    except Exception as error:
        kind = error.code if isinstance(error, TirliteError) else type(error).__name__
        return Failure(step, kind, "".join(traceback.format_exception(error)))
    return None


def _after_passes(program: Program, func: PrimFunc, setup: Setup) -> dict[str, np.ndarray]:
    """What the interpreter makes of the function after all passes, in the form that a call would take."""
    try:
        return outcomes(program, func=_rewritten(func, setup, Form.USUAL))
    except KernelAssertionError as error:
        if not asks_for_order(error.messages[0]):
            raise
    return outcomes(program, func=_rewritten(func, setup, Form.IN_ORDER))


def _rewritten(func: PrimFunc, setup: Setup, form: Form) -> PrimFunc:
    """The function after all passes."""
    options = Options.of(
        {
            "strategy": setup.strategy,
            "target": target_of(setup.workers),
            "in_place": setup.in_place,
            "passes": setup.passes,
        }
    )
    return run_pipeline(func, pipeline(options, form, auto(options.target)))


def apart(work: Callable[[], Failure | None]) -> Failure | None:
    """What `work` gives in a process of its own: what crashes or hangs there is a failure like others."""
    receiver, sender = os.pipe()
    with warnings.catch_warnings():
        # The child runs none of the threads that a warning is about.
        warnings.simplefilter("ignore", DeprecationWarning)
        child = os.fork()
    if child == 0:
        signal.setitimer(signal.ITIMER_PROF, PATIENCE)
        os.close(receiver)
        with os.fdopen(sender, "wb") as out:
            pickle.dump(work(), out)
            out.flush()
            os._exit(0)
    os.close(sender)
    with os.fdopen(receiver, "rb") as source:
        data = source.read()
    _, status = os.waitpid(child, 0)
    if not data:
        name = signal.Signals(os.WTERMSIG(status)).name if os.WIFSIGNALED(status) else str(status)
        return Failure("process", name, f"the process ended by {name}")
    found = pickle.loads(data)
    assert found is None or isinstance(found, Failure)
    return found

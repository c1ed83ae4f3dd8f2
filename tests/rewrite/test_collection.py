"""Python's cyclic collector while passes run."""

import gc
from collections.abc import Iterator

import pytest

from tirlite.ir import Builder, PrimFunc
from tirlite.rewrite import run_pipeline


class Watch:
    """A pass that notes whether the collector runs, and may fail."""

    name = "watch"

    def __init__(self, *, fails: bool = False) -> None:
        self.seen: list[bool] = []
        self.fails = fails

    def __call__(self, func: PrimFunc) -> PrimFunc:
        self.seen.append(gc.isenabled())
        if self.fails:
            raise RuntimeError("as asked for")
        return func


@pytest.fixture(autouse=True)
def restored() -> Iterator[None]:
    yield
    gc.enable()


def test_the_collector_pauses_in_a_pass_and_runs_for_observers_and_after() -> None:
    watch, observed = Watch(), []
    run_pipeline(Builder("f").build(), (watch,), (lambda _: observed.append(gc.isenabled()),))
    assert (watch.seen, observed, gc.isenabled()) == ([False], [True], True)


def test_the_collector_runs_again_after_a_pass_that_fails() -> None:
    with pytest.raises(RuntimeError, match="as asked for"):
        run_pipeline(Builder("f").build(), (Watch(fails=True),))
    assert gc.isenabled()


def test_a_collector_that_was_switched_off_stays_off() -> None:
    gc.disable()
    run_pipeline(Builder("f").build(), (Watch(),))
    assert not gc.isenabled()

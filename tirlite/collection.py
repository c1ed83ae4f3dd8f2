"""Does work without Python's cyclic garbage collector meanwhile."""

from __future__ import annotations

import gc
import sys
from collections.abc import Iterator
from contextlib import contextmanager

from tirlite.gate import GATE


@contextmanager
def collection_paused() -> Iterator[None]:
    """Pauses the cyclic collector, which is the process's, where it was running.

    A compilation, or a plan for many requests, makes hundreds of thousands of objects that live until its end, and
    hardly a cycle: a collector that walks over all of them again and again takes up to half of the time, and finds
    nothing. Where several threads are at it at once, the first one that ends lets the collector run again.

    Where modules were loaded meanwhile, what is there at the end is taken for old without a walk over it.
    """
    if not gc.isenabled():
        yield
        return
    loaded = len(sys.modules)
    with GATE.repaired(gc.enable):
        gc.disable()
        try:
            yield
        finally:
            # What a program has frozen itself stays so.
            if len(sys.modules) > loaded and not gc.get_freeze_count():
                gc.freeze()
                gc.unfreeze()
            gc.enable()

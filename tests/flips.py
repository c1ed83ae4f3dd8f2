"""What becomes of an entry of the cache with a bit flipped: `PYTHONPATH=tests:. python -m flips [--flips N]` prints it.

Half of the flips leave the checksum as it is: each has to be a miss. The others have the checksum made right again, as
no damage does: the parts of an entry are then looked at one by one, and what passes is code, and is run in a process of
its own, where it gives what it should, something else, or ends the process.
"""

from __future__ import annotations

import argparse
import os
import random
import resource
import signal
import sys
import tempfile
from collections import Counter
from collections.abc import Iterator
from contextlib import contextmanager
from pathlib import Path

import numpy as np

import tirlite as tl
from tirlite.driver.content import content_key
from tirlite.runtime import cache as entries
from tirlite.runtime.artifact.artifact import Artifact, Damaged
from tirlite.runtime.cache import Folder

n = tl.dim("n")


def kernel() -> tl.Kernel:
    """One with constants, a workspace, functions from outside and faults."""

    @tl.kernel
    def blurred(x: tl.f64[n], y: tl.out[tl.f64[n]]):
        t = tl.alloc(tl.f64[n])
        for i in range(n):
            assert x[i] >= 0, f"element {i} is {x[i]}"
            t[i] = tl.sin(x[i]) + tl.call_extern("f64", "hypot", x[i], 3.0)
        for i in range(n):
            y[i] = t[i] + t[0]

    return blurred


X = np.linspace(0, 50, 700)


def entry() -> tuple[bytes, bytes]:
    """The key of that kernel, and the file that it leaves in a cache."""
    with tempfile.TemporaryDirectory() as folder:
        os.environ["TIRLITE_CACHE"] = f"{folder}/cache"
        made = kernel()
        made(X)
        form = made._version.form.value
        key = content_key(made.content, made.options, form)
        assert key is not None
        content = Folder(f"{folder}/cache").read(key.hex())
    assert content is not None
    return key, content


def flipped(content: bytes, rng: random.Random, *, mended: bool) -> bytes:
    """The entry with one bit turned over; half of the places lie in what stands around the code."""
    start = len(entries._MAGIC) + entries._SUM
    changed = bytearray(content)
    around = [*range(start if mended else 0, start + 120), *range(len(content) - 400, len(content))]
    place = rng.choice(around) if rng.random() < 0.5 else rng.randrange(start if mended else 0, len(content))
    changed[place] ^= 1 << rng.randrange(8)
    if mended:
        changed[len(entries._MAGIC) : start] = entries._checksum(bytes(changed[start:]))
    return bytes(changed)


def artifact_in(key: bytes, content: bytes) -> Artifact | None:
    """What the cache would find."""
    plain = entries.opened(key, content)
    try:
        return None if plain is None else Artifact.of_plain(plain)
    except Damaged:
        return None


@contextmanager
def little_memory() -> Iterator[None]:
    """A gigabyte more than there is now, no more: a length with a bit turned over may ask for any amount."""
    pages = int(Path("/proc/self/statm").read_text("ascii").split()[0])
    before = resource.getrlimit(resource.RLIMIT_AS)
    resource.setrlimit(resource.RLIMIT_AS, (pages * resource.getpagesize() + (1 << 30), before[1]))
    try:
        yield
    finally:
        resource.setrlimit(resource.RLIMIT_AS, before)


def outcome(key: bytes, content: bytes, wanted: np.ndarray) -> str:
    """What becomes of a call, in a process of its own."""
    if artifact_in(key, content) is None:
        return "miss"
    child = os.fork()
    if not child:
        code = 1
        try:
            os.close(2)
            signal.alarm(2)
            with tempfile.TemporaryDirectory() as folder:
                os.environ["TIRLITE_CACHE"] = f"{folder}/cache"
                Folder(f"{folder}/cache").write(key.hex(), content)
                code = 0 if np.array_equal(kernel()(X), wanted) else 3
        except BaseException:
            code = 2
        finally:
            os._exit(code)
    _, status = os.waitpid(child, 0)
    if os.WIFSIGNALED(status):
        return "the process ends"
    return {0: "the same result", 2: "an error"}.get(os.waitstatus_to_exitcode(status), "another result")


def main() -> int:
    parser = argparse.ArgumentParser(description=__doc__)
    parser.add_argument("--flips", type=int, default=10_000)
    parser.add_argument("--seed", type=int, default=0)
    arguments = parser.parse_args()
    rng = random.Random(arguments.seed)
    key, content = entry()
    os.environ["TIRLITE_CACHE"] = "0"
    wanted = kernel()(X)
    half = arguments.flips // 2
    with little_memory():
        plain = Counter(
            "miss" if artifact_in(key, flipped(content, rng, mended=False)) is None else "found" for _ in range(half)
        )
        mended = Counter(outcome(key, flipped(content, rng, mended=True), wanted) for _ in range(half))
    print(f"checksum as it was: {dict(plain)}")
    print(f"checksum made right: {dict(mended.most_common())}")
    return 0 if plain == {"miss": half} else 1


if __name__ == "__main__":
    sys.exit(main())

"""Processor: what schedules ask of a machine's cores, from the host or by the names that compilers give to machines."""

from __future__ import annotations

import os
from collections.abc import Iterator
from functools import cache

from tirlite.diag import PlanMessage, hint
from tirlite.record import record, replace

HOST = "host"
_LINE_BYTES = 64
_KIB = 1 << 10


class UnknownTarget(PlanMessage):
    """A target is named that tirlite does not know.

    Example: `tl.Target("x86-64-v5")`.
    Fix: Take one of the names that the message lists, or `tl.Target.host()`.
    """

    title = "there is no target {name}"
    help = "the targets are {known}{hint}"


@record
class Processor:
    """What one core has. `vector_bits` and `registers` are of its vectors, `caches` bytes from the first level on.

    `level` orders the processors of a `family`: code for one runs on those of the same and of higher levels. `dots` are
    dot products of four bytes each or of two halves, by the types of the two operands, as in `u8 s8`; those of halves
    are added to a sum by the same instruction where there are some of bytes. With `has_fma` a product and a sum are
    rounded once. With `has_tiles` bytes are multiplied by tiles of 16 rows by 64 bytes, if the system lets them be.
    Where it `gathers_slowly` loads one by one are quicker than an instruction that gathers.
    """

    family: str
    level: int
    vector_bits: int
    registers: int
    has_fma: bool
    dots: tuple[str, ...] = ()
    caches: tuple[int, int, int] = (32 * _KIB, 512 * _KIB, 8192 * _KIB)
    line: int = _LINE_BYTES
    has_tiles: bool = False
    gathers_slowly: bool = False

    @property
    def vector_bytes(self) -> int:
        return self.vector_bits // 8

    @property
    def converts_halves(self) -> bool:
        """Whether float16 becomes f32, and back, by one instruction."""
        return self.level >= 3 or self.family == "aarch64"

    def has_masks(self, width: int) -> bool:
        """Whether some lanes of a vector in memory may be left alone, with elements of so many bytes."""
        return self.vector_bits >= 512 or (self.vector_bits >= 256 and width >= 4)

    @property
    def masks_stores_slowly(self) -> bool:
        """Whether a store of some lanes takes many times what one of all lanes does, as on common AVX2 processors."""
        return self.family == "x86-64" and self.vector_bits == 256

    @property
    def interleaved_bytes(self) -> int:
        """The bytes of vectors that one instruction interleaves: on AVX2 lanes move no farther than that."""
        return self.vector_bytes if self.permutes else min(16, self.vector_bytes)

    @property
    def masks_gathers(self) -> bool:
        """Whether an instruction loads the lanes that are on from where a vector of indices says, and is worth it."""
        return self.family == "x86-64" and self.vector_bits >= 512 and not self.gathers_slowly

    @property
    def permutes(self) -> bool:
        """Whether an instruction picks lanes out of two vectors, as a third one says."""
        return self.family == "x86-64" and self.vector_bits >= 512

    @property
    def tile(self) -> tuple[int, int]:
        """Rows, and vectors in a row, of the tile of sums that registers hold with what is added to them.

        Of those with a power of two of vectors the one with the most sums for each operand that is loaded. Beside the
        sums stand the vectors of one row of the one operand, and an element of the other in all lanes.
        """
        wide = (2**power for power in range(3))
        tiles = [((self.registers - 1) // across - 1, across) for across in wide]
        return max(tiles, key=lambda tile: (tile[0] * tile[1] / (tile[0] + tile[1]), tile[1]))


# Every processor of the family multiplies vectors of i16, and adds the products by pairs.
_PAIRS = ("s16 s16",)
# By the names of the levels of the psABI; caches are those of common machines.
_NAMED = {
    "x86-64": Processor("x86-64", 1, 128, 16, has_fma=False, dots=_PAIRS),
    "x86-64-v2": Processor("x86-64", 2, 128, 16, has_fma=False, dots=_PAIRS),
    "x86-64-v3": Processor("x86-64", 3, 256, 16, has_fma=True, dots=_PAIRS),
    "x86-64-v4": Processor(
        "x86-64", 4, 512, 32, has_fma=True, dots=_PAIRS, caches=(32 * _KIB, 1024 * _KIB, 16384 * _KIB)
    ),
    "aarch64": Processor("aarch64", 0, 128, 32, has_fma=True),
}
# What a processor of each level has, by the names of Linux; those of lower levels included.
_LEVELS = (
    (2, "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
    (3, "abm avx avx2 bmi1 bmi2 f16c fma movbe"),
    (4, "avx512bw avx512cd avx512dq avx512f avx512vl"),
)
# By the names of Linux, for vectors of some bits: instructions of 512 bits are no part of `avx_vnni`.
_DOTS = (
    ("avx512_vnni", 512, ("u8 s8",)),
    ("avx_vnni", 256, ("u8 s8",)),
    ("avx512_bf16", 512, ("bf16 bf16",)),
    ("asimddp", 128, ("s8 s8", "u8 u8")),
    ("i8mm", 128, ("u8 s8",)),
    ("bf16", 128, ("bf16 bf16",)),
)
# Those of Zen 4 and 5 are slow, as developers of LLVM found: 33 micro-operations for eight words under a mask.
_SLOW_GATHERS = b"AuthenticAMD"
# What AMX is called there; processors with it have all of the highest level.
_TILES, _TILES_FROM = ("amx_tile", "amx_int8"), 4
# Linux's arch_prctl of ARCH_REQ_XCOMP_PERM for the 18th part of a processor's state, those registers.
TILES_ASKED = (158, 0x1023, 18)
_MACHINES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}
_CACHES = "/sys/devices/system/cpu/cpu0/cache"
# The most of a cache that one processor counts on. A virtual machine of two processors may see all of the 300 MiB that
# sixty cores share: there, copying 16 MiB or more and reading the copy took 0.68 to 0.89 of the time past that cache.
_SHARE = 16384 * _KIB


def demand_known(name: str) -> None:
    """Raises PlanError for a name that no target has."""
    given: object = name
    if given == HOST or given in _NAMED:
        return
    known = (HOST, *_NAMED)
    meant = hint(given, known) if isinstance(given, str) else ""
    raise UnknownTarget(repr(given)[:60], ", ".join(known), meant).error()


@cache
def processor_called(name: str) -> Processor:
    """The processor of a target: of the host, or a named one."""
    return _host() if name == HOST else _NAMED[name]


def runs_here(name: str) -> bool:
    """Whether code for a target runs on this machine."""
    if name == HOST:
        return True
    wanted, here = processor_called(name), processor_called(HOST)
    return wanted.family == here.family and wanted.level <= here.level


@cache
def cpu_text() -> bytes:
    """What the system says of the first processors, if it is Linux."""
    try:
        with open("/proc/cpuinfo", "rb") as file:  # noqa: PTH123
            return file.read(1 << 14)
    except OSError:
        return b""


def _host() -> Processor:
    family = _MACHINES.get(os.uname().machine.lower(), "") if hasattr(os, "uname") else ""
    found = described(family or "x86-64", cpu_text(), _caches())
    return replace(found, has_tiles=found.has_tiles and lets_tiles_be())


def lets_tiles_be() -> bool:
    """Whether the system lets this process have the registers of tiles, which it says for all of its threads."""
    from ctypes import CDLL

    call = getattr(CDLL(None), "syscall", None)
    return call is not None and bool(call(*TILES_ASKED) == 0)


def described(family: str, text: bytes, caches: dict[int, int]) -> Processor:
    """The processor that a text as that of /proc/cpuinfo describes, with caches by level as far as they are known."""
    flags = _flags(text)
    level = 1 if family == "x86-64" else 0
    for number, wanted in _LEVELS if family == "x86-64" else ():
        if not flags.issuperset(wanted.split()):
            break
        level = number
    base = _NAMED[family if level < 2 else f"x86-64-v{level}"]
    return Processor(
        family,
        level,
        base.vector_bits,
        base.registers,
        has_fma=base.has_fma,
        dots=tuple(sorted({*base.dots, *_dots_of(flags, base.vector_bits)})),
        caches=tuple(caches.get(place + 1, known) for place, known in enumerate(base.caches)),  # type: ignore[arg-type]
        line=caches.get(0, base.line),
        has_tiles=level == _TILES_FROM and flags.issuperset(_TILES),
        gathers_slowly=_SLOW_GATHERS in text,
    )


def _dots_of(flags: frozenset[str], vector_bits: int) -> Iterator[str]:
    for flag, bits, dots in _DOTS:
        if flag in flags and bits == vector_bits:
            yield from dots


def _flags(text: bytes) -> frozenset[str]:
    for line in text.split(b"\n"):
        name, _, values = line.partition(b":")
        if name.strip() in (b"flags", b"Features"):
            return frozenset(values.decode("ascii", "replace").split())
    return frozenset()


def _caches() -> dict[int, int]:
    """The bytes of the caches for data by level, and those of a line as level 0, as far as the system tells."""
    found: dict[int, int] = {}
    for place in range(4):
        folder = f"{_CACHES}/index{place}"
        try:
            if _word(f"{folder}/type") == "Instruction":
                continue
            level, size = int(_word(f"{folder}/level")), _word(f"{folder}/size").removesuffix("K")
            sharing = len(_numbers(_word(f"{folder}/shared_cpu_list")))
            found[level] = min(int(size) * _KIB, sharing * _SHARE)
            if 0 not in found:
                found[0] = int(_word(f"{folder}/coherency_line_size"))
        except (OSError, ValueError):
            break
    return found


def _word(path: str) -> str:
    file = os.open(path, os.O_RDONLY)
    try:
        return os.read(file, 64).decode("ascii", "replace").strip()
    finally:
        os.close(file)


def _numbers(text: str) -> set[int]:
    """What a list of numbers and ranges stands for, as in `0-3,8`."""
    ranges = (part.partition("-") for part in text.split(","))
    return {number for low, _, high in ranges for number in range(int(low), int(high or low) + 1)}


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

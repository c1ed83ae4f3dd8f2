"""Processor: the facts of a machine's cores, detected on the host or by the names that compilers use."""

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
    """The facts of one core; `vector_bits` and `registers` are those of vectors, `caches` the bytes from L1 on.
    `level`: orders the processors of a `family`; code for one level runs on the same and higher levels. `dots`: dot
    product instructions, of four bytes or two halves, by the types of the operands, as in `u8 s8`; a processor with one
    of bytes adds that of halves to a sum in the same instruction. `has_fma`: a multiply-add is rounded once.
    `has_tiles`: tiles of 16 rows by 64 bytes multiply bytes (AMX), if the system permits it. `gathers_slowly`: separate
    loads are faster than a gather instruction.
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
        """Whether there are instructions between float16 and f32."""
        return self.level >= 3 or self.family == "aarch64"

    def has_masks(self, width: int) -> bool:
        """Whether there are masked accesses for elements of `width` bytes."""
        return self.vector_bits >= 512 or (self.vector_bits >= 256 and width >= 4)

    @property
    def masks_stores_slowly(self) -> bool:
        """Whether a masked store takes many times as long as a full one, as on common AVX2 processors."""
        return self.family == "x86-64" and self.vector_bits == 256

    @property
    def interleaved_bytes(self) -> int:
        """The bytes of a vector that an instruction interleaves; on AVX2, instructions stay within 16 bytes."""
        return self.vector_bytes if self.permutes else min(16, self.vector_bytes)

    @property
    def masks_gathers(self) -> bool:
        """Whether there is a masked gather instruction that is worth using."""
        return self.family == "x86-64" and self.vector_bits >= 512 and not self.gathers_slowly

    @property
    def divides_slowly(self) -> bool:
        """Whether dividing a vector takes as long as some twenty multiply-adds of one, as on Intel's with 512 bits."""
        return self.family == "x86-64" and self.vector_bits >= 512 and not self.gathers_slowly

    @property
    def permutes(self) -> bool:
        """Whether an instruction picks arbitrary lanes from two vectors."""
        return self.family == "x86-64" and self.vector_bits >= 512

    @property
    def tile(self) -> tuple[int, int]:
        """Rows, and vectors per row, of the largest tile of sums that fits registers together with its operands.
        Among powers of two of vectors per row, the tile with the most sums per loaded operand. Besides the sums,
        registers hold the vectors of a row of one operand, and a broadcast element of the other.
        """
        wide = (2**power for power in range(3))
        tiles = [((self.registers - 1) // across - 1, across) for across in wide]
        return max(tiles, key=lambda tile: (tile[0] * tile[1] / (tile[0] + tile[1]), tile[1]))


# Every x86-64 processor multiplies vectors of i16, and adds the products in pairs.
_PAIRS = ("s16 s16",)
# Processors by the level names of the psABI, with the caches of common machines.
_NAMED = {
    "x86-64": Processor("x86-64", 1, 128, 16, has_fma=False, dots=_PAIRS),
    "x86-64-v2": Processor("x86-64", 2, 128, 16, has_fma=False, dots=_PAIRS),
    "x86-64-v3": Processor("x86-64", 3, 256, 16, has_fma=True, dots=_PAIRS),
    "x86-64-v4": Processor(
        "x86-64", 4, 512, 32, has_fma=True, dots=_PAIRS, caches=(32 * _KIB, 1024 * _KIB, 16384 * _KIB)
    ),
    "aarch64": Processor("aarch64", 0, 128, 32, has_fma=True),
}
# The flags that each level requires, besides those of lower levels, as named by Linux.
_LEVELS = (
    (2, "cx16 lahf_lm popcnt sse4_1 sse4_2 ssse3"),
    (3, "abm avx avx2 bmi1 bmi2 f16c fma movbe"),
    (4, "avx512bw avx512cd avx512dq avx512f avx512vl"),
)
# Dot products by Linux's flag, for processors with such vectors: `avx_vnni` has no 512-bit instructions.
_DOTS = (
    ("avx512_vnni", 512, ("u8 s8",)),
    ("avx_vnni", 256, ("u8 s8",)),
    ("avx512_bf16", 512, ("bf16 bf16",)),
    ("asimddp", 128, ("s8 s8", "u8 u8")),
    ("i8mm", 128, ("u8 s8",)),
    ("bf16", 128, ("bf16 bf16",)),
)
# LLVM's developers found gathers on Zen 4 and 5 to be slow: 33 micro-operations for eight masked words.
_SLOW_GATHERS = b"AuthenticAMD"
# Linux's flags for AMX, and the level of processors that have it.
_TILES, _TILES_FROM = ("amx_tile", "amx_int8"), 4
# The system call arch_prctl(ARCH_REQ_XCOMP_PERM, 18), which requests permission to use tile registers.
TILES_ASKED = (158, 0x1023, 18)
_MACHINES = {"x86_64": "x86-64", "amd64": "x86-64", "aarch64": "aarch64", "arm64": "aarch64"}
_CACHES = "/sys/devices/system/cpu/cpu0/cache"
# The largest share of a cache that one processor is assumed to have. A virtual machine of two processors may report the
# whole 300 MiB that sixty cores share, but copying 16 MiB or more there took 0.68 to 0.89 of the time past that cache;
# on another one, normalizing 32 MiB took 1.5 times as long past it. So kernels that have more ask what it holds.
_SHARE = 16384 * _KIB


def demand_known(name: str) -> None:
    """Raises PlanError for an unknown target name."""
    given: object = name
    if given == HOST or given in _NAMED:
        return
    known = (HOST, *_NAMED)
    meant = hint(given, known) if isinstance(given, str) else ""
    raise UnknownTarget(repr(given)[:60], ", ".join(known), meant).error()


@cache
def processor_called(name: str) -> Processor:
    """The processor of a target by its name."""
    return _host() if name == HOST else _NAMED[name]


def runs_here(name: str) -> bool:
    """Whether code for a target runs on this machine."""
    if name == HOST:
        return True
    wanted, here = processor_called(name), processor_called(HOST)
    return wanted.family == here.family and wanted.level <= here.level


@cache
def cpu_text() -> bytes:
    """The start of /proc/cpuinfo; empty if there is none."""
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
    """Whether the system permits this process to use tile registers; it grants this for all threads."""
    from ctypes import CDLL

    call = getattr(CDLL(None), "syscall", None)
    return call is not None and bool(call(*TILES_ASKED) == 0)


def described(family: str, text: bytes, caches: dict[int, int]) -> Processor:
    """The processor that a text like /proc/cpuinfo describes, with the known cache sizes by level."""
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
    """The bytes of the data caches by level, and of a cache line as level 0, as far as the system reports them."""
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
    """The numbers in a list of numbers and ranges, as in `0-3,8`."""
    ranges = (part.partition("-") for part in text.split(","))
    return {number for low, _, high in ranges for number in range(int(low), int(high or low) + 1)}


def processors() -> int:
    """How many processors this process may use."""
    if hasattr(os, "sched_getaffinity"):
        return len(os.sched_getaffinity(0))
    return os.cpu_count() or 1

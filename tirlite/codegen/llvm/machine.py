"""Compiles LLVM text to object code for this machine. llvmlite is imported at first use.

llvmlite's lock lets one thread into LLVM at a time, though LLVM only requires that threads share no context and no
target machine. LLVM's long calls are therefore made without the lock, if llvmlite still has the unlocked functions.
"""

from __future__ import annotations

from collections.abc import Callable, Collection, Iterator, Mapping
from contextlib import AbstractContextManager, contextmanager
from ctypes import string_at
from enum import Enum
from functools import cache, partial
from threading import Condition
from time import perf_counter
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.codegen.functions.parts import ModulePart
from tirlite.codegen.llvm.text import Extent
from tirlite.gate import GATE
from tirlite.record import record
from tirlite.target.processor import HOST

if TYPE_CHECKING:
    from llvmlite.binding import ContextRef, ModuleRef, PassBuilder, TargetMachine
    from llvmlite.binding.newpassmanagers import ModulePassManager

    from tirlite.codegen.lower import Lowered


Seconds: TypeAlias = dict[str, float]
Compiled: TypeAlias = tuple[bytes, Seconds]  # object code, and the seconds of each stage

# Above these limits LLVM takes minutes: its code generator for long blocks, its passes for deep loop nests.
LONG = 8000  # lines of a function
HUGE = 40_000
LARGE = 30_000  # lines of a function that was split into pieces
DEEP = 32  # loops around one another
NESTED = 400  # blocks inside one another
MANY = 300  # loops of a function
# A vectorized module with more lines, such as a network, gets LLVM's passes of level 1 even if some loops are scalar:
# level 3 duplicates loops that have an invariant condition (loop unswitching).
WIDE = 8000

# SSE-encoded instructions on parts of vectors: mixed with AVX code, each takes 120 ns on a Zen 3.
SSE4A = "sse4a"

# Processors with VBMI2 hardly lower their frequency for 512-bit vectors. LLVM prefers 256 bits on all Intel processors,
# which makes loops over data in the L1 cache up to 1.35 times slower.
VBMI2 = "avx512vbmi2"
HALF_AS_WIDE = "prefer-256-bit"

# The last LLVM version whose options are known: setting an unknown option ends the process.
OPTIONS_OF = 22


class Effort(Enum):
    """LLVM's optimisation level, for its passes and for its code generator.
    Only the first two vectorize and unroll loops. The passes that MOST leaves out find nothing in loops that are
    vectorized already, and take 12 to 30 % of LLVM's time.
    """

    FULL = (3, 2)
    MOST = (1, 2)
    SOME = (1, 1)
    LITTLE = (1, 0)
    NONE = (0, 0)

    @property
    def vectorizes(self) -> bool:
        return self in (Effort.FULL, Effort.MOST)


@record
class Optimised:
    """A module after LLVM's passes, as text, and its assembly."""

    llvm: str
    assembly: str


def effort_for(extent: Extent) -> Effort:
    """FULL, unless LLVM would take minutes or the module would not gain from it."""
    if extent.deepest > DEEP or extent.nested > NESTED or extent.longest > HUGE:
        return Effort.NONE
    if extent.longest > LONG:
        return Effort.LITTLE
    at_most = min(extent.lines, (extent.pieces + 1) * extent.longest)
    if extent.loops > MANY or at_most > LARGE:
        return Effort.SOME
    is_lean = extent.by_vectors and (extent.lines > WIDE or not extent.by_elements)
    return Effort.MOST if is_lean else Effort.FULL


def effort_of(part: ModulePart) -> Effort:
    """The effort for a part; at most MOST for a vectorized module with units, usually a network."""
    effort, is_wide = effort_for(part.extent), part.is_unit and part.extent.by_vectors
    return Effort.MOST if is_wide and effort is Effort.FULL else effort


def compiled(part: ModulePart, machine: TargetMachine, effort: Effort, *, locked: bool = True) -> Compiled:
    """The object code of a part. If not `locked`, other threads may be in LLVM with their own target machines."""
    from llvmlite import binding

    seconds: Seconds = {}
    start = perf_counter()
    # Always close the module here. If a traceback, as of Ctrl-C, holds both module and context, the collector may free
    # the context first, and a module without its context ends the process.
    with _parsed(part.text, machine, binding.create_context()) as module:
        start = _lap(seconds, "llvm parse", start)
        _optimise(module, machine, effort, joins_scalars=part.joins_scalars, locked=locked)
        start = _lap(seconds, "llvm optimise", start)
        with ADDRESSES.worked_over(are=part.works_over_addresses):
            data = emit_object(machine, module, locked=locked)
        _lap(seconds, "llvm emit", start)
    return data, seconds


# LLVM's triple and processor of each target other than the host.
MACHINES = {
    "x86-64": ("x86_64-unknown-linux-gnu", "x86-64"),
    "x86-64-v2": ("x86_64-unknown-linux-gnu", "x86-64-v2"),
    "x86-64-v3": ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "x86-64-v4": ("x86_64-unknown-linux-gnu", "x86-64-v4"),
    "aarch64": ("aarch64-unknown-linux-gnu", "generic"),
}


def compile_exported(lowered: Lowered, wrapper: str, names: Collection[str], machine: str = HOST) -> bytes:
    """The object code of a module linked with the wrapper that calls it; only `names` are visible outside.

    `machine`: one of `MACHINES`, or the host; a wrapper with assembler directives is for the host only.
    """
    from llvmlite import binding

    effort = effort_for(lowered.extent)
    target = machine_for(effort, machine)
    binding.initialize_native_asmparser()
    module = _parsed(lowered.text, target)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external"  # so that the wrapper can link to it
    module.link_in(_parsed(wrapper, target))
    for function in module.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    with options_off(target), ADDRESSES.worked_over(are=lowered.works_over_addresses):
        _optimise(module, target, effort, joins_scalars=lowered.joins_scalars)
        return bytes(target.emit_object(module))


def compile_text(text: str, effort: Effort = Effort.SOME) -> bytes:
    """The object code for the host of a module given as LLVM text; other threads may compile meanwhile."""
    machine = new_machine(effort.value[1], HOST)
    with options_off(machine):
        return compiled(ModulePart(text), machine, effort, locked=False)[0]


def optimised(lowered: Lowered, target: str = HOST) -> Optimised:
    """The module after LLVM's passes, which run once for both forms of output, since each run leaks memory."""
    effort = effort_for(lowered.extent)
    machine = machine_for(effort, target)
    module = _parsed(lowered.text, machine)
    with options_off(machine), ADDRESSES.worked_over(are=lowered.works_over_addresses):
        _optimise(module, machine, effort, joins_scalars=lowered.joins_scalars)
        return Optimised(str(module), str(machine.emit_assembly(module)))


# Carries a loaded value over to the next iteration, which keeps stencil loops from being vectorized.
_HANDED_ON = "enable-load-in-loop-pre"
# Turns conditional moves in loops with a carried latency into branches. Where data decides, as in a binary search or an
# edit distance, the branches are mispredicted and the loop takes twice the time.
_BRANCHES = "x86-cmov-converter"


class Settings:
    """Settings of the process that are changed while any thread holds them; each change returns what undoes it."""

    def __init__(self) -> None:
        self._holders = 0
        self._undo: dict[str, Callable[[], object]] = {}

    @contextmanager
    def held(self, changes: Mapping[str, Callable[[], Callable[[], object]]]) -> Iterator[None]:
        """Makes the changes that are not made yet: another thread may be compiling and reading what they set."""
        with GATE.inside(self):
            self._holders += 1
            for name in [each for each in changes if each not in self._undo]:
                self._undo[name] = changes[name]()
        try:
            yield
        finally:
            with GATE.inside(self):
                self._holders -= 1
                while self._undo and not self._holders:
                    self._undo.popitem()[1]()


OPTIONS = Settings()


def options_off(machine: TargetMachine) -> AbstractContextManager[None]:
    """Switches off the options of LLVM, which are global to the process, that cost more than they gain."""
    from llvmlite import binding

    def off(option: str) -> Callable[[], object]:
        binding.set_option("", f"-{option}=false")
        return partial(binding.set_option, "", f"-{option}=true")

    options = (_HANDED_ON, *(_BRANCHES,) * machine.triple.startswith("x86_64"))
    is_known = binding.llvm_version_info[0] <= OPTIONS_OF
    return OPTIONS.held({each: partial(off, each) for each in options if is_known})


class _Addresses:
    """Whether LLVM runs loop strength reduction, which takes a third of code generation or more.
    It is an option of the process, so only parts with the same setting are emitted at the same time; afterwards it is
    on again, for other users of LLVM.
    """

    def __init__(self) -> None:
        self._changed = Condition()
        self._emitting = 0
        self._are = True

    @contextmanager
    def worked_over(self, *, are: bool) -> Iterator[None]:
        with self._changed:
            self._changed.wait_for(lambda: self._are is are or not self._emitting)
            self._set(are=are)
            self._emitting += 1
        try:
            yield
        finally:
            with self._changed:
                self._emitting -= 1
                if not self._emitting:
                    self._set(are=True)
                self._changed.notify_all()

    def _set(self, *, are: bool) -> None:
        from llvmlite import binding

        if self._are is not are and binding.llvm_version_info[0] <= OPTIONS_OF:
            binding.set_option("", f"-disable-lsr={'false' if are else 'true'}")
        self._are = are


ADDRESSES = _Addresses()


def _lap(seconds: Seconds, stage: str, start: float) -> float:
    now = perf_counter()
    seconds[stage] = now - start
    return now


def machine_for(effort: Effort, target: str = HOST) -> TargetMachine:
    return _machine_at(effort.value[1], target)


@cache
def _machine_at(level: int, name: str) -> TargetMachine:
    """The cached target machine for a code generation level: LLVM takes long to resolve its features."""
    return new_machine(level, name)


def new_machine(level: int, name: str) -> TargetMachine:
    from llvmlite import binding

    if name == HOST:
        cpu, features = _host()
        blends = "+avx" in features and "+avx512vl" not in features
        target = binding.Target.from_default_triple()
    else:
        triple, cpu = MACHINES[name]
        features, blends = "", cpu == "x86-64-v3"
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        target = binding.Target.from_triple(triple)
    if level == 0 and blends and binding.llvm_version_info[0] <= OPTIONS_OF:
        # With AVX and without masks, LLVM's fast selection of instructions loads 16 bytes where `select` takes a single
        # float from memory. Once set, this option cannot be left to the level again: on, it would hold for all of them.
        binding.set_option("", "-fast-isel=false")
    return target.create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default")


@cache
def _host() -> tuple[str, str]:
    """This machine's processor and features; initialises LLVM's native target."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    features = binding.get_host_cpu_features()
    if features.get(SSE4A):
        features[SSE4A] = False
    if features.get(VBMI2):
        features[HALF_AS_WIDE] = False
    return binding.get_host_cpu_name(), features.flatten()


def _parsed(text: str, machine: TargetMachine, context: ContextRef | None = None) -> ModuleRef:
    """Parses and verifies a module, and sets its target."""
    from llvmlite import binding

    module = None
    try:
        module = binding.parse_assembly(text, context)
        # LLVM's passes end the process on an invalid module; verifying takes a hundredth of their time.
        module.verify()
        module.triple = machine.triple
        module.data_layout = str(machine.target_data)
    except BaseException as error:
        if module is not None:
            module.close()
        if not isinstance(error, RuntimeError):
            raise
        from tirlite.codegen.refused import BadModule

        raise BadModule(str(error).strip()).error() from None
    return module


def _optimise(
    module: ModuleRef, machine: TargetMachine, effort: Effort, *, joins_scalars: bool, locked: bool = True
) -> None:
    from llvmlite import binding

    if effort is Effort.NONE:
        return
    options = binding.create_pipeline_tuning_options(speed_level=effort.value[0])
    options.loop_vectorization = options.loop_unrolling = effort.vectorizes
    options.slp_vectorization = effort.vectorizes and joins_scalars
    builder = binding.create_pass_builder(machine, options)
    # Always a new pass manager: running one a second time aborts the process.
    run_passes(builder.getModulePassManager(), module, builder, locked=locked)


def run_passes(passes: ModulePassManager, module: ModuleRef, builder: PassBuilder, *, locked: bool) -> None:
    """Runs a pass manager on a module."""
    run = None if locked else _unlocked("LLVMPY_RunNewModulePassManager")
    if run is None:
        passes.run(module, builder)
    else:
        run(passes, module, builder)


def emit_object(machine: TargetMachine, module: ModuleRef, *, locked: bool) -> bytes:
    """The object code of a module. Raises RuntimeError if LLVM cannot generate it."""
    from llvmlite.binding import ffi

    emit = None if locked else _unlocked("LLVMPY_TargetMachineEmitToMemory")
    if emit is None:
        return bytes(machine.emit_object(module))
    with ffi.OutputString() as told:
        memory = emit(machine, module, 1, told)
        if not memory:
            raise RuntimeError(str(told))
    try:
        return string_at(ffi.lib.LLVMPY_GetBufferStart(memory), ffi.lib.LLVMPY_GetBufferSize(memory))
    finally:
        ffi.lib.LLVMPY_DisposeMemoryBuffer(memory)


def _unlocked(name: str) -> Callable[..., Any] | None:
    """A function of llvmlite's library without its lock; None if llvmlite's internals have changed."""
    from llvmlite.binding import ffi

    return getattr(getattr(ffi.lib, name, None), "_cfn", None)

"""Compiles LLVM text to object code for this machine. llvmlite is loaded when it is first needed."""

from __future__ import annotations

from collections.abc import Collection, Iterator
from contextlib import contextmanager, nullcontext
from enum import Enum
from functools import cache
from time import perf_counter
from typing import TYPE_CHECKING

from tirlite.record import record
from tirlite.target.processor import HOST

if TYPE_CHECKING:
    from llvmlite.binding import ModuleRef, TargetMachine

    from tirlite.codegen.lower import Lowered

from tirlite.codegen.llvm.text import Extent

# Above these LLVM takes minutes: its code generator over long blocks, its passes over nests of loops.
LONG = 8000  # lines of a function
HUGE = 40_000
LARGE = 30_000  # lines of a function that was cut into pieces; functions of a network take each its own time
DEEP = 32  # loops around one another
NESTED = 400  # blocks inside one another
MANY = 300  # loops of a function

# The last version whose options are known: one that a later LLVM has no more would end the process.
OPTIONS_OF = 22


class Effort(Enum):
    """How hard LLVM tries: the optimisation level of its passes, and that of its code generator.

    Code is vectorized and loops are unrolled with full effort alone.
    """

    FULL = (3, 2)
    SOME = (1, 1)
    LITTLE = (1, 0)
    NONE = (0, 0)


@record
class ObjectCode:
    """A relocatable object for this machine, and how it came about: the seconds of each stage."""

    data: bytes
    effort: Effort
    seconds: dict[str, float]


@record
class Optimised:
    """The text of a module as LLVM's passes leave it, and the machine's assembly of it."""

    llvm: str
    assembly: str


def effort_for(extent: Extent) -> Effort:
    """Full effort, but for functions that LLVM would take minutes over."""
    if extent.deepest > DEEP or extent.nested > NESTED or extent.longest > HUGE:
        return Effort.NONE
    if extent.longest > LONG:
        return Effort.LITTLE
    at_most = min(extent.lines, (extent.pieces + 1) * extent.longest)
    return Effort.SOME if extent.loops > MANY or at_most > LARGE else Effort.FULL


def compile_module(lowered: Lowered, target: str = HOST) -> ObjectCode:
    """The object code of a module, optimised for a target by its name."""
    effort = effort_for(lowered.extent)
    seconds: dict[str, float] = {}
    start = perf_counter()
    machine = _machine(effort, target)
    start = _lap(seconds, "llvm load", start)
    module = _parsed(lowered.text, machine)
    start = _lap(seconds, "llvm parse", start)
    _optimise(module, machine, effort, keeps_scalars=lowered.keeps_scalars)
    start = _lap(seconds, "llvm optimise", start)
    with _selections(machine):
        data = machine.emit_object(module)
    _lap(seconds, "llvm emit", start)
    return ObjectCode(data, effort, seconds)


# Targets other than the host, by their names: LLVM's triple and processor.
MACHINES = {
    "x86-64": ("x86_64-unknown-linux-gnu", "x86-64"),
    "x86-64-v2": ("x86_64-unknown-linux-gnu", "x86-64-v2"),
    "x86-64-v3": ("x86_64-unknown-linux-gnu", "x86-64-v3"),
    "x86-64-v4": ("x86_64-unknown-linux-gnu", "x86-64-v4"),
    "aarch64": ("aarch64-unknown-linux-gnu", "generic"),
}


def compile_exported(lowered: Lowered, wrapper: str, names: Collection[str], machine: str = HOST) -> bytes:
    """The object code of a module and of another one that calls it; outside, `names` are known alone.

    `machine` is one of `MACHINES`, or the host. What the wrapper tells the assembler is for the host alone.
    """
    from llvmlite import binding

    effort = effort_for(lowered.extent)
    target = _machine(effort, machine)
    binding.initialize_native_asmparser()
    module = _parsed(lowered.text, target)
    for function in module.functions:
        if not function.is_declaration:
            function.linkage = "external"  # so that the other module finds it
    module.link_in(_parsed(wrapper, target))
    for function in module.functions:
        if not function.is_declaration and function.name not in names:
            function.linkage = "internal"
    _optimise(module, target, effort, keeps_scalars=lowered.keeps_scalars)
    with _selections(target):
        return bytes(target.emit_object(module))


def compile_text(text: str, effort: Effort = Effort.SOME) -> bytes:
    """The object code of a module that is written out in LLVM's assembly, for the host."""
    machine = _machine(effort)
    module = _parsed(text, machine)
    _optimise(module, machine, effort, keeps_scalars=False)
    with _selections(machine):
        return bytes(machine.emit_object(module))


def optimised(lowered: Lowered, target: str = HOST) -> Optimised:
    """A module after LLVM's passes, which run once for all that is shown of it: each run leaves memory behind."""
    effort = effort_for(lowered.extent)
    machine = _machine(effort, target)
    module = _parsed(lowered.text, machine)
    _optimise(module, machine, effort, keeps_scalars=lowered.keeps_scalars)
    with _selections(machine):
        return Optimised(str(module), str(machine.emit_assembly(module)))


@contextmanager
def _selections(machine: TargetMachine) -> Iterator[None]:
    """While code is written, what picks one of two values stays an instruction without a branch.

    For x86 LLVM makes branches of these in loops with a latency between iterations, as if all were foreseen by the
    processor: what data decides, such as the steps of a binary search or of an edit distance, takes twice the time.
    """
    with _turned_off("x86-cmov-converter") if machine.triple.startswith("x86_64") else nullcontext():
        yield


@contextmanager
def _turned_off(option: str) -> Iterator[None]:
    """While an option of LLVM is off. Its options are those of the whole process, which others share."""
    from llvmlite import binding

    if binding.llvm_version_info[0] > OPTIONS_OF:
        yield
        return
    binding.set_option("", f"-{option}=false")
    try:
        yield
    finally:
        binding.set_option("", f"-{option}=true")


def _lap(seconds: dict[str, float], stage: str, start: float) -> float:
    now = perf_counter()
    seconds[stage] = now - start
    return now


def _machine(effort: Effort, target: str = HOST) -> TargetMachine:
    return _machine_at(effort.value[1], target)


@cache
def _machine_at(level: int, name: str) -> TargetMachine:
    """A target, for code at a level of the code generator. LLVM works out anew for each what its features imply."""
    from llvmlite import binding

    if name == HOST:
        cpu, features = _host()
        target = binding.Target.from_default_triple()
    else:
        triple, cpu = MACHINES[name]
        features = ""
        binding.initialize_all_targets()
        binding.initialize_all_asmprinters()
        target = binding.Target.from_triple(triple)
    return target.create_target_machine(cpu=cpu, features=features, opt=level, reloc="pic", codemodel="default")


@cache
def _host() -> tuple[str, str]:
    """This machine's processor and its features; LLVM is ready for it afterwards."""
    from llvmlite import binding

    binding.initialize_native_target()
    binding.initialize_native_asmprinter()
    return binding.get_host_cpu_name(), binding.get_host_cpu_features().flatten()


def _parsed(text: str, machine: TargetMachine) -> ModuleRef:
    from llvmlite import binding

    module = binding.parse_assembly(text)
    module.triple = machine.triple
    module.data_layout = str(machine.target_data)
    return module


def _optimise(module: ModuleRef, machine: TargetMachine, effort: Effort, *, keeps_scalars: bool) -> None:
    from llvmlite import binding

    if effort is Effort.NONE:
        return
    options = binding.create_pipeline_tuning_options(speed_level=effort.value[0])
    is_full = effort is Effort.FULL
    options.loop_vectorization = options.loop_unrolling = is_full
    options.slp_vectorization = is_full and not keeps_scalars
    builder = binding.create_pass_builder(machine, options)
    # What an iteration loaded is not handed to the next one: that keeps loops over neighbours from going by vectors.
    with _turned_off("enable-load-in-loop-pre"):
        # A pass manager that runs a second time aborts the process.
        builder.getModulePassManager().run(module, builder)

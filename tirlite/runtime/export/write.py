"""Writes the files of an exported function into a folder: object, C header, CMake snippet."""

from __future__ import annotations

import re
from _thread import get_ident
from collections.abc import Iterable, Iterator, Mapping
from contextlib import ExitStack, contextmanager
from os import getpid
from pathlib import Path
from typing import TYPE_CHECKING, Any, TypeAlias

from tirlite.analysis import shape_plan
from tirlite.codegen import MACHINES, Lowered, compile_exported, lower
from tirlite.codegen.reports import FailedAssert, IndexReport
from tirlite.diag import CallValueError, Message
from tirlite.ir import Buffer, TypeCode, Var
from tirlite.ir.assertion import filled
from tirlite.ir.printer import text as printed
from tirlite.record import record
from tirlite.runtime.export.wrapper import (
    ABI,
    BAD_CONTEXT,
    BAD_SIZE,
    NO_ARENA,
    NO_WEIGHTS,
    WEIGHTS_ALIGN,
    Weights,
    arena_need,
    wrapper_text,
)
from tirlite.runtime.signature import Signature
from tirlite.runtime.signature_text import kind_text
from tirlite.show import shown

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.ir import PrimFunc

    Array: TypeAlias = npt.NDArray[Any]

_INTERFACE = f"""\
#ifndef TIRLITE_ABI
#define TIRLITE_ABI {ABI}

/* Runs iterations [first, end) as the given worker, and returns 0 or what stopped it. */
typedef int64_t (*tirlite_task)(void *closure, int64_t first, int64_t end, int64_t worker);

/* What a function needs of the program around it. Null, or one without `parallel`: loops run in the calling thread.

   `parallel` cuts iterations [0, count) into at most `chunks` stretches, runs the task on each, and returns when all
   are done: 0, or the result of the first stretch whose result is not 0. At a time, no two threads are the same
   worker; workers are numbered from 0 to below `workers`. */
typedef struct tirlite_ctx {{
  uint32_t abi; /* TIRLITE_ABI */
  int64_t (*parallel)(void *pool, tirlite_task task, void *closure, int64_t count, int64_t workers, int64_t chunks);
  void *pool; /* handed to `parallel` */
}} tirlite_ctx;

enum {{
  TIRLITE_DONE = 0,
  TIRLITE_BAD_SIZE = {BAD_SIZE},
  TIRLITE_BAD_CONTEXT = {BAD_CONTEXT},
  TIRLITE_NO_ARENA = {NO_ARENA},
  TIRLITE_NO_WEIGHTS = {NO_WEIGHTS}
}};
#elif TIRLITE_ABI != {ABI}
#error "this header goes with version {ABI} of the interface"
#endif
"""


@record
class Exported:
    """What the header says besides the parameters; `weight_bytes` is -1 without a file of weights."""

    name: str
    alignment: int  # of the arena, in bytes
    has_arena: bool
    workers: int
    constants: frozenset[str]
    weight_bytes: int


def header_text(signature: Signature, made: Exported) -> str:
    guard = f"TIRLITE_{made.name}_H"  # `Blur` and `blur` have two
    notes = [*_param_lines(signature, made.constants), *_dim_lines(signature)]
    return "\n".join(
        [
            f"/* {made.name}: compiled by tirlite.",
            "",
            *(f"   {line}" for line in notes),
            "",
            "   Arrays are contiguous, their last axis fastest, but for those with strides, which count elements.",
            "   They are aligned for their type; those that are written overlap no other. f16 and bf16 arrays hold",
            "   the bits as uint16_t, bool ones bytes of 0 or 1. */",
            f"#ifndef {guard}",
            f"#define {guard}",
            "#include <stdint.h>",
            "",
            "#ifdef __cplusplus",
            'extern "C" {',
            "#endif",
            "",
            _INTERFACE,
            *_numbers(made),
            "",
            *_functions(signature, made),
            "",
            "#ifdef __cplusplus",
            "}",
            "#endif",
            "#endif",
            "",
        ]
    )


def _numbers(made: Exported) -> list[str]:
    """The constants that a program needs at compile time."""
    name = made.name.upper()
    lines = [
        f"/* The most workers that a parallel loop asks for; {made.name}_arena_bytes counts them. */",
        f"#define {name}_WORKERS {made.workers}",
    ]
    if made.weight_bytes >= 0:
        lines += [
            f"/* The constants: the file {made.name}.weights, at an address that is a multiple of {WEIGHTS_ALIGN}. */",
            f"#define {name}_WEIGHT_BYTES {made.weight_bytes}",
        ]
    if made.has_arena:
        lines += [
            "/* What the address of the arena is a multiple of. */",
            f"#define {name}_ARENA_ALIGN {made.alignment}",
        ]
    return lines


def _functions(signature: Signature, made: Exported) -> list[str]:
    name, written = made.name, {array.buffer for array in signature.arrays if array.is_written}
    given = [param for param in signature.func.params if param.name not in made.constants]
    named = _names_in_c(each.name for each in (*given, *signature.dims))
    declared = {each: f"{_c_type(each, is_written=each in written)}{named[each.name]}" for each in given}
    dims = [f"int64_t {named[var.name]}" for var in signature.dims]
    params = ["const tirlite_ctx *ctx", *declared.values(), *dims]
    params += ["const void *weights"] * (made.weight_bytes >= 0) + ["void *arena"] * made.has_arena
    numbers = [*(text for each, text in declared.items() if isinstance(each, Var)), *dims]
    return [
        "/* 0, or a status that the function below puts into words. May be called by several threads, each with an",
        "   arena of its own; the content of the arena does not matter. */",
        f"int32_t {name}({', '.join(params)});",
        "",
        "/* The bytes that the arena must have; -1 where they, or the sizes, are impossible. */",
        f"int64_t {name}_arena_bytes({', '.join(numbers) or 'void'});",
        "",
        f"const char *{name}_message(int32_t status);",
    ]


def _param_lines(signature: Signature, constants: frozenset[str]) -> list[str]:
    written = {array.buffer for array in signature.arrays if array.is_written}
    params = [param for param in signature.func.params if param.name not in constants]
    return [f"{each.name}: {kind_text(each)}{', written' if each in written else ''}" for each in params]


def cmake_text(name: str) -> str:
    """The CMake snippet that defines the target `NAME`."""
    return f"""\
add_library({name} OBJECT IMPORTED GLOBAL)
set_target_properties({name} PROPERTIES
  IMPORTED_OBJECTS "${{CMAKE_CURRENT_LIST_DIR}}/{name}.o"
  INTERFACE_INCLUDE_DIRECTORIES "${{CMAKE_CURRENT_LIST_DIR}}"
  INTERFACE_LINK_LIBRARIES m)
"""


def _c_type(param: Var | Buffer, *, is_written: bool) -> str:
    """The C type in front of a parameter's name."""
    dtype, is_number = param.dtype, isinstance(param, Var)
    if dtype.is_float:
        kind = {64: "double", 32: "float"}.get(dtype.bits, "float" if is_number else "uint16_t")
    elif dtype.is_bool:
        kind = "uint8_t"
    else:
        kind = f"{'' if dtype.code is TypeCode.INT else 'u'}int{dtype.bits}_t"
    return f"{kind} " if is_number else f"{'' if is_written else 'const '}{kind} *"


def _dim_lines(signature: Signature) -> list[str]:
    lines = []
    for var in signature.dims:
        low, high, multiple = (1, None, 1) if var.dim is None else (var.dim.min, var.dim.max, var.dim.multiple_of)
        most = "" if high is None else f", at most {high}"
        lines.append(f"{var.name}: at least {low}{most}{'' if multiple == 1 else f', a multiple of {multiple}'}")
    return lines


_C_AND_CPP = """
alignas alignof and and_eq asm auto bitand bitor bool break case catch char class compl concept const const_cast
consteval constexpr constinit continue decltype default delete do double dynamic_cast else enum explicit export extern
false float for friend goto if inline int long mutable namespace new noexcept not not_eq nullptr operator or or_eq
private protected public register reinterpret_cast requires restrict return short signed sizeof static static_assert
static_cast struct switch template this thread_local throw true try typedef typeid typename typeof union unsigned
using virtual void volatile wchar_t while xor xor_eq
int8_t int16_t int32_t int64_t uint8_t uint16_t uint32_t uint64_t tirlite_ctx tirlite_task
"""
C_WORDS = frozenset(_C_AND_CPP.split())
# Macros of C and its library, and the header's own names.
_MACROS = re.compile("errno|linux|unix|I|NULL|U?INT(8|16|32|64|MAX|PTR|_)\\w*|TIRLITE_\\w*")
# Those, macros of headers that a program may include before, and names that C keeps for itself, as _Bool and __LINE__.
_NO_PARAMETERS = re.compile(
    f"{_MACROS.pattern}|complex|imaginary|\\w+_(WORKERS|WEIGHT_BYTES|ARENA_ALIGN)|_[A-Z]\\w*|__[A-Za-z]\\w*"
)
# Functions of the C library: an exported function of such a name would replace it in the program.
_C_FUNCTIONS = """
abort abs atexit atof atoi bcmp bsearch bzero calloc div exit fclose fflush fopen fprintf fputs fread free fwrite gamma
getenv index j0 j1 jn labs main malloc memchr memcmp memcpy memmove memset open printf putchar puts qsort raise rand
read realloc remove rename rewind rindex scanf select send setbuf signal sleep sprintf srand strcmp strcpy strlen strtol
system time wait write y0 y1 yn
"""
# Those that there are for `float` and `long double`, too, with `f` or `l` behind the name.
_FLOAT_FUNCTIONS = """
acos acosh asin asinh atan atan2 atanh cbrt ceil copysign cos cosh erf erfc exp exp10 exp2 expm1 fabs fdim floor fma
fmax fmin fmod frexp hypot ilogb ldexp lgamma log log10 log1p log2 logb lrint lround modf nan nearbyint nextafter pow
remainder remquo rint round roundeven scalbn sin sincos sinh sqrt tan tanh tgamma trunc
"""
_C_LIBRARY = {*_C_FUNCTIONS.split(), *(f"{name}{kind}" for name in _FLOAT_FUNCTIONS.split() for kind in ("", "f", "l"))}
# Names of the wrapper's own parameters.
_TAKEN = frozenset(("ctx", "weights", "arena"))


def _names_in_c(names: Iterable[str]) -> dict[str, str]:
    """The parameters' names in C; as they occur only in prototypes, letters that C lacks may be replaced."""
    found: dict[str, str] = {}
    for name in names:
        plain = "".join(letter if letter.isascii() and letter.isalnum() else "_" for letter in name)
        while plain in C_WORDS | _TAKEN or _NO_PARAMETERS.fullmatch(plain) or plain in found.values():
            # Some macros are told by how they begin.
            plain = f"{plain}_" if not _NO_PARAMETERS.fullmatch(f"{plain}_") else f"a_{plain}"
        found[name] = plain
    return found


class NotExportable(Message):
    """A kernel needs something that a program which it is exported to does not have.

    Example: A kernel with `t = tl.alloc(tl.f32[count])`, where `count` is read from an array: memory from the heap.
    Fix: Give the buffer an extent that is known from the arguments, and call C functions by name.
    """

    title = "{kernel}() cannot be exported: {why}"
    help = "{advice}"


class BadExport(Message):
    """An option of an export has a value that it cannot have.

    Example: `kernel.export("build", target="arm")`.
    Fix: Take what the message lists.
    """

    raises = CallValueError
    title = "{option} cannot be {given}"
    help = "{advice}"


def export(
    func: PrimFunc,
    signature: Signature,
    folder: Path,
    name: str,
    *,
    workers: int,
    machine: str,
    constants: Mapping[str, Array],
    embed: bool,
) -> tuple[Path, ...]:
    """Writes the files, and returns their paths: object, header, CMake snippet, and weights if they are a file.

    `func`: the function after the passes. `constants`: arrays for some parameters; `embed` puts them into the object.
    Raises KernelError for code that no program could run; `demand_options` must have accepted name and machine.
    """
    if shape_plan(func) is not None:
        advice = "compile it with another strategy than per_shape"
        raise NotExportable(signature.name, "its storage is planned as it is called", advice).error()
    lowered = lower(func, workers, exported=True, target=machine)
    _demand_exportable(signature.name, lowered)
    folder.mkdir(parents=True, exist_ok=True)
    paths = [folder / f"{name}{suffix}" for suffix in (".o", ".h", ".cmake")]
    with ExitStack() as files:
        weights, size = None, -1
        if constants:
            block = files.enter_context(_begun(folder / f"{name}.weights", stays=not embed))
            weights = Weights(_write_weights(block, constants), str(block.resolve()) if embed else None)
            if not embed:
                size = block.stat().st_size
                paths.append(folder / f"{name}.weights")
        names = [name, f"{name}_arena_bytes", f"{name}_message"]
        text = wrapper_text(name, signature, lowered, weights, _messages(lowered), workers)
        begun = files.enter_context(_begun(paths[0]))
        begun.write_bytes(compile_exported(lowered, text, names, machine))
        has_arena = arena_need(lowered, workers) > 0 or not lowered.workspace.is_empty
        made = Exported(name, lowered.alignment, has_arena, workers, frozenset(constants), size)
        for path, content in zip(paths[1:], (header_text(signature, made), cmake_text(name)), strict=False):
            files.enter_context(_begun(path)).write_text(content, "utf-8")
    return tuple(paths)


@contextmanager
def _begun(path: Path, *, stays: bool = True) -> Iterator[Path]:
    """A temporary file beside `path`, which replaces it at the end unless an error occurs or `stays` is false.
    A symbolic link is replaced, not its target. OSErrors are given the name `path`, which Python omits if a disk is
    full.
    """
    begun = path.with_name(f".tirlite-{getpid()}-{get_ident()}{path.suffix}")
    try:
        yield begun
        if stays:
            begun.replace(path)
    except OSError as error:
        if error.filename in (None, str(begun)):
            error.filename, error.filename2 = str(path), None
        raise
    finally:
        begun.unlink(missing_ok=True)


def demand_options(name: object, machine: str, weights: object, *, are_some: bool) -> None:
    """Raises CallValueError for an invalid C name, an unknown machine, or weights that cannot be stored as asked."""
    is_name = isinstance(name, str) and re.fullmatch("[A-Za-z][A-Za-z0-9_]{,199}", name, re.ASCII)
    if not isinstance(name, str) or not is_name or name in C_WORDS or _MACROS.fullmatch(name):
        raise BadExport("the name", shown(name), "give one that C takes: `name=`").error()
    if name in _C_LIBRARY:
        raise BadExport(
            "the name", shown(name), "the C library has a function of that name: `name=` gives another"
        ).error()
    if weights not in ("object", "file"):
        raise BadExport("weights", shown(weights), "they are in the object, or in a file").error()
    if machine != "host" and machine not in MACHINES:
        listed = ", ".join(("host", *MACHINES))
        raise BadExport("the target", repr(machine), f"the targets are {listed}").error()
    if are_some and weights == "object" and machine == "aarch64":
        advice = 'have the weights in a file: `weights="file"`'
        raise BadExport("weights for another machine", "in the object", advice).error()


def _demand_exportable(kernel: str, lowered: Lowered) -> None:
    if lowered.heap.unbounded:
        advice = "give dims a `max`, which bounds it, or allocate it in the kernel that is exported"
        why = f"the bytes of `{lowered.heap.unbounded[0]}` are known only as it runs"
        raise NotExportable(kernel, why, advice).error()
    if lowered.addresses:
        raise NotExportable(kernel, "it calls a C function by its address", "call it by its name").error()


def _messages(lowered: Lowered) -> list[str]:
    """The text of each fault, without its values."""
    texts = []
    for number, fault in enumerate(lowered.faults, 1):
        report = lowered.reports.get(number)
        text = fault.say(fault.title)
        if isinstance(report, FailedAssert):
            inside = [printed(value) for value in report.stmt.values]
            text = f"assertion failed: {filled(report.stmt.message, inside) if inside else report.stmt.message}"
        elif isinstance(report, IndexReport):
            text = f"an index of `{report.buffer}` is out of bounds"
        span = fault.span
        texts.append(text if span is None else f"{text} ({Path(span.source.name).name}:{span.line})")
    return texts


def _write_weights(path: Path, constants: Mapping[str, Array]) -> dict[str, int]:
    """Writes the arrays one after another, and returns their offsets."""
    offsets = {}
    with path.open("wb") as file:
        for name, array in constants.items():
            file.write(bytes(-file.tell() % WEIGHTS_ALIGN))
            offsets[name] = file.tell()
            file.write(array.data)
    return offsets

"""Advice for names that exist in other languages of kernels: Numba, NumPy, Taichi, Triton, plain Python."""

from __future__ import annotations

_PARALLEL = "write `for i in tl.parallel(n):`"
_LOOP = "write the loop: `for i in tl.reduce(n): total += x[i]`"
_ELEMENTS = "write the loop over the elements, `for i in range(n):`"
_ALLOCATE = "allocate, `t = tl.alloc(tl.f32[n])`, and store into its elements in a loop"
_THREADS = 'write a loop over threads: `for t in tl.thread("threadIdx.x", 128):`'
_BLOCKS = 'write a loop over blocks: `for b in tl.thread("blockIdx.x", n):`'
_SHAPE = "an array keeps its shape: index it, or make a window on its bytes by tl.view"

_ADVICE = {
    "prange pndindex ndrange parfor": _PARALLEL,
    "serial arange linspace": "write `for i in range(start, stop, step):`",
    "static_range": "write `for i in tl.static(range(4)):`, or tl.unroll",
    "program_id num_programs block_idx blockIdx block_id grid": _BLOCKS,
    "thread_idx threadIdx thread_id lane_id tid": _THREADS,
    "syncthreads sync_threads debug_barrier storage_sync": 'write `tl.barrier("shared")`',
    "load": "index the array: `x[i]`",
    "store": "assign to an element: `x[i] = value`",
    "atomic_add atomic_max atomic_min": "write `x[i] += v` in a loop over tl.reduce",
    "zeros ones empty full zeros_like ones_like empty_like full_like array asarray field ndarray": _ALLOCATE,
    "tensor Vector Matrix": _ALLOCATE,
    "sum prod mean std var dot matmul inner cumsum count_nonzero norm trace": _LOOP,
    "any": "write the loop: `for i in range(n): found = found or x[i] > 0`",
    "all": "write the loop: `for i in range(n): holds = holds and x[i] > 0`",
    "min amin nanmin": "write the loop: `for i in tl.reduce(n): least = min(least, x[i])`",
    "max amax nanmax ptp": "write the loop: `for i in tl.reduce(n): most = max(most, x[i])`",
    "argmin": "write `least, at = tl.argmin((least, at), (x[i], i))` in a loop over tl.reduce",
    "argmax": "write `most, at = tl.argmax((most, at), (x[i], i))` in a loop over tl.reduce",
    "argsort sort sorted unique einsum outer copy copyto fill tolist": _ELEMENTS,
    "reversed": "write `for i in range(n - 1, -1, -1):`",
    "enumerate zip map filter iter next": "loop over indices: `for i in range(n):`, and read `x[i]` in it",
    "reshape ravel flatten transpose T squeeze expand_dims swapaxes": _SHAPE,
    "size ndim": "extents are `x.shape[i]`, or the dims that the parameter is declared with",
    "maximum fmax": "write `max(a, b)`, as in Python",
    "minimum fmin": "write `min(a, b)`, as in Python",
    "where": "write `a if c else b`, or tl.select(c, a, b) for both sides computed",
    "clip clamp": "write `min(max(x, low), high)`",
    "absolute fabs": "write `abs(x)`",
    "power": "write `x ** y`, or tl.pow(x, y)",
    "square": "write `x * x`",
    "arcsin": "write tl.asin",
    "arccos": "write tl.acos",
    "arctan": "write tl.atan",
    "arctan2": "write tl.atan2",
    "logical_and": "write `a and b`",
    "logical_or": "write `a or b`",
    "logical_not": "write `not a`",
    "add subtract multiply divide true_divide floor_divide mod remainder": "write the operator: + - * / // %",
    "divmod": "write `a // b` and `a % b`",
    "round": "write tl.round(x), and tl.i64(tl.round(x)) for an integer",
    "pow": "write `x ** y`, or tl.pow(x, y)",
    "cdiv ceil_div": "write `-(-a // b)`",
    "sign signbit copysign": "write `a if c else b`",
    "isinf isfinite": 'compare: `abs(x) < tl.f32("inf")`',
    "rint": "write tl.round",
    "device_print printf": "write `print(...)`, as in Python",
    "constexpr": "names from around a kernel are constants; tl.static(...) is computed before the kernel runs",
    "jit njit func vectorize guvectorize": "write `@tl.kernel`, and `@tl.inline` for functions that kernels call",
    "cast astype": "call the type: `tl.f32(x)`",
    "float32 float single": "write tl.f32",
    "float64 double": "write tl.f64",
    "float16 half": "write tl.f16",
    "bfloat16": "write tl.bf16",
    "c64 c128 complex complex64 complex128": "keep real and imaginary parts in arrays of floats",
    "inout in_out InOut In Out mut": "write `y: tl.f32[n]`: a kernel may read and write any array",
    "int8": "write tl.i8",
    "int16": "write tl.i16",
    "int32": "write tl.i32",
    "int64 int": "write tl.i64",
    "uint8": "write tl.u8",
    "uint16": "write tl.u16",
    "uint32": "write tl.u32",
    "uint64": "write tl.u64",
    "bool int1": "write tl.bool_",
    "pi e tau inf nan": 'write `math.pi` with `import math`, or tl.f32("inf")',
}
_OF_NAME = {name: advice for names, advice in _ADVICE.items() for name in names.split()}


def advice_on(name: str) -> str:
    """What to write instead of `name` in a kernel; empty if nothing is known."""
    return _OF_NAME.get(name, "")

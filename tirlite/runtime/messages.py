"""The messages for mistakes of callers: each names the parameter, what was passed, and what was expected."""

from __future__ import annotations

from tirlite.diag import CallTypeError, CallValueError, Message


class ArgumentCount(Message):
    """A kernel is called with more arguments than it has parameters.

    Example: `smooth(x, y, z)` of a kernel with two parameters.
    Fix: Call it as the message shows.
    """

    raises = CallTypeError
    title = "{kernel}() takes {wanted}, and got {given}"
    help = "call it as {signature}"


class MissingArgument(Message):
    """A parameter that is not an output gets no argument.

    Example: `smooth(x)`, where the kernel has the parameters `x` and `y`.
    Fix: Pass it, or declare it as an output: `y: tl.out[...]`.
    """

    raises = CallTypeError
    title = "{kernel}() got no argument for `{name}`"
    help = "call it as {signature}"


class RepeatedArgument(Message):
    """A parameter gets an argument by position and another by name.

    Example: `smooth(x, x=x)`.
    Fix: Give it once.
    """

    raises = CallTypeError
    title = "{kernel}() got two arguments for `{name}`"
    help = "give it either by position or by name"


class UnknownArgument(Message):
    """A call names a parameter that the kernel does not have.

    Example: `smooth(x, out=y)`, where the parameter is called `y`.
    Fix: Correct the name.
    """

    raises = CallTypeError
    title = "{kernel}() has no parameter `{name}`"
    help = "call it as {signature}"


class ArgumentType(Message):
    """An argument has another type than its parameter.

    Example: A float64 array, which NumPy makes by default, for a parameter `tl.f32[n]`.
    Fix: Convert it: `x.astype(np.float32)`.
    """

    raises = CallTypeError
    title = "`{name}` must be {wanted}, and is {given}"
    help = "{hint}"

    hint: str = ""


class ArgumentRank(Message):
    """An array has more or fewer axes than its parameter.

    Example: An array of shape (4,) for `tl.f32[n, m]`.
    Fix: Reshape the array.
    """

    raises = CallValueError
    title = "`{name}` must have the shape {wanted}, and has the shape {given}"
    help = "`{name}` has {axes}"


class ArgumentShape(Message):
    """An axis has another length than its parameter, or the other arguments, ask for.

    Example: `smooth(x, y)` with arrays of shapes (4, 8) and (4, 9) for parameters `tl.f32[n, m]`.
    Fix: Give arrays that agree.
    """

    raises = CallValueError
    title = "axis {axis} of `{name}` must be {wanted}, and is {given}"
    help = "{why}"


class DimFact(Message):
    """A dim takes a value that its declaration excludes.

    Example: 100 rows for `n = tl.dim("n", multiple_of=8)`.
    Fix: Pad the array, or declare less.
    """

    raises = CallValueError
    title = "`{name}` is {value}, and was declared {fact}"
    help = "`{name}` was taken from axis {axis} of `{source}`"


class UnboundDim(Message):
    """An output is left out whose shape cannot be known.

    Example: `f(2.0)` of `def f(a: tl.f32, y: tl.out[tl.f32[n]]):`.
    Fix: Pass an array for the output, or the extent by its name: `f(2.0, n=8)`.
    """

    raises = CallTypeError
    title = "the argument `{name}` was left out, and `{dim}` in its shape is known from no other"
    help = "pass an array for `{name}`, or the extent: `{dim}=8`"


class DimByName(Message):
    """A call gives the value of a dim by name, and it is not an extent, or not that of the arrays.

    Example: `resize(x, rows=-1)`.
    Fix: Give an integer of at least 0, and none that contradicts the arrays.
    """

    raises = CallValueError
    title = "`{name}` cannot be {given}: {reason}"


class ArgumentLayout(Message):
    """An array does not lie in memory as the kernel uses it: aligned; where it is written, writable and with no element
    in two places; contiguous where the kernel has a view of its bytes or hands it to another function.

    Example: `smooth(x, np.broadcast_to(y, (3, 4)))`.
    Fix: Pass an array that is, and copy it back afterwards.
    """

    raises = CallValueError
    title = "`{name}` must be {wanted}, and is not"
    help = "{hint}"


class ArgumentRange(Message):
    """A number does not fit into the type of its parameter.

    Example: `fill(x, 300)`, where the second parameter is `tl.u8`.
    Fix: Pass a value in the range, or declare a wider type.
    """

    raises = CallValueError
    title = "`{name}` is {given}, which {dtype} does not hold"
    help = "{dtype} holds {least} to {most}"


class WorkspaceTooLarge(Message):
    """The temporaries of a call would need more memory than any machine has.

    Example: A kernel with `tl.alloc(tl.f32[n, n])` on an array of 2**40 rows that was made by broadcasting.
    Fix: Call with less.
    """

    raises = CallValueError
    title = "{kernel}() would need {size} bytes of memory for `{buffer}` and what lives beside it"
    label = "allocated here"
    help = "the most is 2**62 bytes; the sizes were {dims}"


class NegativeTemporary(Message):
    """At this call a temporary would have an extent below zero.

    Example: `tl.alloc(tl.f32[n - 10])` at a call with 3 rows.
    Fix: Call with larger arrays, or write `max(n - 10, 0)`.
    """

    raises = CallValueError
    title = "{kernel}() would allocate `{buffer}` with the extent {extent}"
    label = "allocated here"
    help = "the sizes were {dims}"


class NoWorkspace(Message):
    """The operating system refuses the memory for a call's temporaries.

    It is asked for all of them when the kernel is entered, reached or not. With `debug=True` a kernel asks for each
    where it is declared, so that one which is not reached needs none.

    Example: A kernel whose plan needs more bytes than the machine has.
    Fix: Call with less, or look at `kernel.plan` for what takes the bytes.
    """

    raises = CallValueError
    title = "{kernel}() needs {size} bytes of memory for its temporaries, and there are not so many"
    label = "`{buffer}` takes {bytes} of them"


class NegativeOutput(Message):
    """An output that is left out would have an extent below zero.

    Example: `y: tl.out[tl.f32[n - 10]]` at a call with 3 rows.
    Fix: Call with larger arrays, or correct the shape.
    """

    raises = CallValueError
    title = "{kernel}() would allocate `{name}` with the shape {shape}"
    help = "`{name}` is declared with the shape {declared}"


class OutputWithoutValue(Message):
    """An output is left out, and the kernel does nothing but update it: it would have no value to begin with.

    Example: `total[0] += x[i]` in a loop, with no `total[0] = 0` before, and a call without `total`.
    Fix: Store a first value in the kernel, or give an array that holds one.
    """

    raises = CallValueError
    title = "{kernel}() is not given `{name}`, which it updates and never gives a first value"
    help = "store one first, as in `{element} = 0`, or give an array"


class NoOutput(Message):
    """The operating system refuses the memory for an output that is left out.

    Example: An output of shape (n, n) at a call with a million rows.
    Fix: Call with less.
    """

    raises = CallValueError
    title = "{kernel}() would allocate {size} bytes for `{name}`, and there are not so many"

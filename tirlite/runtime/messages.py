"""What a caller can do wrong: one message each, which names the parameter, what came, and what was wanted."""

from __future__ import annotations

from tirlite.diag import CallTypeError, CallValueError, Message


class ArgumentCount(Message):
    code = "argument-count"
    raises = CallTypeError
    title = "{kernel}() takes {wanted}, and got {given}"
    help = "call it as {signature}"

    kernel: str
    wanted: str
    given: str
    signature: str


class MissingArgument(Message):
    code = "missing-argument"
    raises = CallTypeError
    title = "{kernel}() got no argument for `{name}`"
    help = "call it as {signature}"

    kernel: str
    name: str
    signature: str


class RepeatedArgument(Message):
    code = "repeated-argument"
    raises = CallTypeError
    title = "{kernel}() got two arguments for `{name}`"
    help = "give it by position or by name"

    kernel: str
    name: str


class UnknownArgument(Message):
    code = "unknown-argument"
    raises = CallTypeError
    title = "{kernel}() has no parameter `{name}`"
    help = "call it as {signature}"

    kernel: str
    name: str
    signature: str


class ArgumentType(Message):
    code = "argument-type"
    raises = CallTypeError
    title = "`{name}` must be {wanted}, and is {given}"
    help = "{hint}"

    name: str
    wanted: str
    given: str
    hint: str = ""


class ArgumentRank(Message):
    code = "argument-rank"
    raises = CallValueError
    title = "`{name}` must have the shape {wanted}, and has the shape {given}"
    help = "it has {axes} axes"

    name: str
    wanted: str
    given: str
    axes: int


class ArgumentShape(Message):
    code = "argument-shape"
    raises = CallValueError
    title = "axis {axis} of `{name}` must be {wanted}, and is {given}"
    help = "{why}"

    name: str
    axis: int
    wanted: str
    given: int
    why: str


class DimFact(Message):
    code = "dim-fact"
    raises = CallValueError
    title = "`{name}` is {value}, and was declared {fact}"
    help = "`{name}` was taken from axis {axis} of `{source}`"

    name: str
    value: int
    fact: str
    axis: int
    source: str


class UnboundDim(Message):
    code = "unbound-dim"
    raises = CallTypeError
    title = "the argument `{name}` was left out, and `{dim}` in its shape is known from no other"
    help = "pass an array for `{name}`"

    name: str
    dim: str


class ArgumentLayout(Message):
    code = "argument-layout"
    raises = CallValueError
    title = "`{name}` must be {wanted}, and is not"
    help = "{hint}"

    name: str
    wanted: str
    hint: str


class ArgumentRange(Message):
    code = "argument-range"
    raises = CallValueError
    title = "`{name}` is {given}, which {dtype} does not hold"
    help = "{dtype} holds {least} to {most}"

    name: str
    given: str
    dtype: str
    least: str
    most: str


class WorkspaceTooLarge(Message):
    code = "workspace-too-large"
    raises = CallValueError
    title = "{kernel}() would need {size} bytes of memory for `{buffer}` and what lives beside it"
    help = "the most is 2**62 bytes; the sizes were {dims}"

    kernel: str
    size: str
    buffer: str
    dims: str


class NegativeSize(Message):
    code = "negative-size"
    raises = CallValueError
    title = "{kernel}() would allocate `{buffer}` with the extent {extent}"
    help = "the sizes were {dims}"

    kernel: str
    buffer: str
    extent: int
    dims: str


class NoWorkspace(Message):
    code = "no-workspace"
    raises = CallValueError
    title = "{kernel}() needs {size} bytes of memory for its temporaries, and there are not so many"

    kernel: str
    size: int


class NegativeOutput(Message):
    code = "negative-output"
    raises = CallValueError
    title = "{kernel}() would allocate `{name}` with the shape {shape}"
    help = "`{name}` is declared with the shape {declared}"

    kernel: str
    name: str
    shape: str
    declared: str


class NoOutput(Message):
    code = "no-output"
    raises = CallValueError
    title = "{kernel}() would allocate {size} bytes for `{name}`, and there are not so many"

    kernel: str
    name: str
    size: int

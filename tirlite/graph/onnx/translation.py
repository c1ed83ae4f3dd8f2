"""Translates nodes of a model to values of a graph: each by the importer of its operator, in the model's order."""

from __future__ import annotations

from collections import ChainMap
from collections.abc import Callable, Iterable, Mapping, MutableMapping, Sequence
from dataclasses import field
from enum import Enum
from importlib import import_module
from types import MappingProxyType
from typing import Any, TypeAlias

from tirlite.diag import GraphMessage, Message, Source, Span, TirliteError
from tirlite.graph.builder.builder import Builder
from tirlite.graph.demands import Checkpoint
from tirlite.graph.expr import BranchTypes, Expr
from tirlite.graph.onnx.contents import contents
from tirlite.graph.onnx.folding import Folding
from tirlite.graph.onnx.narrow import NarrowType, NarrowValue
from tirlite.graph.onnx.node import MALFORMED, OnnxNode, Subgraph, Unsupported, narrow_kind, reason_of
from tirlite.graph.onnx.standard import has_standard_function, standard_function, unlike_inputs
from tirlite.graph.onnx.tensors import TensorReader
from tirlite.graph.op import BadAttribute, OperandCount, OperandType, ShapeMismatch, ShapeUndecided
from tirlite.record import record, replace
from tirlite.sizes import Size, as_size
from tirlite.sizes.poly import DivisionByZero

# The opset of the standard operators that other importers are composed of.
NEWEST = 24
# As in onnx.AttributeProto.AttributeType.
_FLOAT, _INT, _STRING, _TENSOR, _GRAPH, _FLOATS, _INTS, _STRINGS = range(1, 9)


def attributes_of(
    proto: Any, read: TensorReader, outer: Mapping[str, object], span: Span | None = None
) -> dict[str, object]:
    """The attributes of a node: numbers, texts, constants, subgraphs, and tuples of these.

    `outer` are the attributes of the function that the node is in. Raises Unsupported for values of other kinds.
    """
    found: dict[str, object] = {}
    for each in proto.attribute:
        if each.ref_attr_name:
            if each.ref_attr_name in outer:
                found[each.name] = outer[each.ref_attr_name]
        else:
            found[each.name] = _value(each, read, span)
    return found


def _value(proto: Any, read: TensorReader, span: Span | None) -> object:
    kind = proto.type
    if kind == _FLOAT:
        return float(proto.f)
    if kind == _INT:
        return int(proto.i)
    if kind == _STRING:
        return _text(proto.s)
    if kind == _TENSOR:
        return read.constant(proto.t, proto.t.name, span)
    if kind == _GRAPH:
        return Subgraph(proto.g)
    if kind == _FLOATS:
        return tuple(map(float, proto.floats))
    if kind == _INTS:
        return tuple(map(int, proto.ints))
    if kind == _STRINGS:
        return tuple(map(_text, proto.strings))
    raise Unsupported(f"attribute `{proto.name}` is of kind {kind}")


def _text(given: bytes) -> str:
    return given.decode("utf-8", "replace")


Result: TypeAlias = "Expr | NarrowValue | None"
Results: TypeAlias = "Expr | NarrowValue | Sequence[Result]"
Importer: TypeAlias = "Callable[[Translation, OnnxNode], Results]"


class Lost(Enum):
    """Stands for a value that could not be built, which was recorded."""

    LOST = 0


# None is an operand that the caller of a function omitted.
Named: TypeAlias = "Expr | NarrowValue | Lost | None"
Names: TypeAlias = "MutableMapping[str, Named]"


class UnknownOnnxValue(GraphMessage):
    """A node of an ONNX model uses a name that nothing before it computes.

    Example: A model whose only node is `y = Relu(z)`, and whose only input is `x`.
    Fix: Export the model again, with all its constants, and with its nodes in the order of computation.
    """

    code = "onnx-unknown-value"
    title = "nothing computes `{name}` before it is used"
    label = "used here"
    related_label = "computed here"
    help = "{advice}"

    name: str
    advice: str


_IN_ORDER = "list nodes after those whose results they use"

# Errors in one node: later nodes are read anyway, so that all errors are reported at once.
_OF_A_NODE = (BadAttribute, BranchTypes, DivisionByZero, OperandCount, OperandType, ShapeMismatch, ShapeUndecided)


@record
class Missing:
    """A node that has no counterpart: its number from 1 on (0: it is none), its text, and why."""

    number: int
    node: str
    why: str


@record(eq=False)
class Dialect:
    """The meaning of operators for a node: the version of each domain, and the model's functions."""

    versions: Mapping[str, int]
    functions: Mapping[tuple[str, str], Any]
    attributes: Mapping[str, object] = field(default_factory=dict)


class Translation:
    """The state while one model is read. Importers build with `b`, fold with `fold`, count with `spent`."""

    def __init__(self, builder: Builder, importers: Mapping[tuple[str, str], Importer], read: TensorReader) -> None:
        self.b = builder
        self.spent = read.spent
        self.fold = Folding(read.spent, builder.demands)
        self.missing: list[Missing] = []
        self.refused: list[Message] = []
        # The indices of nonzero elements of a tensor: shared, so that they have the same run-time extent.
        self.places: dict[Expr, Expr] = {}
        self._extents: dict[tuple[Expr, Size | None], Size] = {}
        self._found: dict[Expr, Size] = {}
        self._importers = importers
        self._read = read
        self._names: Names = {}
        self._dialect = Dialect({}, {})
        self._depth = 0

    @property
    def is_sure(self) -> bool:
        """Whether the current nodes run in each call: they are in no branch and no loop."""
        return not self.b.demands.inside

    def graph(self, proto: Any, names: Names, dialect: Dialect, source: str, wanted: Sequence[str]) -> None:
        """Adds the values of all nodes that the wanted names depend on to `names`.

        Raises GraphError where these are very many, with those of graphs and functions inside.
        """
        before = self._names, self._dialect
        self._names, self._dialect = names, dialect
        try:
            self._initializers(proto, names)
            self._nodes(proto.node, names, wanted, source)
        finally:
            self._names, self._dialect = before

    def extent(self, value: Expr, most: Size | None, name: str = "wanted") -> Size:
        """The value of a scalar integer as a size; if it is only found during the run, from 0 to `most`, if given."""
        number = self.fold(self.b.reshape(value, ()))
        known = contents(number)
        if known is not None:
            return as_size(known.item())
        if (number, most) not in self._extents:
            self._extents[number, most] = self.b.extent(number, most, name)
            if most is None and self.is_sure:
                self._found[number] = self._extents[number, most]
        return self._extents[number, most]

    def found(self, value: Expr) -> Size | None:
        """The existing extent that equals a scalar integer in each call, or None."""
        return self._found.get(self.fold(self.b.reshape(value, ())))

    def inside(self, body: Subgraph, operands: Sequence[Expr], node: OnnxNode, *, runs: bool = False) -> list[Expr]:
        """The results of the graph in an attribute, which sees all names around it.

        With `runs` it runs whenever the node does. Raises Unsupported where something in it has no counterpart, which
        is noted.
        """
        proto = body.proto
        names: Names = ChainMap({}, self._names)
        if len(operands) != len(proto.input):
            raise Unsupported(f"its body takes {len(proto.input)} operands, and there are {len(operands)}")
        names.update({each.name: value for each, value in zip(proto.input, operands, strict=True)})
        wanted = [each.name for each in proto.output]
        self.b.demands.inside += not runs
        try:
            self.graph(proto, names, self._dialect, f"body of {node.name or node.op}", wanted)
        finally:
            self.b.demands.inside -= not runs
        return _named(names, wanted)

    def standard(
        self,
        node: OnnxNode,
        op: str,
        operands: Sequence[Expr | None],
        attributes: Mapping[str, object] = MappingProxyType({}),
        outputs: Sequence[str] = ("y",),
        *,
        version: int = NEWEST,
    ) -> list[Any]:
        """The results of a standard operator in the place of a node; None for a result without a name."""
        proto = None
        if ("", op) not in self._importers:
            names = [f"x{number}" if each is not None else "" for number, each in enumerate(operands)]
            proto = import_module("onnx.helper").make_node(op, names, outputs, **attributes)
        parts = (node.name, tuple(operands), tuple(outputs), attributes, node.span, proto, (None,) * len(operands))
        return self._results(OnnxNode(op, "", version, *parts, asked=node.asked))

    def function(self, proto: Any, node: OnnxNode) -> list[Result]:
        """The results of a function that the model, or the standard, defines by other operators."""
        names: Names = dict.fromkeys(proto.input)
        names.update(zip(proto.input, node.given, strict=False))
        attributes = {each.name: each for each in proto.attribute_proto}
        defaults = attributes_of(_Holder(attributes.values()), self._read, {})
        versions = {each.domain: each.version for each in proto.opset_import} or dict(self._dialect.versions)
        dialect = Dialect(versions, self._dialect.functions, {**defaults, **node.attributes})
        before = self._names, self._dialect
        self._names, self._dialect = names, dialect
        try:
            self._nodes(proto.node, names, list(proto.output), f"function {proto.name}")
        finally:
            self._names, self._dialect = before
        wanted = [name if node.wants(number) else "" for number, name in enumerate(proto.output)]
        return [_found(names, name) if name else None for name in wanted]

    def _initializers(self, proto: Any, names: Names) -> None:
        for each in proto.initializer:
            try:
                names[each.name] = self._read.constant(each, each.name)
            except Unsupported as error:
                self.missing.append(Missing(0, f"initializer `{each.name}`", str(error)))
                names[each.name] = Lost.LOST
        for each in proto.sparse_initializer:
            self.missing.append(Missing(0, f"initializer `{each.values.name}`", "it is sparse"))
            names[each.values.name] = Lost.LOST

    def _nodes(self, nodes: Sequence[Any], names: Names, outputs: Iterable[str], source: str) -> None:
        text = Source(source, tuple(map(_line, nodes)))
        needed = _needed(nodes, outputs)
        self._depth += 1
        try:
            for number, proto in enumerate(nodes):
                if needed[number]:
                    span = _line_span(text, number)
                    self.spent.node(self._depth, span)
                    for name in proto.input:
                        if name and name not in names:
                            raise _unknown(name, nodes, number, text).error()
                    self._node(proto, names, span)
        finally:
            self._depth -= 1

    def _node(self, proto: Any, names: Names, span: Span) -> None:
        made: Sequence[Named] = [Lost.LOST] * len(proto.output)
        try:
            if not any(names[name] is Lost.LOST for name in proto.input if name):
                node = self._renewed(self._read_node(proto, names, span))
                with self.b.at(span, proto.output[0] if proto.output else ""):
                    made = self._results(node)
            else:
                self._check_operator(proto)
        except TirliteError as error:
            if not all(isinstance(each, _OF_A_NODE) for each in error.messages):
                raise
            self.refused += [each.replaced(span=each.span or span) for each in error.messages]
        except (Unsupported, *MALFORMED) as error:
            why = str(error) if isinstance(error, Unsupported) else f"it is malformed: {reason_of(error)}"
            self.missing.append(Missing(span.line, f"`{_line(proto)}`", why))
        for name, value in zip(proto.output, made, strict=False):
            if name:
                names[name] = value

    def _check_operator(self, proto: Any) -> None:
        """Raises Unsupported where an operator has no counterpart, whatever its operands are."""
        node = self._read_node(proto, {}, None)
        key = (node.domain, node.op)
        if key not in self._dialect.functions and key not in self._importers and not has_standard_function(node):
            raise Unsupported(why_refused(*key))

    def _read_node(self, proto: Any, names: Names, span: Span | None) -> OnnxNode:
        domain = "" if proto.domain == "ai.onnx" else proto.domain
        versions = self._dialect.versions
        version = versions.get(domain, versions.get("ai.onnx", 0) if not domain else 0)
        given = [names.get(name) for name in proto.input]
        operands = tuple(None if each is None or isinstance(each, Lost) else plain(each) for each in given)
        kinds = tuple(each.kind if isinstance(each, NarrowValue) else None for each in given)
        attributes = attributes_of(proto, self._read, self._dialect.attributes, span)
        outputs = tuple(proto.output)
        return OnnxNode(proto.op_type, domain, version, proto.name, operands, outputs, attributes, span, proto, kinds)

    def mark(self) -> tuple[Checkpoint, int, int]:
        """The current state, for `back_to`."""
        return self.b.demands.mark(), len(self.missing), len(self.refused)

    def back_to(self, mark: tuple[Checkpoint, int, int]) -> None:
        """Undoes all changes since `mark`, for a part of the model that is dropped or imported again."""
        asked, missing, refused = mark
        self.b.demands.back_to(asked)
        del self.missing[missing:], self.refused[refused:]

    def _renewed(self, node: OnnxNode) -> OnnxNode:
        """The node with its operands in their current extents."""
        if (renewal := self.b.renewal) is None or not renewal.demands.has_changed:
            return node
        name = next(iter(node.outputs), "")
        operands = tuple(None if each is None else renewal.value(each, name, node.span) for each in node.operands)
        return replace(node, operands=operands)

    def _results(self, node: OnnxNode) -> list[Result]:
        own = self._dialect.functions.get((node.domain, node.op))
        if own is not None:
            return self.function(own, node)
        key = (node.domain, node.op)
        importer = self._importers.get(key)
        if importer is None and key not in REFUSED and (defined := standard_function(node)) is not None:
            return self.function(defined, node)
        if importer is None:
            raise Unsupported(why_refused(*key))
        moved = narrow_kind(node)
        made = importer(self, node)
        if why := unlike_inputs(node):
            raise Unsupported(why)
        if node.domain == "com.microsoft":  # the standard has no schema to check these nodes against
            node.check_asked()
        results = [made] if isinstance(made, Expr | NarrowValue) else list(made)
        return [self._folded(each, moved) for each in results]

    def _folded(self, result: Result, moved: NarrowType | None) -> Result:
        """The result, folded; where elements of a narrow type were moved, as one of that type."""
        if isinstance(result, NarrowValue):
            return NarrowValue(self.fold(result.value), result.kind)
        if result is None:
            return None
        made = self.fold(result)
        return made if moved is None else NarrowValue(made, moved)


@record
class _Holder:
    """Something with attributes."""

    attribute: Iterable[Any]


def plain(value: Expr | NarrowValue) -> Expr:
    """The value in the graph."""
    return value.value if isinstance(value, NarrowValue) else value


def _found(names: Names, name: str) -> Expr | NarrowValue:
    value = names.get(name)
    if not isinstance(value, Expr | NarrowValue):
        raise Unsupported("something inside of it has no counterpart")
    return value


def _named(names: Names, wanted: Sequence[str]) -> list[Expr]:
    found = [_found(names, name) for name in wanted]
    narrow = [each.kind.name for each in found if isinstance(each, NarrowValue)]
    if narrow:
        raise Unsupported(f"its body gives elements of {narrow[0]}")
    return [plain(each) for each in found]


def _line_span(text: Source, number: int) -> Span:
    return Span(text, number + 1, 0, number + 1, max(len(text.lines[number]), 1))


def _unknown(name: str, nodes: Sequence[Any], number: int, text: Source) -> UnknownOnnxValue:
    """The error for a node that uses a name without a value."""
    makers = {output: maker for maker, each in enumerate(nodes) for output in each.output}
    span, maker = _line_span(text, number), makers.get(name)
    if maker is None:
        return UnknownOnnxValue(name, "no input, constant or node here has this name", span=span)
    waiting, todo = set[int](), [maker]
    while todo:
        if (each := todo.pop()) not in waiting:
            waiting.add(each)
            todo += [makers[used] for used in nodes[each].input if used in makers]
    advice = "the results of nodes must not depend on themselves" if number in waiting else _IN_ORDER
    return UnknownOnnxValue(name, advice, span=span, related=None if maker == number else _line_span(text, maker))


def _needed(nodes: Sequence[Any], outputs: Iterable[str]) -> list[bool]:
    """The nodes that the outputs depend on. Graphs inside of nodes may use any name."""
    wanted = set(outputs)
    found = [False] * len(nodes)
    for number in range(len(nodes) - 1, -1, -1):
        node = nodes[number]
        if wanted.intersection(node.output):
            found[number] = True
            wanted.update(node.input)
            for each in node.attribute:
                wanted.update(_free_names(each.g))
                for graph in each.graphs:
                    wanted.update(_free_names(graph))
    return found


def _free_names(graph: Any) -> set[str]:
    """All names that a graph and its subgraphs use."""
    found: set[str] = set()
    stack = [graph]
    while stack:
        top = stack.pop()
        found.update(each.name for each in top.output)
        for node in top.node:
            found.update(node.input)
            stack += [each.g for each in node.attribute if each.HasField("g")]
    return found


def _line(proto: Any) -> str:
    text = f"{', '.join(proto.output)} = {proto.op_type}({', '.join(proto.input)})"
    text = f"{text}  # {proto.name}" if proto.name else text
    return text if len(text) <= 160 else f"{text[:157]}..."


_REASONS = (
    (
        "its results are random",
        "Bernoulli Multinomial RandomNormal RandomNormalLike RandomUniform RandomUniformLike",
    ),
    (
        "there are no sequences of tensors here",
        "ConcatFromSequence SequenceAt SequenceConstruct SequenceEmpty SequenceErase SequenceInsert SequenceLength"
        " SequenceMap SplitToSequence",
    ),
    ("there are no optional values here", "Optional OptionalGetElement OptionalHasElement"),
    ("there are no texts here", "RegexFullMatch StringConcat StringNormalizer StringSplit"),
    ("images in files are not decoded here", "ImageDecoder"),
)
REFUSED: Mapping[tuple[str, str], str] = MappingProxyType(
    {("", op): why for why, ops in _REASONS for op in ops.split()}
)


def why_refused(domain: str, op: str) -> str:
    """Why an operator has no counterpart."""
    return REFUSED.get((domain, op), f"there is no operator {domain or 'ai.onnx'}.{op} here")

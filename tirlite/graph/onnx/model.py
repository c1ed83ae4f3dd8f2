"""Reads a model that is not in the cache as a function, for `from_onnx`."""

from __future__ import annotations

from collections.abc import Iterable, Mapping, Sequence
from importlib import import_module
from math import prod
from os import PathLike
from pathlib import Path
from typing import Any

import numpy.typing as npt

from tirlite.diag import GraphError, GraphMessage, Message
from tirlite.graph.aot.names import name_of
from tirlite.graph.builder.builder import Builder
from tirlite.graph.demands import Demands
from tirlite.graph.expr import Expr, Var
from tirlite.graph.extents import BadGraphExtent
from tirlite.graph.function import Function
from tirlite.graph.known.import_options import FileUsed, ImportOptions
from tirlite.graph.onnx.budget import Budget, Spent
from tirlite.graph.onnx.importers.table import IMPORTERS
from tirlite.graph.onnx.narrow import DTYPES, NARROW, NarrowValue, dtype_name
from tirlite.graph.onnx.node import MALFORMED, reason_of
from tirlite.graph.onnx.standard import Forms
from tirlite.graph.onnx.tensors import TensorReader
from tirlite.graph.onnx.translation import Dialect, Lost, Missing, Names, Translation
from tirlite.graph.onnx.weights import FileTensors, parted
from tirlite.graph.types import TensorType
from tirlite.ir import DType
from tirlite.names import UniqueNames
from tirlite.show import shown
from tirlite.sizes import Dim, Proof, Size, SizeLike, as_size, prove_eq
from tirlite.sizes.poly import atom_of


def versions_of(model: Any, name: str) -> dict[str, int]:
    """The version of each domain's operators. Raises GraphError where there are two, or none, or one not known."""
    found: dict[str, int] = {}
    for each in model.opset_import:
        domain = "" if each.domain == "ai.onnx" else each.domain
        if found.setdefault(domain, each.version) != each.version:
            raise BadOnnxModel(name, f"it has operators of version {found[domain]} and of {each.version}").error()
    newest = import_module("onnx.defs").onnx_opset_version()
    if found.get("", 0) > newest:
        why = f"it has operators of version {found['']}, and those up to {newest} are known"
        raise BadOnnxModel(name, why).error()
    used = next((node for node in model.graph.node if node.domain in ("", "ai.onnx")), None)
    if "" not in found and used is not None:
        raise BadOnnxModel(name, f"it does not tell the version of its operators, as of {used.op_type}").error()
    return found


def check_nodes(graph: Any, versions: Mapping[str, int], name: str) -> None:
    """Raises GraphError if the graph contradicts itself or the standard's rules for its operators.

    A name may have two meanings, a constant another type than its input, a node an attribute that nothing asks for.
    """
    stack, forms = [graph], Forms(versions)
    while stack:
        top = stack.pop()
        meanings: dict[str, str] = {}
        for each in top.input:
            _mean(meanings, each.name, f"an input called `{each.name}`", name)
        stored: dict[str, str] = {}
        for each in top.initializer:
            _mean(stored, each.name, f"a constant called `{each.name}`", name)
        meanings, called = {**stored, **meanings}, dict[str, str]()
        for number, node in enumerate(top.node, 1):
            if node.name:
                _mean(called, node.name, f"node {number}, {node.op_type}, called `{node.name}`", name)
            if why := forms.contradicted(node):
                raise BadOnnxModel(name, f"node {number}, {node.op_type}: {why}").error()
            for output in filter(None, node.output):
                _mean(meanings, output, f"node {number}, {node.op_type}, which computes `{output}`", name)
            stack += [attribute.g for attribute in node.attribute if attribute.HasField("g")]
    declared = {each.name: each.type.tensor_type for each in graph.input}
    for each in graph.initializer:
        if each.name in declared:
            _check_constant(each, declared[each.name], name)


def _mean(meanings: dict[str, str], called: str, what: str, name: str) -> None:
    if called in meanings:
        raise BadOnnxModel(name, f"there are {meanings[called]}, and {what}").error()
    meanings[called] = what


def _check_constant(tensor: Any, declared: Any, name: str) -> None:
    extents = [each.dim_value if each.HasField("dim_value") else None for each in declared.shape.dim]
    differs = declared.elem_type not in (0, tensor.data_type)
    if declared.HasField("shape"):
        differs |= len(extents) != len(tensor.dims)
        differs |= any(known not in (None, -1, is_) for known, is_ in zip(extents, tensor.dims, strict=False))
    if differs:
        of = f"{dtype_name(tensor.data_type)}{list(tensor.dims)}"
        shown = ", ".join("?" if each is None else str(each) for each in extents)
        why = f"constant `{tensor.name}` is {of}, and declared as {dtype_name(declared.elem_type)}[{shown}]"
        raise BadOnnxModel(name, why).error()


def check_declared(declared: Iterable[Any], values: Mapping[str, object], name: str, *, only_types: bool) -> None:
    """Raises GraphError where a value is of another type than the model declares it, for all values of its dims."""
    for each in declared:
        value, given = values.get(each.name), each.type.tensor_type
        if not isinstance(value, Expr) or not isinstance(value.type, TensorType) or given.elem_type not in DTYPES:
            continue
        differs = DTYPES[given.elem_type] != value.dtype
        if given.HasField("shape") and not only_types:
            extents = [dim.dim_value if dim.HasField("dim_value") else None for dim in given.shape.dim]
            # Some exporters declare wrong numbers of axes, which are ignored.
            pairs = zip(extents, value.shape, strict=True) if len(extents) == len(value.shape) else ()
            differs |= any(a is not None and a >= 0 and prove_eq(a, b) is Proof.NO for a, b in pairs)
        if differs:
            shown = ", ".join(str(dim.dim_value) if dim.HasField("dim_value") else "?" for dim in given.shape.dim)
            why = f"`{each.name}` is {value.type}, and is declared as {dtype_name(given.elem_type)}[{shown}]"
            raise BadOnnxModel(name, why, span=value.span).error()


class BadOnnxModel(GraphMessage):
    """A file is not an ONNX model, or contradicts itself.

    Example: `tl.from_onnx("notes.txt")`.
    Fix: Give the path of a model that an exporter wrote.
    """

    code = "onnx-bad-model"
    title = "`{model}`: {why}"


# Before version 6, operators differ in more than the rules of broadcasting.
_OLDEST = 6
_MOST_BYTES = 1 << 62
BUDGET = Budget()


class NoOnnxPackage(GraphMessage):
    """ONNX models were to be read without the package that reads them.

    Example: `tl.from_onnx("model.onnx")` where `onnx` is not installed.
    """

    code = "onnx-not-installed"
    title = "reading `{model}` takes the package onnx, which is not installed"
    help = "run `pip install tirlite[onnx]`"


class UnsupportedOnnx(GraphMessage):
    """A model has nodes that have no counterpart in a graph. All are named.

    Example: A model with a node of operator `ImageDecoder`.
    Fix: Export the model with other operators, or cut these nodes off.
    """

    code = "onnx-unsupported"
    title = "`{model}` has {count} that cannot be imported:\n{nodes}"


def read_model(source: object, options: ImportOptions) -> tuple[Function, list[FileUsed]]:
    """The model as a function, and the other files that it has data in. Raises GraphError, see `from_onnx`."""
    model, name, folder, weights = _loaded(source)
    spent = Spent(name, BUDGET)
    model_dims = ModelDims(name, options.dims)
    try:
        reader = TensorReader(spent, folder, {} if weights is None else weights.arrays(model.graph.initializer))
        function = _Import(model, reader, options.shapes, options.constants, model_dims).function(options.outputs)
    except MALFORMED as error:
        raise BadOnnxModel(name, f"it is malformed: {reason_of(error)}").error() from error
    return function, spent.files


def dim_names_of(source: str | PathLike[str]) -> dict[str, str]:
    """The identifier that each name of an extent becomes, in the inputs of a model. Raises GraphError."""
    graph = _loaded(source)[0].graph
    known = {each.name for each in graph.initializer}
    return dim_names(each for each in graph.input if each.name not in known)


def _loaded(source: object) -> tuple[Any, str, Path | None, FileTensors | None]:
    name = str(source) if isinstance(source, str | PathLike) else "model"
    try:
        onnx = import_module("onnx")
    except ImportError:
        raise NoOnnxPackage(name).error() from None
    if isinstance(source, onnx.ModelProto):
        return source, source.graph.name or name, None, None
    path = Path(name) if isinstance(source, str | PathLike) else None
    model = onnx.ModelProto()
    try:
        data, weights = (source, None) if path is None else parted(path)
        model.ParseFromString(data)
    except OSError as error:
        raise BadOnnxModel(name, error.strerror or str(error)).error() from None
    except Exception:
        # The exceptions of the protobuf library depend on its build.
        raise BadOnnxModel(name, "it is not an ONNX model, or only a part of one").error() from None
    return model, name, None if path is None else path.parent, weights


class _Import:
    """The import of one model."""

    def __init__(
        self,
        model: Any,
        reader: TensorReader,
        shapes: Mapping[str, Sequence[SizeLike]],
        constants: Mapping[str, npt.ArrayLike],
        dims: ModelDims,
    ) -> None:
        self.model = model
        self.shapes = shapes
        self.constants = constants
        self.name = reader.model
        graph = model.graph
        self.demands = Demands()
        self.builder = Builder(name_of(graph.name or Path(self.name).stem or "model"), demands=self.demands)
        self.read = reader
        self.dims = dims
        self.missing: list[Missing] = []

    def function(self, outputs: Sequence[str] | None) -> Function:
        graph = self.model.graph
        versions = versions_of(self.model, self.name)
        check_nodes(graph, versions, self.name)
        if not graph.output:
            raise BadOnnxModel(self.name, "it has no outputs").error()
        if versions.get("", _OLDEST) < _OLDEST:
            self.missing.append(Missing(0, "all nodes", f"operators of version {versions['']}, before {_OLDEST}"))
        names: Names = {}
        known = {each.name for each in graph.initializer}
        for each in graph.input:
            if each.name not in known:
                names[each.name] = self._input(each)
        self._check_names(names)
        stored = [each for each in graph.initializer if not each.data_location and each.data_type in DTYPES]
        self.read.spent.store(None, sum(prod(each.dims) * DTYPES[each.data_type].stored.itemsize for each in stored))
        functions = {(each.domain, each.name): each for each in self.model.functions}
        translation = Translation(self.builder, IMPORTERS, self.read)
        wanted = [each.name for each in graph.output] if outputs is None else list(outputs)
        translation.graph(graph, names, Dialect(versions, functions), self.name, wanted)
        self.missing += translation.missing
        self._check_missing(translation.refused)
        # If the caller gives other extents, those that the model declares no longer hold.
        is_bound = bool(self.shapes or self.constants) or self.dims.has_numbers
        check_declared((*graph.output, *graph.value_info), names, self.name, only_types=is_bound)
        function = self._finished(names, wanted)
        return function.replaced(body=translation.fold(function.body)) if self.demands.has_changed else function

    def _check_names(self, inputs: Iterable[str]) -> None:
        """Raises GraphError for shapes, constants and dims of names that the model does not have."""
        known = list(inputs)
        for name in (*self.shapes, *self.constants):
            if name not in known:
                has = ", ".join(known) or "none"
                raise BadOnnxModel(self.name, f"there is no input `{name}`; it has {has}").error()
        self.dims.check()

    def _finished(self, names: Names, wanted: Sequence[str]) -> Function:
        results: dict[str, Expr] = {}
        known = [each.value if isinstance(each, NarrowValue) else each for each in names.values()]
        taken = {name_of(value.name) for value in known if isinstance(value, Var)}
        for name in wanted:
            given = names.get(name)
            value = given.value if isinstance(given, NarrowValue) else given
            if not isinstance(value, Expr):
                raise BadOnnxModel(self.name, f"nothing computes its output `{name}`").error()
            shown = name
            while name_of(shown) in taken:
                shown += "_out"
            taken.add(name_of(shown))
            results[shown] = value
        return self.builder.function(results)

    def _check_missing(self, refused: Sequence[Message]) -> None:
        """Raises GraphError with all reasons why the model cannot be read."""
        if not self.missing:
            if refused:
                raise GraphError(*refused)
        else:
            lines = [
                f"  {f'node {each.number}: ' if each.number else ''}{each.node}: {each.why}" for each in self.missing
            ]
            count = f"{len(lines)} part{'s' if len(lines) > 1 else ''}"
            raise GraphError(*refused, UnsupportedOnnx(self.name, count, "\n".join(lines)))

    def _input(self, proto: Any) -> Expr | NarrowValue | Lost:
        kind = NARROW.get(proto.type.tensor_type.elem_type)
        made = self._parameter(proto, DTYPES if kind is None else {proto.type.tensor_type.elem_type: kind.stored})
        return NarrowValue(made, kind) if kind is not None and isinstance(made, Expr) else made

    def _parameter(self, proto: Any, types: Mapping[int, DType]) -> Expr | Lost:
        shape = self.shapes.get(proto.name)
        kind = proto.type.WhichOneof("value")
        given = proto.type.tensor_type
        if kind != "tensor_type" or given.elem_type not in types:
            what = kind if kind != "tensor_type" else f"tensor of {dtype_name(given.elem_type)}"
            self.missing.append(Missing(0, f"input `{proto.name}`", f"it is a {what}" if what else "it has no type"))
            return Lost.LOST
        if proto.name in self.constants:
            return self.builder.constant(self.constants[proto.name], types[given.elem_type], proto.name)
        if shape is None and not given.HasField("shape"):
            self.missing.append(Missing(0, f"input `{proto.name}`", "its number of axes is not known; give `shapes`"))
            return Lost.LOST
        extents = (
            [self.dims.extent(proto.name, number, each) for number, each in enumerate(given.shape.dim)]
            if shape is None
            else list(shape)
        )
        of = TensorType(tuple(extents), types[given.elem_type])  # type: ignore[arg-type]
        size = of.bytes
        if isinstance(size, int) and size >= _MOST_BYTES:
            raise BadOnnxModel(self.name, f"input `{proto.name}` has {size} bytes").error()
        return self.builder.input(proto.name, of)


# Exporters write these for an unknown extent.
_ANONYMOUS = ("", "?", "-1", "None")


class ModelDims:
    """The dims of one model, by the names in it and by the identifiers that these become."""

    def __init__(self, model: str, given: Mapping[str, SizeLike]) -> None:
        """`given` tells what dims are: numbers, dims with facts, or other sizes, by either name."""
        self._model = model
        self._given = {name: _size_of(size) for name, size in given.items()}
        self._identifiers: dict[object, str] = {}
        self._names = UniqueNames()
        self._told: set[str] = set()

    def extent(self, of: str, axis: int, proto: Any) -> Size:
        """One extent of the input of this name: a number, or the dim that it names; one of its own where it does not.

        Raises GraphError for a number below 0 that is not -1.
        """
        if proto.HasField("dim_value") and proto.dim_value != -1:
            if proto.dim_value < 0:
                raise BadOnnxModel(self._model, f"input `{of}` has extent {proto.dim_value} along axis {axis}").error()
            return int(proto.dim_value)
        raw = proto.dim_param
        called = self._identifier((of, axis), f"{of}_{axis}") if raw in _ANONYMOUS else self._identifier(raw, raw)
        for name in (raw, called):
            if name in self._given:
                self._told.add(name)
                given = self._given[name]
                facts = atom_of(given, Dim) if name != called else ()
                # A dim of the model's name, which may be no identifier, is the one of this extent.
                own = [Dim(called, dim.min, dim.max, dim.multiple_of) for dim in facts if dim.name == raw]
                return as_size(own[0]) if own else given
        return as_size(Dim(called))

    @property
    def has_numbers(self) -> bool:
        """Whether the caller replaces dims of the model."""
        return any(not atom_of(size, Dim) for size in self._given.values())

    def check(self) -> None:
        """Raises GraphError if the caller names a dim that no input has."""
        for name in self._given:
            if name not in self._told:
                has = ", ".join(self._identifiers.values()) or "none"
                raise BadOnnxModel(self._model, f"there is no dim `{name}`; it has {has}").error()

    def named(self) -> dict[str, str]:
        """The identifier of each name that the model gives extents."""
        return {raw: name for raw, name in self._identifiers.items() if isinstance(raw, str)}

    def _identifier(self, key: object, wanted: str) -> str:
        """A unique identifier for each name or place, with a number appended if the wanted one is taken."""
        if key not in self._identifiers:
            self._identifiers[key] = self._names.unique(name_of(wanted))
        return self._identifiers[key]


def _size_of(given: SizeLike) -> Size:
    try:
        return as_size(given)
    except TypeError:
        raise BadGraphExtent(shown(given)).error() from None


def dim_names(inputs: Iterable[Any]) -> dict[str, str]:
    """The identifier that each name of an extent becomes, in the inputs of a model."""
    dims = ModelDims("model", {})
    for each in inputs:
        for axis, extent in enumerate(each.type.tensor_type.shape.dim):
            dims.extent(each.name, axis, extent)
    return dims.named()

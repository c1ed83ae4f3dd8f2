"""Names the dims of a model's inputs: one for each name that the model gives extents, one for each extent without."""

from __future__ import annotations

from collections.abc import Iterable, Mapping
from typing import Any

from tirlite.graph.aot.names import name_of
from tirlite.graph.onnx.structure import BadOnnxModel
from tirlite.sizes import Dim, Size, SizeLike, as_size
from tirlite.sizes.poly import atom_of

# What exporters write for an extent that may be anything.
_ANONYMOUS = ("", "?", "-1", "None")


class ModelDims:
    """The dims of one model, by the names in it and by the identifiers that these become."""

    def __init__(self, model: str, given: Mapping[str, SizeLike]) -> None:
        """`given` tells what dims are: numbers, dims with facts, or other sizes, by either name."""
        self._model = model
        self._given = {name: as_size(size) for name, size in given.items()}
        self._identifiers: dict[object, str] = {}
        self._taken: set[str] = set()
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
                return self._given[name]
        return as_size(Dim(called))

    @property
    def has_numbers(self) -> bool:
        """Whether dims are told to be something else than the model has there."""
        return any(not atom_of(size, Dim) for size in self._given.values())

    def check(self) -> None:
        """Raises GraphError where a dim is told of that no input has."""
        for name in self._given:
            if name not in self._told:
                has = ", ".join(self._identifiers.values()) or "none"
                raise BadOnnxModel(self._model, f"there is no dim `{name}`; it has {has}").error()

    def named(self) -> dict[str, str]:
        """The identifier of each name that the model gives extents."""
        return {raw: name for raw, name in self._identifiers.items() if isinstance(raw, str)}

    def _identifier(self, key: object, wanted: str) -> str:
        """An identifier of its own for each name, or each place: with a number behind it where another has it."""
        if key not in self._identifiers:
            base = made = name_of(wanted)
            count = 0
            while made in self._taken:
                count += 1
                made = f"{base}_{count}"
            self._taken.add(made)
            self._identifiers[key] = made
        return self._identifiers[key]


def dim_names(inputs: Iterable[Any]) -> dict[str, str]:
    """The identifier that each name of an extent becomes, in the inputs of a model."""
    dims = ModelDims("model", {})
    for each in inputs:
        for axis, extent in enumerate(each.type.tensor_type.shape.dim):
            dims.extent(each.name, axis, extent)
    return dims.named()

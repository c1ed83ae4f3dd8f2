"""The entry point for models: those that an earlier process has read come from the cache."""

from __future__ import annotations

from collections.abc import Mapping, Sequence
from os import PathLike
from typing import TYPE_CHECKING

from tirlite.collection import collection_paused
from tirlite.diag import public
from tirlite.graph.known.import_options import ImportOptions

if TYPE_CHECKING:
    import numpy.typing as npt

    from tirlite.graph.function import Function
    from tirlite.sizes import SizeLike


@public
def from_onnx(
    source: str | PathLike[str] | bytes | object,
    *,
    outputs: Sequence[str] | None = None,
    shapes: Mapping[str, Sequence[SizeLike]] | None = None,
    constants: Mapping[str, npt.ArrayLike] | None = None,
    dims: Mapping[str, SizeLike] | None = None,
) -> Function:
    """The model as a function: its inputs are parameters, its initializers constants, its outputs the result.

    `source` is a path, a model's bytes, or an onnx.ModelProto. Named extents become dims, one for each name, and
    unnamed extents dims of their own; extents that operators require to be equal become one dim, or a number. `outputs`
    selects other values than the model's outputs, by name; `shapes` gives inputs other extents; `constants` gives
    inputs fixed values, so that they are no parameters. Constants and computations on shapes are folded. `dims`
    replaces named extents by numbers, `{"batch": 4}`, or by dims with facts, `{"s": tl.dim("s", max=512)}`. Other
    conditions on extents that operators require are checked at each call; `demands` of the function lists them.

    Raises GraphError: for a file that is not a model, for tensors that contradict themselves or lie outside of the
    model's folder, and for nodes that are not supported, naming all of them at once.
    """
    options = ImportOptions(outputs, shapes or {}, constants or {}, dims or {})
    known = None
    if isinstance(source, str | PathLike):
        from tirlite.graph.known.models import known_model

        known = known_model(source, options)
        if known is not None and (found := known.found()) is not None:
            return found
    with collection_paused():
        from tirlite.graph.onnx.model import read_model

        function, used = read_model(source, options)
    return function if known is None else known.kept(function, used)

"""Writes the parts of a problem as JSON, and reads them back."""

from __future__ import annotations

import json
import re
from collections.abc import Callable, Iterable, Mapping, Sequence
from operator import index
from typing import Any, NamedTuple, TypeVar

from tirlite.diag import KernelError, PlanError, PlanMessage
from tirlite.names import UniqueNames
from tirlite.plan.request import Pool, Request
from tirlite.plan.tables.text import is_dim_name, parse_size
from tirlite.sizes import Dim, Size, dims_of, substitute

Names = Mapping[Dim, str]
T = TypeVar("T")


class BadJson(PlanMessage):
    """Text is not the JSON of a problem or plan.

    Example: `Problem.from_json("{}")`.
    Fix: Give what `to_json()` wrote.
    """

    code = "bad-plan-json"
    title = "this is not the JSON of a {what}: {reason}"
    help = "`to_json()` of a {what} gives the form that is read here"


class Parts(NamedTuple):
    """What a Problem is made of."""

    requests: tuple[Request, ...]
    pools: tuple[Pool, ...]
    in_place: tuple[tuple[str, str], ...]
    facts: Mapping[str, Dim]
    contiguous: bool = False


def text_of(parts: Parts, dims: Sequence[Dim]) -> str:
    """The problem as JSON text; `dims` are those of its sizes."""
    return json.dumps(as_json(parts, names_of((*dims, *parts.facts.values()))), indent=1)


def from_text(text: str) -> Parts:
    """The problem that `text_of` wrote. Raises PlanError for anything else."""
    return reading("problem", lambda: from_json(json.loads(text))[0])


def reading(what: str, read: Callable[[], T]) -> T:
    """The result of `read`; whatever is malformed in the JSON becomes a PlanError."""
    try:
        return read()
    except PlanError:
        raise
    except KeyError as error:
        raise BadJson(what, f"{error} is missing").error() from None
    except RecursionError:
        raise BadJson(what, "it is nested too deeply").error() from None
    except (TypeError, ValueError, AttributeError) as error:
        raise BadJson(what, str(error)).error() from None


def as_json(parts: Parts, names: Names) -> dict[str, object]:
    """The problem as an object for `json.dumps`."""
    dims = [
        {"name": name, "min": d.min, "max": d.max, "multiple_of": d.multiple_of}
        | ({"called": d.name} if d.name != name else {})
        for d, name in names.items()
    ]
    pools = [
        {
            "name": p.name,
            "scope": p.scope,
            "capacity": p.capacity,
            "align": p.align,
            "copies": size_json(p.copies, names),
        }
        for p in parts.pools
    ]
    return {
        "dims": dims,
        "facts": {symbol: names[dim] for symbol, dim in parts.facts.items()},
        **({"contiguous": True} if parts.contiguous else {}),
        "pools": pools,
        "in_place": [list(pair) for pair in parts.in_place],
        "requests": [_request(request, names) for request in parts.requests],
    }


def from_json(data: Mapping[str, Any]) -> tuple[Parts, dict[str, Dim]]:
    """The problem that an object of `as_json` stands for, and its dims by the names used there."""
    dims = {d["name"]: _read_dim(d) for d in data["dims"]}
    requests = tuple(_read_request(r, dims) for r in data["requests"])
    pools = tuple(
        Pool(p["name"], p["scope"], p["capacity"], p["align"], read_size(p["copies"], dims)) for p in data["pools"]
    )
    pairs = tuple((dst, src) for dst, src in data["in_place"])
    facts = {symbol: dims[name] for symbol, name in data["facts"].items()}
    return Parts(requests, pools, pairs, facts, data.get("contiguous") is True), dims


def _read_dim(data: Mapping[str, Any]) -> Dim:
    """Raises TypeError and ValueError for anything else than a name, and facts that some integer obeys."""
    name, most = data.get("called", data["name"]), data["max"]
    try:
        return Dim(name, index(data["min"]), None if most is None else index(most), index(data["multiple_of"]))
    except KernelError:
        raise ValueError(f"no integer obeys the facts of the dim {name!r}") from None


def _request(request: Request, names: Names) -> dict[str, object]:
    """The request, without what stands at its default."""
    rest = {
        "align": request.align if request.align != 1 else None,
        "fixed": request.fixed,
        "pools": list(request.pools) or None,
        "kind": request.kind or None,
    }
    return {
        "id": request.id,
        "size": size_json(request.size, names),
        "live": [list(interval) for interval in request.live],
        "scope": request.scope,
        **{key: value for key, value in rest.items() if value is not None},
    }


def _read_request(data: Mapping[str, Any], dims: Mapping[str, Dim]) -> Request:
    live = tuple((low, high) for low, high in data["live"])
    pools = tuple(data.get("pools", ()))
    size = read_size(data["size"], dims)
    align, fixed, kind = data.get("align", 1), data.get("fixed"), data.get("kind", "")
    return Request(data["id"], size, live, data["scope"], align, fixed, pools, kind)


def names_of(dims: Iterable[Dim]) -> dict[Dim, str]:
    """A unique name for each dim that can be read in the text of a size: names of dims may be equal, or unreadable."""
    names = UniqueNames()
    return {
        dim: names.unique(dim.name if is_dim_name(dim.name) else "d_" + re.sub(r"\W", "_", dim.name))
        for dim in dict.fromkeys(dims)
    }


def size_json(size: Size, names: Names) -> int | str:
    """A number, or the text of the size over these names."""
    if isinstance(size, int):
        return size
    renamed = {d: Dim(names[d], d.min, d.max, d.multiple_of) + 0 for d in dims_of(size) if d.name != names[d]}
    return str(substitute(size, renamed) if renamed else size)


def read_size(value: int | str, dims: Mapping[str, Dim]) -> Size:
    """The size that `size_json` wrote."""
    return parse_size(value, dims) if isinstance(value, str) else value

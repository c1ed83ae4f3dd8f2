"""Writes routines as JSON text, and reads them back."""

from __future__ import annotations

import json
from base64 import b64decode, b64encode
from collections.abc import Iterator, Mapping, Sequence
from dataclasses import fields
from typing import Any, TypeAlias

import numpy as np

from tirlite.diag import GraphMessage, TirliteError
from tirlite.graph.explicit.instructions import (
    AllocStorage,
    AllocTensor,
    Body,
    Branch,
    Instruction,
    InvokeOperator,
    InvokeRoutine,
    LetSize,
    LoadConstant,
    Parameter,
    ReadSize,
    RepeatRoutine,
    ReshapeTensor,
    Result,
    Routine,
    sizes_in,
    walk,
)
from tirlite.graph.op import OPS, Attrs
from tirlite.graph.types import TensorType, TupleType, Type, tensors
from tirlite.ir import DType
from tirlite.ir.dtype import dtype_of
from tirlite.names import UniqueNames
from tirlite.plan.tables.problem_json import read_size, size_json
from tirlite.sizes import Dim, Poly, Size, dims_of

Names: TypeAlias = Mapping[Dim, str]
Dims: TypeAlias = Mapping[str, Dim]

_VERSION = 1


class NoProgramJson(GraphMessage):
    """Text is not the JSON of a program with explicit allocation.

    Example: `tl.graph.Executable.from_json("{}")`.
    Fix: Give what `to_json()` wrote.
    """

    code = "bad-program-json"
    title = "this is not the JSON of a program with explicit allocation: {reason}"
    help = "`to_json()` of an Executable gives the form that is read here"


def text_of(routines: Sequence[Routine]) -> str:
    return json.dumps({"version": _VERSION, "routines": [_routine(each) for each in routines]}, indent=1)


def from_text(text: str) -> tuple[Routine, ...]:
    """The routines that `text_of` wrote, over dims of the same names and facts. Raises GraphError for anything else."""
    try:
        data = json.loads(text)
        if data["version"] != _VERSION:
            raise ValueError(f"version {data['version']}")
        routines = tuple(map(_read_routine, data["routines"]))
        if not routines:
            raise ValueError("no routines")
        return routines
    except KeyError as error:
        raise NoProgramJson(f"{error} is missing or unknown").error() from None
    except (TypeError, ValueError, AttributeError, IndexError) as error:
        raise NoProgramJson(str(error)).error() from None
    except TirliteError as error:
        raise NoProgramJson(str(error)).error() from None


def _names(routine: Routine) -> dict[Dim, str]:
    """A unique name for each dim of a routine, as two dims may share one."""
    sizes = [extent for param in routine.params for _, of in param.leaves for extent in of.shape]
    found = dict.fromkeys(dim for size in sizes for dim in dims_of(size))
    for step in walk(routine.body):
        if isinstance(step, LetSize | ReadSize):
            found[step.dim] = None
        found.update(dict.fromkeys(dim for size in sizes_in(step) for dim in dims_of(size)))
    names = UniqueNames()
    return {dim: names.unique(dim.name) for dim in found}


def _routine(routine: Routine) -> dict[str, object]:
    names = _names(routine)
    return {
        "name": routine.name,
        "primitive": routine.primitive,
        "dims": [[name, dim.min, dim.max, dim.multiple_of] for dim, name in names.items()],
        "params": [[list(each.names), _type(each.type, names), each.device] for each in routine.params],
        "body": _body(routine.body, names),
        "result": routine.result,
    }


def _read_routine(data: Mapping[str, Any]) -> Routine:
    dims = {name: Dim(name, low, high, multiple) for name, low, high, multiple in data["dims"]}
    params = tuple(Parameter(tuple(ids), _read_type(of, dims), device) for ids, of, device in data["params"])
    for param in params:
        if len(param.names) != len(tensors(param.type)):
            raise ValueError(f"{len(param.names)} names for a parameter of type {param.type}")
    body = _read_body(data["body"], dims)
    return Routine(data["name"], params, body, _read_result(data["result"]), data["primitive"])


def _read_result(data: Any) -> Result:
    return data if isinstance(data, str) else tuple(map(_read_result, data))


def _type(of: Type, names: Names) -> object:
    if isinstance(of, TupleType):
        return [_type(each, names) for each in of.fields]
    return {"dtype": str(of.dtype), "shape": [size_json(extent, names) for extent in of.shape]}


def _read_type(data: Any, dims: Dims) -> Type:
    if isinstance(data, list):
        return TupleType(tuple(_read_type(each, dims) for each in data))
    return TensorType(tuple(_as_size(extent, dims) for extent in data["shape"]), _as_dtype(data["dtype"]))


def _body(body: Body, names: Names) -> list[dict[str, object]]:
    """The instructions as a flat list, as JSON cannot be nested deeply: a branch has an `else` and an `end`."""
    written: list[dict[str, object]] = []
    stack: list[tuple[Iterator[Instruction], str]] = [(iter(body), "")]
    while stack:
        rest, end = stack[-1]
        step = next(rest, None)
        if step is None:
            stack.pop()
            written += [{"do": end}] if end else []
        elif isinstance(step, Branch):
            written.append({"do": "if", "condition": step.condition})
            stack += [(iter(step.other), "end"), (iter(step.then), "else")]
        else:
            written.append(_instruction(step, names))
    return written


def _instruction(step: Instruction, names: Names) -> dict[str, object]:
    match step:
        case AllocStorage(name, size, alignment, dtype, device):
            rest = {"size": size_json(size, names), "alignment": alignment, "dtype": str(dtype), "device": device}
            return {"do": "alloc_storage", "name": name, **rest}
        case AllocTensor(name, storage, offset, shape, dtype):
            place = {"storage": storage, "offset": size_json(offset, names), "dtype": str(dtype)}
            return {"do": "alloc_tensor", "name": name, **place, "shape": [size_json(each, names) for each in shape]}
        case ReshapeTensor(name, source, shape):
            sizes = [size_json(each, names) for each in shape]
            return {"do": "reshape_tensor", "name": name, "source": source, "shape": sizes}
        case LoadConstant(name, value, dtype):
            data = b64encode(value.tobytes()).decode()
            return {"do": "constant", "name": name, "dtype": str(dtype), "shape": list(value.shape), "bytes": data}
        case LetSize(dim, value):
            return {"do": "let", "size": names[dim], "value": size_json(value, names)}
        case ReadSize(dim, tensor):
            return {"do": "read_size", "size": names[dim], "tensor": tensor}
        case InvokeOperator(op, attrs, args, outs):
            written = _attrs_json(attrs, names)
            return {"do": "invoke", "op": op, "attrs": written, "args": list(args), "outs": list(outs)}
        case RepeatRoutine(routine, args, outs, carried):
            operands = {"args": list(args), "outs": list(outs)}
            return {"do": "repeat_routine", "routine": routine, **operands, "carried": carried}
        case InvokeRoutine(routine, args, outs):
            return {"do": "invoke_routine", "routine": routine, "args": list(args), "outs": list(outs)}
        case Branch():
            raise AssertionError("branches are written with their bodies")


def _read_body(data: Sequence[Mapping[str, Any]], dims: Dims) -> Body:
    bodies: list[list[Instruction]] = [[]]
    conditions: list[str] = []
    for each in data:
        match each["do"]:
            case "if":
                conditions.append(each["condition"])
                bodies.append([])
            case "else":
                bodies.append([])
            case "end":
                other, then = tuple(bodies.pop()), tuple(bodies.pop())
                bodies[-1].append(Branch(conditions.pop(), then, other))
            case _:
                bodies[-1].append(_read_instruction(each, dims))
    if len(bodies) != 1:
        raise ValueError("a branch does not end")
    return tuple(bodies[0])


def _read_instruction(data: Mapping[str, Any], dims: Dims) -> Instruction:
    match data["do"]:
        case "alloc_storage":
            size, dtype = _as_size(data["size"], dims), _as_dtype(data["dtype"])
            return AllocStorage(data["name"], size, data["alignment"], dtype, data["device"])
        case "alloc_tensor":
            offset, shape = _as_size(data["offset"], dims), tuple(_as_size(each, dims) for each in data["shape"])
            return AllocTensor(data["name"], data["storage"], offset, shape, _as_dtype(data["dtype"]))
        case "reshape_tensor":
            return ReshapeTensor(data["name"], data["source"], tuple(_as_size(each, dims) for each in data["shape"]))
        case "constant":
            dtype = _as_dtype(data["dtype"])
            value = np.frombuffer(b64decode(data["bytes"]), dtype.stored).reshape(data["shape"])
            return LoadConstant(data["name"], value, dtype)
        case "let":
            return LetSize(dims[data["size"]], _as_size(data["value"], dims))
        case "read_size":
            return ReadSize(dims[data["size"]], data["tensor"])
        case "invoke":
            attrs = _read_attrs(OPS[data["op"]].attrs, data["attrs"], dims)
            return InvokeOperator(data["op"], attrs, tuple(data["args"]), tuple(data["outs"]))
        case "invoke_routine":
            return InvokeRoutine(data["routine"], tuple(data["args"]), tuple(data["outs"]))
        case "repeat_routine":
            return RepeatRoutine(data["routine"], tuple(data["args"]), tuple(data["outs"]), data["carried"])
        case unknown:
            raise ValueError(f"there is no instruction `{unknown}`")


def _as_size(value: Any, dims: Dims) -> Size:
    """The size that `size_json` wrote."""
    if not isinstance(value, int | str) or isinstance(value, bool):
        raise TypeError(f"{value!r} is not a size")
    return read_size(value, dims)


def _as_dtype(name: Any) -> DType:
    """The element type of this name."""
    found = dtype_of(name)
    if found is None:
        raise ValueError(f"{name!r} is not an element type")
    return found


def _attrs_json(attrs: Attrs, names: Names) -> dict[str, object]:
    """The attributes by name."""
    return {each.name: _written(getattr(attrs, each.name), names) for each in fields(attrs)}


def _read_attrs(kind: type[Attrs], data: Mapping[str, Any], dims: Dims) -> Attrs:
    """The attributes that `_attrs_json` wrote, of a class."""
    return kind(**{name: _read(value, dims) for name, value in data.items()})


def _written(value: object, names: Names) -> object:
    if isinstance(value, tuple):
        return [_written(each, names) for each in value]
    if isinstance(value, Poly):
        return {"size": size_json(value, names)}
    if isinstance(value, DType):
        return {"dtype": str(value)}
    return value


def _read(value: Any, dims: Dims) -> object:
    if isinstance(value, list):
        return tuple(_read(each, dims) for each in value)
    if isinstance(value, dict):
        return _as_dtype(value["dtype"]) if "dtype" in value else _as_size(value["size"], dims)
    return value

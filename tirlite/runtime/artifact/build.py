"""Makes artifacts and images of what codegen gives."""

from __future__ import annotations

from collections.abc import Sequence

from tirlite.analysis import shape_plan
from tirlite.codegen import Lowered
from tirlite.ir import Buffer, DType, PrimFunc, TypeCode, Var
from tirlite.runtime.artifact.artifact import Artifact, Code
from tirlite.runtime.artifact.elf import Unlinkable, linked
from tirlite.runtime.signature import Signature
from tirlite.target.convention import FORK_JOIN, POLL


def artifact_of(
    func: PrimFunc, signature: Signature, lowered: Lowered, objects: Sequence[bytes], *, large_from: int = 0
) -> Artifact:
    """What `func` was compiled to; `signature` is that of its callers, who know nothing of a plan."""
    has_plan = shape_plan(func) is not None
    has_workspace = not lowered.workspace.is_empty
    dims = "q" * len(signature.dims)
    externs = (*lowered.externs, *[FORK_JOIN] * lowered.needs_pool, *[POLL] * lowered.polls)
    symbols = [symbol for symbol in (lowered.name, lowered.size_name) if symbol]
    return Artifact(
        code=code_of(objects, symbols, externs),
        entry=lowered.name,
        parameters=letters_of(func) + dims + "P" * has_workspace,
        size_entry=lowered.size_name,
        size_parameters="".join(letter_of(each.var.dtype) for each in signature.scalars) + "P" * has_plan + dims,
        has_workspace=has_workspace,
        workspace_bytes=lowered.workspace.bytes,
        alignment=lowered.alignment,
        plan_at=len(func.params) - 1 if has_plan else -1,
        large_from=large_from,
        addresses=lowered.addresses,
    )


def code_of(objects: Sequence[bytes], symbols: Sequence[str], externs: Sequence[str] = ()) -> Code:
    """Object files as one image, or as themselves where no image can be made of them."""
    try:
        return linked(objects)
    except Unlinkable:
        from tirlite.runtime.artifact.object_files import ObjectFiles

        return ObjectFiles(tuple(objects), tuple(symbols), tuple(externs))


def letters_of(func: PrimFunc) -> str:
    """The letters of `struct` for what the parameters are passed as."""
    return "".join(map(_letter, func.params))


def _letter(param: Var | Buffer) -> str:
    """What a parameter is passed as; a float of 16 bits comes as f32 and is rounded inside."""
    return "P" if isinstance(param, Buffer) else letter_of(param.dtype)


def letter_of(dtype: DType) -> str:
    """The letter of `struct` for what a number of this type is passed as."""
    if dtype.is_float:
        return "d" if dtype.bits == 64 else "f"
    letter = {1: "b", 8: "b", 16: "h", 32: "i", 64: "q"}[dtype.bits]
    return letter if dtype.code is TypeCode.INT else letter.upper()

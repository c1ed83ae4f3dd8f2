"""Maps ONNX's numbers of element types to element types."""

from __future__ import annotations

from types import MappingProxyType

from tirlite.ir import bf16, bool_, f16, f32, f64, i8, i16, i32, i64, u8, u16, u32, u64

# As in onnx.TensorProto.DataType.
_TYPES = (
    *((1, f32), (2, u8), (3, i8), (4, u16), (5, i16), (6, i32), (7, i64), (9, bool_)),
    *((10, f16), (11, f64), (12, u32), (13, u64), (16, bf16)),
)
DTYPES = MappingProxyType(dict(_TYPES))
NUMBERS = MappingProxyType({dtype: number for number, dtype in _TYPES})
_OTHERS = MappingProxyType(
    {
        0: "undefined",
        8: "string",
        14: "complex64",
        15: "complex128",
        17: "float8e4m3fn",
        18: "float8e4m3fnuz",
        19: "float8e5m2",
        20: "float8e5m2fnuz",
        21: "uint4",
        22: "int4",
        23: "float4e2m1",
        24: "float8e8m0",
        25: "uint2",
        26: "int2",
    }
)


def dtype_name(number: int) -> str:
    """What the type of this number is called, whether or not there is one for it here."""
    if number in DTYPES:
        return DTYPES[number].name
    return _OTHERS.get(number, f"number {number}")

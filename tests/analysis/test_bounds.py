"""What is proved of an index: that it is in bounds for all values, or for none."""

from __future__ import annotations

from every import every

import tirlite as tl
from tirlite.analysis.facts import Facts
from tirlite.analysis.in_bounds.bounds import Bounds
from tirlite.ir import Load, walk
from tirlite.rewrite import Normalize
from tirlite.sizes import Proof

SOURCE = """
n, m = tl.dims("n m")

@tl.kernel
def f(x: tl.f32[n, m], at: tl.i32[n], byte: tl.u8[n], table: tl.f32[256], k: tl.i64, y: tl.f32[n]):
    for i in range(n):
        y[i] = {}
"""


def test_an_integer_with_a_name_lies_where_one_without_does() -> None:
    source = SOURCE.replace("        y[i] = {}", "        name = {}\n        y[i] = table[name]")
    for value, proof in (
        ("byte[i]", Proof.YES),
        ("tl.u32(at[i]) & 255", Proof.YES),
        ("tl.i32(byte[i]) + 1", Proof.UNKNOWN),
        ("tl.i16(at[i] % 256)", Proof.YES),
        ("tl.i8(at[i] % 256)", Proof.UNKNOWN),
    ):
        func = Normalize()(tl.parse(source.format(value)))
        load = next(each for each in walk(func) if isinstance(each, Load) and each.buffer.name == "table")
        assert Bounds(Facts(func).space).proof(load.indices[0], load.buffer.shape[0]) is proof, value


@every(
    "access, expected",
    [
        ("x[i, 0]", (Proof.YES, Proof.YES)),
        ("x[n - 1 - i, m - 1]", (Proof.YES, Proof.YES)),
        ("x[max(i - 1, 0), min(i, m - 1)]", (Proof.YES, Proof.YES)),
        ("x[i, i % m]", (Proof.YES, Proof.YES)),
        ("x[i + 1, i]", (Proof.UNKNOWN, Proof.UNKNOWN)),
        ("x[i, k]", (Proof.YES, Proof.UNKNOWN)),
        ("x[at[i], 0]", (Proof.UNKNOWN, Proof.YES)),
        ("table[byte[i]]", (Proof.YES,)),
        ("table[tl.i64(at[i]) % 256]", (Proof.YES,)),
        ("table[min(max(at[i] + 1, 0), 255)]", (Proof.YES,)),
        ("table[at[i] % 250 + tl.i32(byte[i]) % 6]", (Proof.YES,)),
        ("table[(at[i] & 127) + (at[i] & 128)]", (Proof.YES,)),
        ("table[(at[i] & 127) + (at[i] & 129)]", (Proof.UNKNOWN,)),
        ("table[tl.u32(at[i]) >> 24]", (Proof.YES,)),
        ("table[at[i] >> 24]", (Proof.UNKNOWN,)),
        ("table[tl.u64(at[i]) >> 56]", (Proof.YES,)),
        ("table[tl.i64(tl.u64(at[i]) % 256)]", (Proof.YES,)),
        ("table[tl.i64(tl.u64(at[i]) & 0xFFFFFFFFFFFFFF)]", (Proof.UNKNOWN,)),
        ("table[tl.i32(byte[i]) // 16 * 16 + tl.i64(at[i] > 3)]", (Proof.YES,)),
        ("table[tl.i8(byte[i])]", (Proof.UNKNOWN,)),
        ("table[abs(tl.i64(byte[i]) * 2 - 255)]", (Proof.YES,)),
        ("table[abs(tl.i64(byte[i]) * 2 - 256)]", (Proof.UNKNOWN,)),
        ("table[min(at[i], 255)]", (Proof.UNKNOWN,)),
        ("table[byte[i] + byte[i]]", (Proof.YES,)),
        ("table[tl.i32(byte[i]) + tl.i32(byte[i])]", (Proof.UNKNOWN,)),
        ("table[tl.i32(min(max(y[i], 3), 255.9))]", (Proof.YES,)),
        ("table[tl.i64(max(min(tl.round(y[i]), 255), 0))]", (Proof.YES,)),
        ("table[tl.i32(min(max(y[i], 0), 256))]", (Proof.UNKNOWN,)),
        ("table[tl.u8(y[i])]", (Proof.YES,)),
        ("x[i, tl.i64(min(max(y[i], 0), tl.f64(m - 1)))]", (Proof.YES, Proof.YES)),
        ("x[i, tl.i64(min(max(tl.f64(i) * 0.3, 0), tl.f64(m - 1)))]", (Proof.YES, Proof.YES)),
        ("x[i, min(tl.i64(tl.floor((tl.f32(i) + 0.5) * (tl.f32(n) / tl.f32(m)))), m - 1)]", (Proof.YES, Proof.YES)),
        ("x[i, min(tl.i64(tl.f32(i) - 0.5), m - 1)]", (Proof.YES, Proof.YES)),
        ("x[i, min(tl.i64(tl.f32(i) - 1), m - 1)]", (Proof.YES, Proof.UNKNOWN)),
        ("x[i, min(tl.i64(tl.f32(i) / tl.f32(k)), m - 1)]", (Proof.YES, Proof.UNKNOWN)),
        ("x[i, tl.i64(min(max(y[i], 0), tl.f32(m - 1)))]", (Proof.YES, Proof.UNKNOWN)),
        ("x[i, tl.i64(min(y[i], tl.f64(m - 1)))]", (Proof.YES, Proof.UNKNOWN)),
        ("x[i + n, m]", (Proof.NO, Proof.NO)),
        ("x[i - n, 0]", (Proof.NO, Proof.YES)),
        ("table[tl.checked(i)]", (Proof.UNKNOWN,)),
    ],
)
def test_an_access(access: str, expected: tuple[Proof, ...]) -> None:
    func = Normalize()(tl.parse(SOURCE.format(access)))
    bounds = Bounds(Facts(func).space)
    name = access[: access.index("[")]
    load = next(each for each in walk(func) if isinstance(each, Load) and each.buffer.name == name)
    assert tuple(map(bounds.proof, load.indices, load.buffer.shape)) == expected


def test_the_lanes_of_a_vector_count() -> None:
    func = tl.parse(SOURCE.format("1").replace("y[i] = 1", "table[tl.ramp(i, 1, 4)] = table[tl.ramp(252, 1, 4)]"))
    bounds = Bounds(Facts(func).space)
    load = next(each for each in walk(func) if isinstance(each, Load))
    store = func.body.stmts[0].body.stmts[0]  # type: ignore[attr-defined]
    assert bounds.proof(load.indices[0], load.buffer.shape[0]) is Proof.YES
    assert bounds.proof(store.indices[0], store.buffer.shape[0]) is Proof.UNKNOWN

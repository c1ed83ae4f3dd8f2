"""The LLVM text of matrix products by AMX tiles: registers of 16 rows of 64 bytes.

`tirlite.tiles.T(sums, row, parts, count, a, b, rows, groups, columns, adds)` computes sums of products of bytes of the
types `T`, in groups of four terms, and adds them to an array of i32, or to 0. `parts` has the addresses of `count`
pairs of operands; `row`, `a` and `b` are the bytes per row of the sums and of the operands. Rows are processed by up to
32, as two tiles of equal height; if the number is odd the tiles share a row, which both compute alike. Up to 16 rows
are one tile if the columns fill four tiles: then the operand that varies by column, most of what is read, is read once
and in order. Loading a tile configuration takes some hundred cycles, so one that is loaded already is kept.
`tirlite.tiles.granted()` asks the system once whether this process may use tile registers.
"""

from __future__ import annotations

from tirlite.codegen.llvm.text import Definition, ModuleText
from tirlite.target.processor import TILES_ASKED

GRANTED, RELEASE = "tirlite.tiles.granted", "tirlite.tiles.release"
_ASKED = "tirlite.tiles.asked"
# The instruction for the signs of the two operands.
INSTRUCTIONS = {"u8 s8": "tdpbusd", "s8 u8": "tdpbsud", "s8 s8": "tdpbssd", "u8 u8": "tdpbuud"}
_GRANTED = """entry:
  %known = load atomic i64, ptr @ASKED monotonic, align 8
  %is_known = icmp ne i64 %known, 0
  br i1 %is_known, label %done, label %ask
ask:
  %failed = call i64 (i64, ...) @syscall(OPERANDS)
  %is_granted = icmp eq i64 %failed, 0
  %found = select i1 %is_granted, i64 1, i64 2
  store atomic i64 %found, ptr @ASKED monotonic, align 8
  br label %done
done:
  %answer = phi i64 [ %known, %entry ], [ %found, %ask ]
  %may = icmp eq i64 %answer, 1
  ret i1 %may"""
_RELEASE = """entry:
  %may = call i1 @GRANTED()
  br i1 %may, label %give, label %done
give:
  call void @llvm.x86.tilerelease()
  br label %done
done:
  ret void"""
# Tiles 0 to 3 hold sums, 4 and 6 operands, and 5 and 7 the remaining groups of operands after the last 16. A tile
# configuration has for each tile its rows in a byte, and the bytes per row in two bytes.
_SHAPE = {
    "OF_SUMS": 64 * (1 + (1 << 16) + (1 << 32) + (1 << 48)),
    "OF_OPERANDS": 64 * (1 + (1 << 32) + (1 << 48)),
    "OF_SIXTH": 16 << 48,
    "ALIKE": sum(1 << 8 * tile for tile in range(6)),
}
_SUMMED = """entry:
  %wanted = alloca [8 x i64], align 64
  %held = alloca [8 x i64], align 64
  %rest = and i64 %groups, 15
  %whole = sub i64 %groups, %rest
  %has_rest = icmp ne i64 %rest, 0
  %last = select i1 %has_rest, i64 %rest, i64 16
  %last_bytes = shl i64 %last, 18
  %operands = or i64 %last_bytes, OF_OPERANDS
  %last_rows = shl i64 %last, 56
  %more_rows = or i64 %last_rows, OF_SIXTH
  %columns_left = and i64 %columns, 63
  %are_fours = icmp eq i64 %columns_left, 0
  %are_few = icmp slt i64 %rows, 17
  %is_row = and i1 %are_fours, %are_few
  %step = select i1 %is_row, i64 64, i64 32
  %of_sums = getelementptr i8, ptr %wanted, i64 16
  %of_operands = getelementptr i8, ptr %wanted, i64 24
  %of_rows = getelementptr i8, ptr %wanted, i64 48
  call void @llvm.memset.p0.i64(ptr align 64 %wanted, i8 0, i64 64, i1 false)
  store i64 1, ptr %wanted
  store i64 OF_SUMS, ptr %of_sums
  store i64 %operands, ptr %of_operands
  br label %block
block:
  %first = phi i64 [ 0, %entry ], [ %first_next, %block_done ]
  %left = sub i64 %rows, %first
  %is_full = icmp sgt i64 %left, 32
  %here = select i1 %is_full, i64 32, i64 %left
  %odd = add i64 %here, 1
  %even = lshr i64 %odd, 1
  %half = select i1 %is_row, i64 %here, i64 %even
  %second = sub i64 %here, %half
  %alike = mul i64 %half, ALIKE
  %all_rows = or i64 %alike, %more_rows
  store i64 %all_rows, ptr %of_rows
  call void @llvm.x86.sttilecfg(ptr %held)
  %one = load <8 x i64>, ptr %wanted, align 64
  %other = load <8 x i64>, ptr %held, align 64
  %differ = icmp ne <8 x i64> %one, %other
  %mask = bitcast <8 x i1> %differ to i8
  %is_other = icmp ne i8 %mask, 0
  br i1 %is_other, label %shape, label %shaped
shape:
  call void @llvm.x86.ldtilecfg(ptr %wanted)
  br label %shaped
shaped:
  %s_first = mul i64 %first, %row
  %s_block = getelementptr i8, ptr %sums, i64 %s_first
  %s_far = mul i64 %second, %row
  %a_first = mul i64 %first, %a
  %a_far = mul i64 %second, %a
  br label %column
column:
  %j = phi i64 [ 0, %shaped ], [ %j_next, %column_done ]
  %j_bytes = shl i64 %j, 2
  %s0 = getelementptr i8, ptr %s_block, i64 %j_bytes
  %s_third = select i1 %is_row, i64 128, i64 %s_far
  %s2 = getelementptr i8, ptr %s0, i64 %s_third
  %beyond = add i64 %j, 16
  %is_pair = icmp slt i64 %beyond, %columns
  %aside = select i1 %is_pair, i64 64, i64 0
  %s1 = getelementptr i8, ptr %s0, i64 %aside
  %s3 = getelementptr i8, ptr %s2, i64 %aside
  br i1 %adds, label %old, label %new
old:
  call void @llvm.x86.tileloadd64(i8 0, ptr %s0, i64 %row)
  call void @llvm.x86.tileloadd64(i8 1, ptr %s1, i64 %row)
  call void @llvm.x86.tileloadd64(i8 2, ptr %s2, i64 %row)
  call void @llvm.x86.tileloadd64(i8 3, ptr %s3, i64 %row)
  br label %begun
new:
  call void @llvm.x86.tilezero(i8 0)
  call void @llvm.x86.tilezero(i8 1)
  call void @llvm.x86.tilezero(i8 2)
  call void @llvm.x86.tilezero(i8 3)
  br label %begun
begun:
  br label %part
part:
  %p = phi i64 [ 0, %begun ], [ %p_next, %part_done ]
  %p_bytes = shl i64 %p, 4
  %pair = getelementptr i8, ptr %parts, i64 %p_bytes
  %a_base = load ptr, ptr %pair
  %pair_b = getelementptr i8, ptr %pair, i64 8
  %b_base = load ptr, ptr %pair_b
  %a0 = getelementptr i8, ptr %a_base, i64 %a_first
  %b0 = getelementptr i8, ptr %b_base, i64 %j_bytes
  %has_whole = icmp sgt i64 %whole, 0
  br i1 %has_whole, label %terms, label %behind
terms:
  %g = phi i64 [ 0, %part ], [ %g_next, %g_done ]
  %g_bytes = shl i64 %g, 2
  %g_rows = mul i64 %g, %b
  %ga = getelementptr i8, ptr %a0, i64 %g_bytes
  %gb = getelementptr i8, ptr %b0, i64 %g_rows
  br i1 %is_row, label %g_row, label %g_block
WHOLE_GROUPS
g_done:
  %g_next = add i64 %g, 16
  %g_more = icmp slt i64 %g_next, %whole
  br i1 %g_more, label %terms, label %behind
behind:
  br i1 %has_rest, label %terms_left, label %part_done
terms_left:
  %r_bytes = shl i64 %whole, 2
  %r_rows = mul i64 %whole, %b
  %ra = getelementptr i8, ptr %a0, i64 %r_bytes
  %rb = getelementptr i8, ptr %b0, i64 %r_rows
  br i1 %is_row, label %r_row, label %r_block
REST
r_done:
  br label %part_done
part_done:
  %p_next = add i64 %p, 1
  %p_more = icmp slt i64 %p_next, %count
  br i1 %p_more, label %part, label %column_done
column_done:
  call void @llvm.x86.tilestored64(i8 0, ptr %s0, i64 %row)
  call void @llvm.x86.tilestored64(i8 1, ptr %s1, i64 %row)
  call void @llvm.x86.tilestored64(i8 2, ptr %s2, i64 %row)
  call void @llvm.x86.tilestored64(i8 3, ptr %s3, i64 %row)
  %j_next = add i64 %j, %step
  %j_more = icmp slt i64 %j_next, %columns
  br i1 %j_more, label %column, label %block_done
block_done:
  %first_next = add i64 %first, 32
  %more = icmp slt i64 %first_next, %rows
  br i1 %more, label %block, label %done
done:
  ret void"""


def granted(module: ModuleText) -> str:
    """Adds the function that asks for permission to the module; returns its name."""
    if GRANTED not in module.inlined:
        module.declarations[_ASKED] = f"@{_ASKED} = internal global i64 0"
        module.declarations["syscall"] = "declare i64 @syscall(i64, ...)"
        operands = ", ".join(f"i64 {each}" for each in TILES_ASKED)
        text = _GRANTED.replace("@ASKED", f"@{_ASKED}").replace("OPERANDS", operands)
        module.inlined[GRANTED] = Definition(GRANTED, "internal ", f"i1 @{GRANTED}() nounwind", text)
    return GRANTED


def release(module: ModuleText) -> str:
    """Adds the function that releases the tile registers to the module; returns its name."""
    if RELEASE not in module.inlined:
        module.declarations["llvm.x86.tilerelease"] = "declare void @llvm.x86.tilerelease()"
        text = _RELEASE.replace("GRANTED", granted(module))
        module.inlined[RELEASE] = Definition(RELEASE, "internal ", f"void @{RELEASE}() nounwind", text)
    return RELEASE


def summed(module: ModuleText, types: str) -> str:
    """Adds the function that adds products of bytes with these signs to the module; returns its name."""
    name = f"tirlite.tiles.{types.replace(' ', '.')}"
    if name not in module.inlined:
        text = _SUMMED.replace("WHOLE_GROUPS", _products(types, "g", 4, 6)).replace("REST", _products(types, "r", 5, 7))
        for part, number in _SHAPE.items():
            text = text.replace(part, str(number))
        for each, kinds in (
            ("tileloadd64", "i8 immarg, ptr, i64"),
            ("tilestored64", "i8 immarg, ptr, i64"),
            (INSTRUCTIONS[types], "i8 immarg, i8 immarg, i8 immarg"),
            ("tilezero", "i8 immarg"),
            ("ldtilecfg", "ptr"),
            ("sttilecfg", "ptr"),
        ):
            module.declarations[f"llvm.x86.{each}"] = f"declare void @llvm.x86.{each}({kinds})"
        module.declarations["llvm.memset.p0.i64"] = "declare void @llvm.memset.p0.i64(ptr, i8, i64, i1)"
        pointers, numbers = "ptr %sums, i64 %row, ptr %parts, i64 %count", "i64 %a, i64 %b, i64 %rows, i64 %groups"
        head = f"void @{name}({pointers}, {numbers}, i64 %columns, i1 %adds) noinline nounwind"
        module.inlined[name] = Definition(name, "internal ", head, text)
    return name


def _products(types: str, at: str, a: int, b: int) -> str:
    """The block that adds products of tiles, loading each when needed: 1 x 4 tiles of sums, or 2 x 2."""

    def load(tile: int, pointer: str, row: str) -> str:
        return f"  call void @llvm.x86.tileloadd64(i8 {tile}, ptr %{pointer}, i64 %{row})"

    def add(total: int) -> str:
        return f"  call void @llvm.x86.{INSTRUCTIONS[types]}(i8 {total}, i8 {a}, i8 {b})"

    def move(to: str, pointer: str, by: str | int) -> str:
        return f"  %{at}{to} = getelementptr i8, ptr %{at}{pointer}, i64 {by}"

    one, two = load(a, f"{at}a", "a"), load(a, f"{at}a2", "a")
    left, right = load(b, f"{at}b", "b"), load(b, f"{at}b2", "b")
    others = [
        line
        for tile in (1, 2, 3)
        for line in (move(f"row{tile}", "b", 64 * tile), load(b, f"{at}row{tile}", "b"), add(tile))
    ]
    row = (f"{at}_row:", one, left, add(0), *others)
    moves = move("a2", "a", "%a_far"), move("b2", "b", "%aside")
    block = (f"{at}_block:", *moves, one, left, add(0), right, add(1), two, add(3), left, add(2))
    done = f"  br label %{at}_done"
    return "\n".join((*row, done, *block, done))

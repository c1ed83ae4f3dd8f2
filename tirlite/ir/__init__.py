"""The intermediate representation: types, expressions, statements, functions, and the ways to walk and rewrite them."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.ir.assertion import Shown as Shown, failure as failure, places_in as places_in, shown as shown
    from tirlite.ir.builder import Builder as Builder, buffer_of as buffer_of
    from tirlite.ir.dtype import (
        SCALARS as SCALARS,
        DType as DType,
        TensorType as TensorType,
        TypeCode as TypeCode,
        bf16 as bf16,
        bool_ as bool_,
        dtype_of as dtype_of,
        f16 as f16,
        f32 as f32,
        f64 as f64,
        handle as handle,
        i8 as i8,
        i16 as i16,
        i32 as i32,
        i64 as i64,
        literal_type as literal_type,
        promote as promote,
        rounded as rounded,
        u8 as u8,
        u16 as u16,
        u32 as u32,
        u64 as u64,
    )
    from tirlite.ir.equal import (
        Equality as Equality,
        structural_equal as structural_equal,
        structural_hash as structural_hash,
    )
    from tirlite.ir.expr import (
        EQ as EQ,
        GE as GE,
        GT as GT,
        LE as LE,
        LT as LT,
        NE as NE,
        Add as Add,
        And as And,
        Binary as Binary,
        BitAnd as BitAnd,
        BitNot as BitNot,
        BitOr as BitOr,
        BitXor as BitXor,
        Broadcast as Broadcast,
        Buffer as Buffer,
        BufferRef as BufferRef,
        Call as Call,
        Cast as Cast,
        Compare as Compare,
        Div as Div,
        Expr as Expr,
        ExprLike as ExprLike,
        FloatImm as FloatImm,
        FloorDiv as FloorDiv,
        FloorMod as FloorMod,
        IntImm as IntImm,
        LetExpr as LetExpr,
        Load as Load,
        Max as Max,
        Min as Min,
        Mul as Mul,
        Neg as Neg,
        Not as Not,
        Or as Or,
        Ramp as Ramp,
        Select as Select,
        ShiftLeft as ShiftLeft,
        ShiftRight as ShiftRight,
        StringImm as StringImm,
        Sub as Sub,
        TruncDiv as TruncDiv,
        TruncMod as TruncMod,
        Unary as Unary,
        Var as Var,
        as_expr as as_expr,
        binary as binary,
        const as const,
        widened as widened,
    )
    from tirlite.ir.func import PrimFunc as PrimFunc
    from tirlite.ir.kernel_call import (
        DimSource as DimSource,
        Function as Function,
        KernelCall as KernelCall,
        callees as callees,
        calls_in as calls_in,
    )
    from tirlite.ir.node import Node as Node
    from tirlite.ir.op import Op as Op
    from tirlite.ir.printer import text as text
    from tirlite.ir.rewrite import (
        Rule as Rule,
        Substitution as Substitution,
        rebuild as rebuild,
        rewrite as rewrite,
        substitute as substitute,
    )
    from tirlite.ir.stmt import (
        PAYLOADS as PAYLOADS,
        Allocate as Allocate,
        Assert as Assert,
        AttrKey as AttrKey,
        AttrStmt as AttrStmt,
        AttrValue as AttrValue,
        Evaluate as Evaluate,
        For as For,
        ForKind as ForKind,
        IfThenElse as IfThenElse,
        Let as Let,
        Permission as Permission,
        SeqStmt as SeqStmt,
        Stmt as Stmt,
        Store as Store,
        View as View,
        While as While,
        seq as seq,
    )
    from tirlite.ir.trampoline import Steps as Steps, in_turn as in_turn, run as run
    from tirlite.ir.validate import validate as validate
    from tirlite.ir.walk import (
        conjuncts as conjuncts,
        statements as statements,
        statements_of as statements_of,
        walk as walk,
    )
else:
    __getattr__, __all__ = late_names(__name__)

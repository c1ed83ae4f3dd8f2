import tirlite as tl
from tirlite.ir import Builder

b = Builder("table")
k = b.param("k", tl.i64)
b.param("y", tl.f64[k - 1, k], out=True)
tl.compile(b.build())(2**31)

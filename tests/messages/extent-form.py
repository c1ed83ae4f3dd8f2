import tirlite as tl
from tirlite.ir import Builder, Select, const

b = Builder("odd")
k = b.param("k", tl.i64)
b.param("x", tl.f64[Select(k > 3, k, const(3, tl.i64))])
tl.compile(b.build())

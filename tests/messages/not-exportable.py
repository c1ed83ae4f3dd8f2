import tirlite as tl

n = tl.dim("n")


@tl.kernel
def grows(x: tl.i64[n], y: tl.out[tl.i64[n]]):
    for i in range(n):
        t = tl.alloc(tl.i64[x[i]])
        t[0] = x[i]
        y[i] = t[0]


grows.export("build")

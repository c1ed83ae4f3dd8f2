import tirlite as tl

n = tl.dim("n")


@tl.kernel
def count(y: tl.out[tl.i64[n]]):
    for i in range(n):
        y[i] = i


count()

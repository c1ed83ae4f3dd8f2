import tirlite as tl

n = tl.dim("n")
COUNT = 0


@tl.kernel
def kernel(x: tl.i32[n]):
    for i in range(n):
        x[i] = x[i] // COUNT

import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.i32[n], y: tl.i32[n]):
    for i in range(n):
        if x[i] and y[i]:
            y[i] = 1

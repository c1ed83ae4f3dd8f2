import tirlite as tl

n = tl.dim("n")


@tl.kernel
def kernel(x: tl.u8[n]):
    for i in range(n):
        x[i] = x[i] + 300

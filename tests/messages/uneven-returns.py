import tirlite as tl

n = tl.dim("n")


@tl.inline
def place(x, key):
    for i in range(len(x)):
        if x[i] == key:
            return i


@tl.kernel
def kernel(x: tl.i64[n], y: tl.i64[n]):
    for i in range(n):
        y[i] = place(x, i)

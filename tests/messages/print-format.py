import tirlite as tl

n = tl.dim("n")


@tl.kernel
def show(x: tl.f32[n]):
    for i in range(n):
        print(f"{i:>4d}: {x[i]:d}")

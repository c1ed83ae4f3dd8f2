import tirlite as tl

n = tl.dim("n", maximum=8)

import tirlite as tl

y = tl.exp(1.0)

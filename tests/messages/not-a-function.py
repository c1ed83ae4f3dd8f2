import tirlite as tl

tl.kernel(lambda x: x)

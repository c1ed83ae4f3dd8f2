import tirlite as tl

n = tl.dim("row count")

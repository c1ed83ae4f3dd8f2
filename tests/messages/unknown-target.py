import tirlite as tl

tl.Target("x86-64-v5")

import tirlite as tl

tl.Target.host(workers=0)

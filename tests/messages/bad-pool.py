import tirlite as tl

tl.plan.Pool("scratch", copies=2.5)

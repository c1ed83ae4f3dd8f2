import tirlite as tl

tl.Target.host().with_memory("local.UB", tl.MemoryInfo(7, 256, 1 << 20, None))

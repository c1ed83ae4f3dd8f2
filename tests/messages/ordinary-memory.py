import tirlite as tl

tl.Target.host().with_memory("local", tl.MemoryInfo(8, 256, 1 << 20, None))

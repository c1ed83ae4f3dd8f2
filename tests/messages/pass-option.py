import tirlite as tl

tl.passes.StorageRewrite("share", target="host")

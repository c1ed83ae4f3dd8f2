import tirlite as tl

tl.set_num_threads(0)

import tirlite as tl

tl.compile("scale")

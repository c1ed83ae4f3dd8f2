import tirlite as tl

tl.parse("""
n = tl.dim("n")
count = n + 1
""")

import numpy as np

import tirlite as tl

g = tl.graph.Builder("net")
x = g.constant(np.array(["a", "b"]))

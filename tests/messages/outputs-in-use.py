import numpy as np

import tirlite as tl

g = tl.graph.Builder("net")
f = g.function(g.exp(g.input("x", tl.f32[4])))
net = tl.graph.StaticRuntime(f, tl.graph.RuntimeOptions(manage_outputs=True))
for _ in range(3):
    net(np.zeros(4, np.float32))

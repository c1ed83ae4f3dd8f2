import numpy as np

import tirlite as tl

g = tl.graph.Builder("net")
net = tl.graph.explicit_allocation(g.function(g.exp(g.input("x", tl.f32[4]))))
broken = net.to_json().replace('"offset": 0', '"offset": 8')
tl.graph.Executable.from_json(broken)(np.zeros(4, np.float32))

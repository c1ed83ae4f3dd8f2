import tirlite as tl

g = tl.graph.Builder("net")
net = tl.graph.explicit_allocation(g.function(g.exp(g.input("x", tl.f32[4]))))
tl.graph.Executable.from_json(net.to_json().replace('"name": "exp"', '"name": "storage_0"'))

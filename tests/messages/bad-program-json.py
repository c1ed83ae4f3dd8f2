import tirlite as tl

tl.graph.Executable.from_json("{}")

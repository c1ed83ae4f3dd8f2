import tirlite as tl

tl.parse("@tl.kernel\ndef kernel(x: tl.f64[1]):\n    x[0] = " + " + ".join(["x[0]"] * 20000))

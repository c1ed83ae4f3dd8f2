"""LLVM: its values, the text of its functions, the modules that are written out, and the machine that compiles them."""

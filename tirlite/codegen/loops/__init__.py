"""What the code of a loop takes beside its body: what LLVM is told of it, its work, its polling, its stores."""

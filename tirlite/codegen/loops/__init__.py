"""Code generation for loops, apart from their bodies: hints for LLVM, work estimates, polling, prefetches, stores."""

"""Running native code: arguments in, their checks, memory for the kernel, the call."""

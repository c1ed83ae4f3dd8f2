"""Ahead-of-time compilation: a function of operators becomes one function `main` of the IR, and native code."""

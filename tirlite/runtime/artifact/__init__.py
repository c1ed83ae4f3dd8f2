"""Compiled code as plain data, shared by this process, the disk cache and export.

It is made of object files once, and is loaded without LLVM.
"""

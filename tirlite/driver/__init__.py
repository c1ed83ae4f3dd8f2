"""The whole way from a Python function or a PrimFunc to a kernel that can be called."""

from tirlite.driver.compile import Compiler, compile, kernel  # noqa: A004
from tirlite.driver.kernel import Kernel
from tirlite.rewrite.options import Options

__all__ = ["Compiler", "Kernel", "Options", "compile", "kernel"]

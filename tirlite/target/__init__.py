"""Facts about a machine that plans depend on."""

from tirlite.target.processor import Processor
from tirlite.target.target import MemoryInfo, Target

__all__ = ["MemoryInfo", "Processor", "Target"]

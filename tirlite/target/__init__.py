"""Facts about machines that schedules, plans and code generation depend on."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.target.processor import Processor as Processor
    from tirlite.target.target import MemoryInfo as MemoryInfo, Target as Target
else:
    __getattr__, __all__ = late_names(__name__)

"""What went wrong, where, and what to do about it."""

from typing import TYPE_CHECKING

from tirlite.diag.boundary import boundary, public
from tirlite.diag.error import (
    CallError,
    CallTypeError,
    CallValueError,
    CapacityError,
    GraphError,
    InternalError,
    KernelAssertionError,
    KernelError,
    KernelIndexError,
    KernelRunError,
    PlanError,
    TirliteError,
)
from tirlite.diag.message import Message
from tirlite.diag.source import Source, Span
from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.diag.entry import Entry, entries, entry_of, message_kinds
    from tirlite.diag.nearest import nearest
else:
    __getattr__ = late_names(
        __name__,
        {
            "entry": "Entry entries entry_of message_kinds",
            "nearest": "nearest",
        },
    )

__all__ = [
    "CallError",
    "CallTypeError",
    "CallValueError",
    "CapacityError",
    "Entry",
    "GraphError",
    "InternalError",
    "KernelAssertionError",
    "KernelError",
    "KernelIndexError",
    "KernelRunError",
    "Message",
    "PlanError",
    "Source",
    "Span",
    "TirliteError",
    "boundary",
    "entries",
    "entry_of",
    "message_kinds",
    "nearest",
    "public",
]

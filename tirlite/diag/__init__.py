"""What went wrong, where, and what to do about it."""

from tirlite.diag.boundary import boundary, public
from tirlite.diag.entry import Entry, entries, entry_of, message_kinds
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
from tirlite.diag.nearest import nearest
from tirlite.diag.source import Source, Span

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

"""What went wrong, where, and what to do about it."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.diag.entry import (
        Explanation as Explanation,
        entries as entries,
        entry_of as entry_of,
        message_kinds as message_kinds,
    )
    from tirlite.diag.error import (
        CallError as CallError,
        CallTypeError as CallTypeError,
        CallValueError as CallValueError,
        CapacityError as CapacityError,
        GraphError as GraphError,
        GraphMessage as GraphMessage,
        InternalError as InternalError,
        KernelAssertionError as KernelAssertionError,
        KernelError as KernelError,
        KernelIndexError as KernelIndexError,
        KernelRunError as KernelRunError,
        Message as Message,
        PlanError as PlanError,
        PlanMessage as PlanMessage,
        TirliteError as TirliteError,
        boundary as boundary,
        public as public,
    )
    from tirlite.diag.nearest import did_you_mean as did_you_mean, hint as hint, nearest as nearest
    from tirlite.diag.source import Source as Source, Span as Span
else:
    __getattr__, __all__ = late_names(__name__)

"""Running native code: arguments in, their checks, memory for the kernel, the call."""

from typing import TYPE_CHECKING

from tirlite.late import late_names
from tirlite.runtime.bind import Binder, Binding
from tirlite.runtime.executable import Executable
from tirlite.runtime.signature import Signature, signature_of
from tirlite.runtime.workspace import Workspaces, process_workspaces

if TYPE_CHECKING:
    from tirlite.runtime.shape_plans import ShapePlans
else:
    __getattr__ = late_names(
        __name__,
        {
            "shape_plans": "ShapePlans",
        },
    )

__all__ = [
    "Binder",
    "Binding",
    "Executable",
    "ShapePlans",
    "Signature",
    "Workspaces",
    "process_workspaces",
    "signature_of",
]

"""Running native code: arguments in, their checks, memory for the kernel, the call."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.runtime.bind import Binder, Binding
    from tirlite.runtime.executable import Executable
    from tirlite.runtime.pool import set_num_threads
    from tirlite.runtime.shape_plans import ShapePlans
    from tirlite.runtime.signature import Signature, signature_of
    from tirlite.runtime.workspace import Workspaces, process_workspaces
else:
    __getattr__ = late_names(
        __name__,
        {
            "bind": "Binder Binding",
            "executable": "Executable",
            "pool": "set_num_threads",
            "shape_plans": "ShapePlans",
            "signature": "Signature signature_of",
            "workspace": "Workspaces process_workspaces",
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
    "set_num_threads",
    "signature_of",
]

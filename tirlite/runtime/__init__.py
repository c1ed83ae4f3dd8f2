"""Running native code: checks of arguments, memory for temporaries, and the call."""

from typing import TYPE_CHECKING

from tirlite.late import late_names

if TYPE_CHECKING:
    from tirlite.runtime.bind import Binder as Binder, Binding as Binding
    from tirlite.runtime.executable import Executable as Executable
    from tirlite.runtime.pool import set_num_threads as set_num_threads
    from tirlite.runtime.shape_plans import ShapePlans as ShapePlans
    from tirlite.runtime.signature import Signature as Signature, signature_of as signature_of
else:
    __getattr__, __all__ = late_names(__name__)

"""The function of a kernel: translated at once, or known by its head alone until its body is needed."""

from __future__ import annotations

from collections.abc import Callable, Mapping, Sequence
from typing import TYPE_CHECKING

from tirlite.diag import KernelError
from tirlite.gate import GATE
from tirlite.record import cached_property
from tirlite.runtime import signature_of

if TYPE_CHECKING:
    from tirlite.driver.manifest import Known
    from tirlite.ir import PrimFunc
    from tirlite.runtime import Signature


class Front:
    """A translated function."""

    def __init__(self, func: PrimFunc, *, partial: Sequence[int] | None = None) -> None:
        """`partial`: the property, if known to the caller. Raises KernelError for a shape that cannot be checked."""
        self._func: PrimFunc | None = func
        if partial is not None:
            self.partial = partial

    @property
    def func(self) -> PrimFunc:
        assert self._func is not None
        return self._func

    @cached_property
    def signature(self) -> Signature:
        return signature_of(self.func)

    @property
    def whole(self) -> Signature:
        """The signature in the variables of `func`."""
        return self.signature

    @cached_property
    def unfit(self) -> Sequence[int]:
        """The positions of outputs that cannot be left out."""
        from tirlite.analysis.param_uses import unfit_to_omit

        unfit = unfit_to_omit(self.func)
        return tuple(number for number, param in enumerate(self.func.params) if param in unfit)

    @cached_property
    def partial(self) -> Sequence[int]:
        """The positions of outputs of which not all elements may be stored."""
        from tirlite.analysis import Facts
        from tirlite.analysis.coverage.overwrites import CallCoverage
        from tirlite.rewrite import Normalize

        func = Normalize()(self.func)
        partial = {*func.outputs} - {*CallCoverage(Facts(func)).stored_wholly()}
        return tuple(number for number, param in enumerate(func.params) if param in partial)

    @cached_property
    def content(self) -> bytes:
        """A digest of the function, including its names."""
        from tirlite.ir.equal import content_digest

        return content_digest(self.func)

    @property
    def name(self) -> str:
        return self.func.name

    @property
    def captures(self) -> Mapping[str, object]:
        """The captured constants, if translation was deferred; {} otherwise."""
        return {}


class KnownFront(Front):
    """A function that an earlier process translated. It is translated again if more than its head is needed."""

    def __init__(self, known: Known, translate: Callable[[], tuple[PrimFunc, Mapping[str, object]]]) -> None:
        self._func = None
        self._captures: Mapping[str, object] = {}
        self._known = known
        self._translate = translate
        self.signature = known.head.signature
        self.unfit, self.partial = known.head.unfit, known.head.partial
        self.content = known.content

    @property
    def func(self) -> PrimFunc:
        if self._func is None:
            with GATE.inside(self):
                if self._func is None:
                    self._func = self._made()
        return self._func

    @cached_property
    def whole(self) -> Signature:
        return signature_of(self.func)

    @property
    def name(self) -> str:
        return self._known.head.name

    def _made(self) -> PrimFunc:
        """The translation, or the function parsed from the cached text if the source has changed since."""
        from tirlite.ir.equal import content_digest

        try:
            func, captures = self._translate()
        except KernelError:
            func, captures = None, {}
        if func is not None and content_digest(func) == self.content:
            self._captures = captures
            return func
        from tirlite.dsl import parse

        return parse(self._known.text)

    @property
    def captures(self) -> Mapping[str, object]:
        _ = self.func
        return self._captures

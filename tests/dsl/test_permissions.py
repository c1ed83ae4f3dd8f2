"""`tl.allow` as a decorator, and permissions in text."""

from __future__ import annotations

import pytest

import tirlite as tl

n = tl.dim("n")
BODY = "\ndef f(x: tl.f32[n], y: tl.f32[n]):\n    for i in range(n):\n        y[i] = x[i] * x[i] + 1\n"


def parsed(decorators: str) -> str:
    return str(tl.parse(f'n = tl.dim("n")\n{decorators}{BODY}'))


def test_a_decorator_grants_to_the_whole_kernel() -> None:
    @tl.kernel
    @tl.allow("contract")
    def f(x: tl.f32[n], y: tl.f32[n]):
        for i in range(n):
            y[i] = x[i] * x[i] + 1

    assert str(f.ir) == parsed('@tl.kernel\n@tl.allow("contract")')
    assert 'with tl.allow("contract"):' in str(f.ir)
    assert "tl.fma" in str(f.lowered)


def test_text_grants_as_the_decorator_does() -> None:
    one, several = parsed('@tl.kernel(allow="contract")'), parsed('@tl.kernel(allow=("contract", "approximate"))')
    assert 'with tl.allow("contract"):' in one
    assert 'with tl.allow("approximate", "contract"):' in several
    with pytest.raises(tl.KernelError, match="takes `allow` alone"):
        parsed('@tl.kernel(strategy="exact")')
    with pytest.raises(tl.KernelError, match="not decorated with @tl.kernel"):
        parsed('@tl.allow("contract")\n@tl.kernel')
    with pytest.raises(tl.KernelError, match='one of "approximate"'):
        parsed('@tl.kernel(allow="fast")')
    with pytest.raises(tl.KernelError, match='one of "approximate", "contract", "reassociate", "rescale"'):
        parsed('@tl.kernel(allow="low_precision_dot")')


def test_a_function_that_is_spliced_in_has_its_callers_permissions() -> None:
    @tl.inline
    @tl.allow("contract")
    def square(x):
        return x * x

    with pytest.raises(tl.KernelError, match="what its caller is granted"):

        @tl.kernel
        def f(x: tl.f32[n]):
            x[0] = square(x[1])

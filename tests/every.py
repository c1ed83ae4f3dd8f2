"""Many small cases in one test: to report one case takes pytest longer than such a case takes."""

from __future__ import annotations

from collections.abc import Callable, Iterable
from inspect import signature


def every(names: str, cases: Iterable[object]) -> Callable[[Callable[..., None]], Callable[..., None]]:
    """As `pytest.mark.parametrize`, but one test goes through all cases, and a failure says which case it is of."""
    keys, taken = names.split(", "), [*cases]

    def over_all(test: Callable[..., None]) -> Callable[..., None]:
        def run(**fixtures: object) -> None:
            for case in taken:
                try:
                    test(**dict(zip(keys, case if len(keys) > 1 else [case], strict=True)), **fixtures)
                except BaseException as error:
                    error.add_note(f"{names} = {case!r}")
                    raise

        whole = signature(test)
        run.__dict__.update(vars(test))
        run.__name__, run.__qualname__, run.__module__ = test.__name__, test.__qualname__, test.__module__
        run.__signature__ = whole.replace(
            parameters=[each for each in whole.parameters.values() if each.name not in keys]
        )
        return run

    return over_all

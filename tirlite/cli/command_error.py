"""The error of a command line that is wrong, and its messages."""

from __future__ import annotations

from collections.abc import Iterator
from contextlib import contextmanager

from tirlite.diag import CapacityError, InternalError, Message, TirliteError


class CommandError(TirliteError):
    """The command line is wrong: whoever typed it must change it."""


class CommandMessage(Message):
    """What is wrong with a command line."""

    raises = CommandError


@contextmanager
def input_at_fault() -> Iterator[None]:
    """Raises CommandError with the same words for an error inside: what was read or told is wrong, no kernel of ours.

    Memory that is too small, and faults of tirlite, stay what they are.
    """
    try:
        yield
    except (CapacityError, InternalError, CommandError):
        raise
    except TirliteError as error:
        raise CommandError(*error.messages) from None

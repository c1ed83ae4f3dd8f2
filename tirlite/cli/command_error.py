"""The error for a wrong command line, and the base class of its messages."""

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
    """Turns errors inside into CommandError: the input is wrong, not a kernel.

    CapacityError and InternalError stay what they are.
    """
    try:
        yield
    except (CapacityError, InternalError, CommandError):
        raise
    except TirliteError as error:
        raise CommandError(*error.messages) from None

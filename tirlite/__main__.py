"""Runs `python -m tirlite`: turns its arguments into an exit code, and into nothing more where Ctrl-C ends it."""

import signal
from collections.abc import Callable
from types import FrameType


def main() -> int:
    """Runs one command, 130 being the code of an interrupted one.

    Before the commands are loaded, and once one is done, Ctrl-C has nothing to bring to a good end, and nobody would
    catch it.
    """
    interrupts: list[int] = []

    def interrupt(number: int, _: FrameType | None) -> None:
        interrupts.append(number)
        raise KeyboardInterrupt

    is_heard = signal.getsignal(signal.SIGINT) is signal.default_int_handler  # not so behind nohup
    if is_heard:
        signal.signal(signal.SIGINT, signal.SIG_DFL)
    run = _program()
    if not is_heard:
        return run()
    try:
        signal.signal(signal.SIGINT, interrupt)
        return run()
    except BaseException:
        if interrupts:  # modules of C that are being loaded make errors of their own of it
            return 130
        raise
    finally:
        signal.signal(signal.SIGINT, signal.SIG_IGN)


def _program() -> Callable[..., int]:
    """The command line with what measures tirlite, or without it, as it is installed."""
    try:
        import tirlite.bench  # noqa: F401
    except ModuleNotFoundError:
        from tirlite.cli.main import main as installed

        return installed
    from tirlite.bench.main import main

    return main


if __name__ == "__main__":
    raise SystemExit(main())

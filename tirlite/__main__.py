"""`python -m tirlite`: the command line's arguments in, the exit code out, and nothing more where Ctrl-C ends it."""

import signal
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
    from tirlite.cli.main import main as run

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


if __name__ == "__main__":
    raise SystemExit(main())

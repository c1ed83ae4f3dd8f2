"""Tells what the environment variables that tirlite heeds ask for, all in one place.

NO_COLOR (https://no-color.org) and FORCE_COLOR (https://force-color.org) count when they are set to anything but
nothing; of both, NO_COLOR wins. TIRLITE_FULL_TRACEBACK=1 shows the frames inside of tirlite too. TIRLITE_CACHE is the
folder of the cache on disk, or 0 or off for none; left out, or with 1 or on, it is `tirlite` in the folder for caches
(XDG_CACHE_HOME).
TIRLITE_PERF=1 tells the profiler perf the names of compiled functions, TIRLITE_GDB=1 the debugger gdb.
TIRLITE_NUM_THREADS is the most threads that run a parallel loop.
"""

from __future__ import annotations

import os

# Words for no cache, and for one in the usual place, of which none is taken for the name of a folder.
_OFF, _ON = ("0", "off", "no", "false"), ("", "1", "on", "yes", "true")


def colour_is_refused() -> bool:
    """Whether colour is wanted nowhere."""
    return bool(os.environ.get("NO_COLOR"))


def colour_is_forced() -> bool:
    """Whether colour is wanted where there is no terminal too."""
    return bool(os.environ.get("FORCE_COLOR"))


def terminal_is_dumb() -> bool:
    """Whether the terminal understands no escape sequences."""
    return os.environ.get("TERM") == "dumb"


def full_traceback() -> bool:
    """Whether errors show the frames inside of tirlite."""
    return os.environ.get("TIRLITE_FULL_TRACEBACK", "0") not in ("", "0")


def cache_folder() -> str:
    """The path of the folder for what was compiled; empty where there is to be none, or no place for it."""
    told = os.environ.get("TIRLITE_CACHE", "").strip()
    if told.lower() in _OFF:
        return ""
    if told.lower() not in _ON:
        return os.path.abspath(os.path.expanduser(told))  # noqa: PTH100, PTH111
    caches = os.environ.get("XDG_CACHE_HOME", "")
    if not os.path.isabs(caches):  # noqa: PTH117
        home = os.environ.get("HOME", "")
        caches = f"{home}/.cache" if os.path.isabs(home) else ""  # noqa: PTH117
    return f"{caches}/tirlite" if caches else ""


def threads() -> str:
    """The most threads that are to run a parallel loop; empty where nothing is said."""
    return os.environ.get("TIRLITE_NUM_THREADS", "")


def perf_is_wanted() -> bool:
    """Whether the names of compiled functions are to be told to the profiler perf."""
    return os.environ.get("TIRLITE_PERF", "0") not in ("", "0")


def gdb_is_wanted() -> bool:
    """Whether the names and lines of compiled functions are to be told to the debugger gdb."""
    return os.environ.get("TIRLITE_GDB", "0") not in ("", "0")


def lines_are_wanted() -> bool:
    """Whether compiled functions are to tell where they come from: for gdb, and for perf where it is asked for."""
    return gdb_is_wanted() or os.environ.get("TIRLITE_PERF", "0") == "lines"


def without_cache() -> None:
    """Lets this process, and those that it starts, compile anew what it compiles: for who measures the compiler."""
    os.environ["TIRLITE_CACHE"] = "0"

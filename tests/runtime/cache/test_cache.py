"""The cache on disk: what a later process finds there, and what is no more than a miss."""

from __future__ import annotations

import os
import subprocess
import sys
from collections.abc import Callable
from pathlib import Path

import numpy as np
import pytest

import tirlite as tl
from tirlite.runtime import cache as entries
from tirlite.runtime.cache import Folder
from tirlite.runtime.pool import pool_address

n = tl.dim("n")
KEY = bytes(range(20))


@pytest.fixture
def folder(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A cache of code alone; what is kept of translations has tests of its own."""
    path = tmp_path / "cache"
    monkeypatch.setenv("TIRLITE_CACHE", str(path))
    monkeypatch.setattr("tirlite.driver.manifest.folder", lambda: None)
    return path


def doubled(factor: int = 2) -> tl.Kernel:
    @tl.kernel
    def scale(x: tl.i64[n], y: tl.out[tl.i64[n]]):
        for i in range(n):
            y[i] = factor * x[i]

    return scale


def was_found(kernel: tl.Kernel) -> bool:
    """Calls the kernel, which doubles, and tells whether its code was in the cache."""
    assert kernel(np.arange(5)).tolist() == [0, 2, 4, 6, 8]
    assert ("cache" in kernel.timing) != ("llvm emit" in kernel.timing)
    return "cache" in kernel.timing


def only_file(folder: Path) -> Path:
    (file,) = folder.iterdir()
    return file


def test_what_was_compiled_is_found_by_an_equal_kernel(folder: Path) -> None:
    assert not was_found(doubled())
    assert was_found(doubled())
    assert doubled(3)(np.arange(3)).tolist() == [0, 3, 6]


def test_each_option_has_entries_of_its_own(folder: Path) -> None:
    assert not was_found(doubled())
    assert not was_found(tl.compile(doubled(), debug=True))
    assert not was_found(tl.compile(doubled(), target=tl.Target.host(workers=7)))
    assert was_found(tl.compile(doubled(), debug=True))


def test_kernels_in_a_schedule_are_told_apart_by_what_they_do(folder: Path) -> None:
    @tl.kernel
    def twice(x: tl.i64[1], y: tl.i64[1]):
        for i in range(1):
            y[i] = 2 * x[i]

    def one(text: str) -> tl.PrimFunc:
        return tl.parse(f"@tl.kernel\ndef fast(x: tl.i64[1], y: tl.i64[1]):\n    y[0] = {text}\n")

    def scheduled(text: str) -> tl.Kernel:
        s = tl.schedule(doubled())
        s.split("i", 1, tail="peeled")
        s.tensorize("i.inner", twice, one(text))
        return tl.compile(doubled(), schedule=s)

    assert not was_found(scheduled("x[0] + x[0]"))
    assert not was_found(scheduled("x[0] << tl.i64(1)"))
    assert was_found(scheduled("x[0] + x[0]"))


def test_what_another_one_watches_or_plans_is_compiled_each_time(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    # What all kernels share is loaded once a process, and would be kept.
    monkeypatch.setenv("TIRLITE_CACHE", "0")
    pool_address()
    monkeypatch.setenv("TIRLITE_CACHE", str(folder))
    steps: list[object] = []
    for _ in range(2):
        assert not was_found(tl.compile(doubled(), observers=[steps.append]))
        assert not was_found(tl.compile(doubled(), strategy=lambda problem: tl.plan.solve(problem, "none")))
        assert not was_found(tl.compile(doubled(), strategy="exact", time_limit=1.0))
    assert not folder.exists()


def test_faults_of_cached_code_tell_all(folder: Path) -> None:
    def checked() -> tl.Kernel:
        @tl.kernel
        def picky(x: tl.i64[n]):
            for i in range(n):
                assert x[i] < 3, f"element {i} is {x[i]}"

        return picky

    texts = []
    for _ in range(2):
        with pytest.raises(tl.KernelAssertionError) as caught:
            checked()(np.arange(5))
        texts.append(str(caught.value))
    assert "element 3 is 3" in texts[0]
    assert texts[0] == texts[1]


def test_a_kernel_with_a_workspace_is_found_and_tells_of_sizes(folder: Path) -> None:
    def sums() -> tl.Kernel:
        @tl.kernel
        def both(x: tl.f64[n], k: tl.i64, y: tl.out[tl.f64[n]]):
            t = tl.alloc(tl.f64[n + k])
            for i in range(n):
                t[i + k] = x[i] + 1
            for i in range(n):
                y[i] = t[i + k] * 2

        return both

    for times in range(2):
        kernel = sums()
        assert kernel(np.ones(2000), 5).sum() == 8000
        assert ("cache" in kernel.timing) == (times == 1)
        with pytest.raises(tl.CallValueError, match="would allocate `t` with the extent -3"):
            kernel(np.ones(2), -5)


def test_with_a_plan_for_each_shape_the_planner_is_made_anew(folder: Path) -> None:
    def chain() -> tl.Kernel:
        @tl.kernel(strategy="per_shape")
        def steps(x: tl.f64[n], y: tl.out[tl.f64[n]]):
            a = tl.alloc(tl.f64[n])
            b = tl.alloc(tl.f64[2 * n])
            for i in range(n):
                a[i] = x[i] + 1
            for i in range(n):
                b[2 * i] = a[i]
            for i in range(n):
                y[i] = b[2 * i]

        return steps

    for times in range(2):
        kernel = chain()
        assert kernel(np.ones(100)).sum() == 200
        assert ("cache" in kernel.timing) == (times == 1)


def test_an_array_without_elements_has_an_entry_of_its_own(folder: Path) -> None:
    for _ in range(2):
        kernel = doubled()
        assert kernel(np.arange(0)).shape == (0,)
        assert was_found(kernel) == (_ == 1)
    assert len(list(folder.iterdir())) == 2


def damaged_by(change: Callable[[bytearray], None]) -> Callable[[Path], None]:
    def damage(file: Path) -> None:
        content = bytearray(file.read_bytes())
        change(content)
        file.write_bytes(content)

    return damage


def flip(at: int) -> Callable[[bytearray], None]:
    def change(content: bytearray) -> None:
        content[at] ^= 4

    return change


def linked_elsewhere(file: Path) -> None:
    target = file.parent.parent / "elsewhere"
    file.rename(target)
    file.symlink_to(target)


def a_folder_instead(file: Path) -> None:
    file.unlink()
    file.mkdir()


def a_pipe_instead(file: Path) -> None:
    file.unlink()
    os.mkfifo(file)


@pytest.mark.parametrize(
    "damage",
    [
        *(damaged_by(flip(at)) for at in (0, 9, 30, 60, 200, -1)),
        damaged_by(lambda content: content.clear()),
        damaged_by(lambda content: content.__delitem__(slice(100, None))),
        damaged_by(lambda content: content.extend(b"more")),
        linked_elsewhere,
        a_folder_instead,
        a_pipe_instead,
        lambda file: file.chmod(0o666),
        lambda file: file.parent.chmod(0o755),
    ],
    ids=[
        *("magic", "sum", "key", "code", "middle", "last"),
        *("empty", "cut", "longer", "link", "folder", "pipe", "open to all", "open folder"),
    ],
)
def test_damage_is_a_miss(folder: Path, damage: Callable[[Path], None]) -> None:
    assert not was_found(doubled())
    damage(only_file(folder))
    assert not was_found(doubled())


def test_a_directory_in_the_place_of_an_entry_gives_way(folder: Path) -> None:
    assert not was_found(doubled())
    file = only_file(folder)
    file.unlink()
    (file / "full").mkdir(parents=True)
    assert not was_found(doubled())
    assert was_found(doubled())


def test_an_entry_under_another_key_is_a_miss(folder: Path) -> None:
    entries.keep(KEY, ("plain",))
    assert entries.find(KEY) == ("plain",)
    only_file(folder).rename(folder / KEY[::-1].hex())
    assert entries.find(KEY[::-1]) is None


def test_another_processor_has_other_keys(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    from tirlite.driver import content
    from tirlite.runtime import cache as entries

    kernel = doubled()
    here = content.content_key(kernel.content, kernel.options, "all")
    monkeypatch.setattr(entries, "processor", lambda: b"flags: none")
    monkeypatch.setattr(content, "compiler_stamp", entries.compiler_stamp.__wrapped__)
    assert content.content_key(kernel.content, kernel.options, "all") != here


def test_keys_count_the_files_of_the_compiler_and_no_others(monkeypatch: pytest.MonkeyPatch) -> None:
    from tirlite.runtime import cache as entries

    seen: list[str] = []
    right = entries._sources
    monkeypatch.setattr(entries, "_sources", lambda folder, apart: seen.extend(found := right(folder, apart)) or found)
    entries.compiler_stamp.__wrapped__()
    home = str(Path(tl.__file__).parent)
    assert seen != []
    assert [line for line in seen if not line.startswith(f"{home}{os.sep}")] == []
    for part in ("record.py", "codegen/lower.py", "runtime/cache.py"):
        assert any(line.startswith(f"{home}/{part} ") for line in seen)


def test_a_link_in_the_place_of_the_folder_is_not_followed(folder: Path) -> None:
    (folder.parent / "real").mkdir(mode=0o700)
    folder.symlink_to(folder.parent / "real")
    assert not was_found(doubled())
    assert not was_found(doubled())
    assert list((folder.parent / "real").iterdir()) == []
    assert Folder(str(folder)).refusal == "not a directory"


def test_where_nothing_can_be_written_all_else_goes_on(folder: Path) -> None:
    folder.write_text("a file in the place of the folder")
    assert not was_found(doubled())
    assert not was_found(doubled())


def test_a_full_disk_leaves_nothing_behind(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    def full(*args: object, **named: object) -> None:
        raise OSError(28, "No space left on device")

    monkeypatch.setattr(os, "replace", full)
    assert not was_found(doubled())
    assert list(folder.iterdir()) == []


def test_the_oldest_files_go_first(tmp_path: Path) -> None:
    place = Folder(str(tmp_path / "new" / "cache"))
    names = [f"{number:040x}" for number in range(4)]
    for number, name in enumerate(names):
        place.write(name, bytes(100))
        os.utime(tmp_path / "new" / "cache" / name, (number, number))
    place.prune(250)
    assert [each.name for each in place.files()] == names[2:]
    assert place.clear() == 2
    assert (tmp_path / "new" / "cache").stat().st_mode & 0o777 == 0o700


def test_what_else_lies_in_the_folder_stays(tmp_path: Path) -> None:
    place = Folder(str(tmp_path / "home"))
    place.write(KEY.hex(), bytes(100))
    home = tmp_path / "home"
    (home / "letters" / "old").mkdir(parents=True)
    others = ["notes.txt", "0123", "e" * 39, "e" * 41, "e" * 40 + ".txt", "E" * 40, "film.part"]
    for name in others:
        (home / name).write_bytes(bytes(300))
        os.utime(home / name, (0, 0))
    left_over = home / f"{KEY.hex()}.17.0123456789ab.part"
    left_over.write_bytes(bytes(300))
    os.utime(left_over, (0, 0))
    place.prune(200)
    assert [each.name for each in place.files()] == [KEY.hex()]
    assert not left_over.exists()
    assert place.clear() == 1
    assert sorted(each.name for each in home.iterdir()) == sorted([*others, "letters"])
    assert (home / "letters" / "old").is_dir()


PROGRAM = """
import sys
import numpy as np
import tirlite as tl

n = tl.dim("n")

@tl.kernel
def add(x: tl.f32[n], y: tl.f32[n], z: tl.out[tl.f32[n]]):
    for i in tl.parallel(n):
        z[i] = x[i] + y[i]

x = np.ones(300, np.float32)
assert (add(x, x) == 2).all()
apart = ("llvmlite", "tirlite.codegen", "tirlite.rewrite.", "tirlite.dsl.expression", "tirlite.ir.printer_stmt")
print(*(name for name in sys.modules if name.startswith(apart)))
"""


def test_a_later_process_loads_nothing_that_compiles(folder: Path) -> None:
    file = folder.parent / "program.py"
    file.write_text(PROGRAM)
    loaded = [
        subprocess.run([sys.executable, file], capture_output=True, text=True, check=True).stdout.split()
        for _ in range(2)
    ]
    assert "llvmlite.binding" in loaded[0]
    assert set(loaded[1]) == {"tirlite.rewrite.forms", "tirlite.rewrite.options"}


EIGHT = """
import os
import runpy
import sys
import numpy as np
import tirlite as tl

text = 'n = tl.dim("n")\\n@tl.kernel\\ndef first(x: tl.f32[n]):\\n    for i in range(n):\\n        x[i] = 1\\n'
tl.compile(tl.parse(text))(np.zeros(4, np.float32))  # loads what compiles, once for all
parent, children = os.getpid(), []
while len(children) < 8 and os.getpid() == parent:
    children.append(os.fork())
if os.getpid() != parent:
    runpy.run_path(sys.argv[1])
    os._exit(0)
sys.exit(any(os.waitpid(child, 0)[1] for child in children))
"""


def test_eight_processes_write_at_once(folder: Path) -> None:
    file, start = folder.parent / "program.py", folder.parent / "start.py"
    file.write_text(PROGRAM)
    start.write_text(EIGHT)
    subprocess.run([sys.executable, start, file], stdout=subprocess.DEVNULL, check=True)
    kept = {each.name: each.read_bytes() for each in folder.iterdir()}
    assert not any("." in name for name in kept)
    subprocess.run([sys.executable, file], stdout=subprocess.DEVNULL, check=True)
    assert {each.name: each.read_bytes() for each in folder.iterdir()} == kept


KILLED = """
import os, signal, sys
from tirlite.runtime.cache import Folder
from tirlite.runtime.pool import pool_address

place = Folder(sys.argv[1])
open_file = os.fdopen

class Half:
    def __init__(self, *args):
        self.file = open_file(*args)
    def __enter__(self):
        return self
    def __exit__(self, *error):
        self.file.close()
    def write(self, data):
        self.file.write(data[:len(data) // 2])
        self.file.flush()
        os.kill(os.getpid(), signal.SIGKILL)

def killed(*args, **named):
    os.kill(os.getpid(), signal.SIGKILL)

for name, instead in (("fdopen", Half), ("replace", killed)):
    child = os.fork()
    if not child:
        setattr(os, name, instead)
        place.write("e" * 40, bytes(5000))
    assert os.waitpid(child, 0)[1] == signal.SIGKILL
"""


def test_who_is_killed_while_writing_leaves_no_entry(folder: Path) -> None:
    subprocess.run([sys.executable, "-c", KILLED, folder], check=True)
    place = Folder(str(folder))
    entry = "e" * 40
    assert [each.name.split(".")[0] for each in place.files()] == [entry] * 2
    assert place.read(entry) is None
    place.write(entry, b"whole")
    assert place.read(entry) == b"whole"
    for each in place.files():
        os.utime(folder / each.name, (0, 0))
    place.prune()
    assert [each.name for each in place.files()] == [entry]


def test_a_disk_that_takes_no_more_is_no_error(folder: Path) -> None:
    file = folder.parent / "program.py"
    # Files of this process may have so many bytes.
    file.write_text("import resource; resource.setrlimit(resource.RLIMIT_FSIZE, (99, 99))" + PROGRAM)
    subprocess.run([sys.executable, "-B", file], stdout=subprocess.DEVNULL, check=True)
    assert list(folder.iterdir()) == []


def test_a_folder_that_may_only_be_read_serves(folder: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The rights of files do not stop the user who may do all; a disk that is mounted to be read stops everyone."""
    assert not was_found(doubled())
    opened = os.open

    def reading(path: object, flags: int, *args: int, **named: int) -> int:
        if flags & (os.O_WRONLY | os.O_RDWR | os.O_CREAT):
            raise OSError(30, "Read-only file system")
        return opened(path, flags, *args, **named)

    monkeypatch.setattr(os, "open", reading)
    assert was_found(doubled())
    for _ in range(2):
        assert not was_found(tl.compile(doubled(), debug=True))


def test_links_that_are_planted_lead_nowhere(folder: Path) -> None:
    target = folder.parent / "precious"
    target.write_text("precious")
    entries.keep(KEY, ("plain",))
    file = only_file(folder)
    file.unlink()
    for link in (target, folder.parent / "nowhere", folder):
        file.symlink_to(link)
        assert entries.find(KEY) is None
        entries.keep(KEY, ("plain",))
        assert entries.find(KEY) == ("plain",)
        assert not file.is_symlink()
        file.unlink()
    os.link(target, file)
    assert entries.find(KEY) is None
    entries.keep(KEY, ("plain",))
    assert target.read_text() == "precious"
    assert not (folder.parent / "nowhere").exists()

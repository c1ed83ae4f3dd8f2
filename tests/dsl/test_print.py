"""`print` in kernels: the same lines, in the same order, from the interpreter, compiled code, and debug code."""

from __future__ import annotations

import threading

import numpy as np
import pytest

import tirlite as tl

n, m = tl.dims("n m")

WORD = "{word}"


@tl.kernel
def told(x: tl.f32[n], h: tl.f16[n], k: tl.u64[n], y: tl.out[tl.f32[n]]):
    print("start", n, True, 0.5, WORD)
    for i in range(n):
        if i == 2:
            continue
        print("at", i, x[i], h[i], k[i], x[i] > 0)
        y[i] = x[i] * 2
        print(f"{y[i]:.3f}|{i:>3}|{{}}", f"{i:+d}", sep=";", end="\n\n")
    print()


LINES = """start 4 True 0.5 {word}
at 0 0.1 0.1 18446744073709551615 True
0.200|  0|{};+0

at 1 -0.0 1.0 1 False
-0.000|  1|{};+1

at 3 1e+30 inf 3 True
2000000030094932439754377711681.536|  3|{};+3


"""


def test_all_ways_to_run_a_kernel_print_the_same(capsys: pytest.CaptureFixture[str]) -> None:
    x = np.array([0.1, -0.0, np.nan, 1e30], np.float32)
    h = np.array([0.1, 1, 2, np.inf], np.float16)
    k = np.array([2**64 - 1, 1, 2, 3], np.uint64)
    expected = LINES.replace("2000000030094932439754377711681.536", f"{float(x[3] * 2):.3f}")
    lowered = tl.compile(told.lowered, strategy="none")
    for run in (told, told.interpret, tl.compile(told, debug=True), lowered, told):
        run(x, h, k, np.empty(4, np.float32))
        assert capsys.readouterr().out == expected
    assert tl.structural_equal(tl.parse(str(told.ir)), told.ir)


def test_lines_keep_loops_as_they_are_written(capsys: pytest.CaptureFixture[str]) -> None:
    @tl.kernel(allow=("contract", "reassociate"))
    def chain(x: tl.f32[n, m], y: tl.out[tl.f32[n, m]]):
        t = tl.alloc(tl.f32[n, m])
        for i in range(n):
            for j in range(m):
                print("first", i, j)
                t[i, j] = tl.exp(x[i, j])
        for i in range(n):
            for j in range(m):
                print("second", i, j)
                y[i, j] = t[i, j] * 2 + 1

    size = 40
    chain(np.ones((size, size), np.float32))
    pairs = [f"{i} {j}" for i in range(size) for j in range(size)]
    assert capsys.readouterr().out.splitlines() == [f"{word} {pair}" for word in ("first", "second") for pair in pairs]
    s = tl.schedule(chain)
    for step in (
        lambda: s.reorder(s.loop("i/j", 0), s.loop("i", 0)),
        lambda: s.parallel(s.loop("i", 0)),
        lambda: s.vectorize(s.loop("i/j", 0), 8),
    ):
        with pytest.raises(tl.KernelError, match="step-does-not-fit.* prints, so that iterations run in order"):
            step()


def test_a_fault_comes_after_the_lines_before_it(capsys: pytest.CaptureFixture[str]) -> None:
    @tl.kernel
    def gather(x: tl.f32[n], k: tl.i64[m], y: tl.out[tl.f32[m]]):
        for i in range(m):
            print(i)
            y[i] = x[k[i]]

    for run in (gather, gather.interpret):
        with pytest.raises(tl.KernelRunError, match="index 7 is out of bounds"):
            run(np.ones(3, np.float32), np.array([0, 7, 1]))
        assert capsys.readouterr().out == "0\n1\n"


def test_what_sys_stdout_raises_ends_the_kernel(monkeypatch: pytest.MonkeyPatch) -> None:
    class Full:
        def write(self, _text: str) -> None:
            raise OSError("no space left")

        def flush(self) -> None:
            """Nothing to flush."""

    @tl.kernel
    def count(x: tl.i32[1]):
        for i in range(3):
            x[0] = tl.i32(i)
            print(i)

    x = np.array([9], np.int32)
    with monkeypatch.context() as patch:
        patch.setattr("sys.stdout", Full())
        with pytest.raises(OSError, match="no space left"):
            count(x)
    assert x[0] == 0
    count(x)
    assert x[0] == 2


def test_threads_do_not_mix_their_lines(monkeypatch: pytest.MonkeyPatch) -> None:
    @tl.kernel
    def counted(x: tl.i32[1]):
        print("at", x[0])
        x[0] += 1

    class Lines:
        def __init__(self) -> None:
            self.texts: list[str] = []

        def write(self, text: str) -> None:
            self.texts.append(text)

    lines = Lines()
    monkeypatch.setattr("sys.stdout", lines)
    arrays = [np.full(1, 1000 * number, np.int32) for number in range(3)]

    def run(x: np.ndarray) -> None:
        for _ in range(300):  # by the quick way, too
            counted(x)

    threads = [threading.Thread(target=run, args=(x,)) for x in arrays]
    for thread in threads:
        thread.start()
    for thread in threads:
        thread.join()
    assert sorted(lines.texts) == sorted(f"at {1000 * number + k}\n" for number in range(3) for k in range(300))


def test_a_line_of_what_was_never_written_is_refused() -> None:
    @tl.kernel
    def fresh(x: tl.f32[n]):
        t = tl.alloc(tl.f32[n])
        if x[0] > 0:
            t[0] = x[0]
        print(t[0])

    for run in (fresh.interpret, tl.compile(fresh, debug=True)):
        with pytest.raises(tl.KernelRunError, match=r"a value that is printed depends on `t\[0\]`"):
            run(np.zeros(2, np.float32))


def test_kernels_that_print_are_not_called_by_iterations_without_order() -> None:
    @tl.kernel
    def one(x: tl.f32[n]):
        print(x[0])

    with pytest.raises(tl.KernelError, match="`one`, which prints, is called in the loop over `i`"):

        @tl.kernel
        def several(x: tl.f32[n]):
            for i in tl.parallel(m):
                t = tl.alloc(tl.f32[n])
                for j in range(n):
                    t[j] = x[j] + i
                tl.call(one, t)


@pytest.mark.parametrize(
    ("line", "told_is"),
    [
        ("print(x)", "print takes numbers and texts here, not the buffer `x`"),
        ("print(x[0], file=1)", "print has no keyword `file`"),
        ("print(x[0], end=n)", "print takes a text here"),
        ("print('{} {}'.format(x[0]))", "this format does not fit"),
        ("y = print(x[0])", "print means nothing here"),
    ],
)
def test_what_print_does_not_take(line: str, told_is: str) -> None:
    with pytest.raises(tl.KernelError, match=told_is.replace("{", r"\{")):
        tl.parse(f'n = tl.dim("n")\n\n@tl.kernel\ndef f(x: tl.f32[n]):\n    {line}\n')


def test_exported_code_does_not_print(tmp_path: object) -> None:
    @tl.kernel
    def show(x: tl.f32[n]):
        print(x[0])

    with pytest.raises(tl.KernelError, match="`print` in exported code cannot be compiled"):
        show.export(str(tmp_path))

"""What shells need to complete a command line."""

from __future__ import annotations

import shutil
import subprocess

import pytest

from tirlite.cli.main import main


@pytest.mark.parametrize("shell", ["bash", "zsh", "fish"])
def test_each_command_and_its_options_are_known(shell: str, capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", shell]) == 0
    script = capsys.readouterr().out
    assert all(word in script for word in ("demo", "completion", "where", "clear", "stop-at-fit"))


@pytest.mark.skipif(shutil.which("bash") is None, reason="there is no bash")
def test_bash_completes(capsys: pytest.CaptureFixture[str]) -> None:
    assert main(["completion", "bash"]) == 0
    script = capsys.readouterr().out
    for words, wanted in ((("tirlite", "pl"), "plan"), (("tirlite", "plan", "--cap"), "--capacity")):
        line = f"COMP_WORDS=({' '.join(words)}); COMP_CWORD={len(words) - 1}; _tirlite; echo ${{COMPREPLY[@]}}"
        done = subprocess.run(["bash", "-c", f"{script}\n{line}"], capture_output=True, text=True, check=True)
        assert done.stdout.split() == [wanted]

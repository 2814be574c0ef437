"""Messages on a narrow terminal: lines break between words, and paths stay whole."""

from __future__ import annotations

import fcntl
import os
import pty
import re
import struct
import subprocess
import sys
import termios
from io import StringIO
from pathlib import Path

from rich.console import Console

from relive.cli.progress import LiveObserver
from relive.experiments.spec import make_spec

WIDTH = 30
COMMANDS = {
    "table --runs-dir {long}": "error: there is no runs directory {long}: give another with --runs-dir, or start with "
    "relive run",
    "paper --tuned --method ewc --scenario task --runs-dir {long}": "error: {long} has no finished grid search for "
    "some of these settings; first run: relive grid --protocol split --scenario task --method ewc",
}


def on_a_terminal(words: list[str], cwd: Path) -> list[str]:
    """Run relive on a terminal of 30 columns, and return the lines that it prints, without colours."""
    ours, theirs = pty.openpty()
    fcntl.ioctl(theirs, termios.TIOCSWINSZ, struct.pack("HHHH", 40, WIDTH, 0, 0))
    environment = {name: value for name, value in os.environ.items() if name != "COLUMNS"} | {"TERM": "xterm"}
    process = subprocess.Popen(
        [sys.executable, "-m", "relive", *words], cwd=cwd, env=environment, stdin=theirs, stdout=theirs, stderr=theirs
    )
    os.close(theirs)
    said = b""
    try:
        while more := os.read(ours, 4096):
            said += more
    except OSError:  # the other end is closed
        pass
    os.close(ours)
    process.wait(60)
    return re.sub(r"\x1b\[[\d;?]*[a-zA-Z]", "", said.decode()).splitlines()


def test_a_message_breaks_between_words(tmp_path: Path) -> None:
    long = f"{'a_folder_with_quite_a_long_name/' * 2}runs"
    for command, message in COMMANDS.items():
        lines = on_a_terminal(command.format(long=long).split(), tmp_path)
        assert " ".join(lines).split() == message.format(long=long).split()
        assert len(lines) > 3
        assert all(len(line.rstrip()) <= WIDTH or long in line for line in lines)


def test_the_bar_of_a_run_fits_a_narrow_terminal() -> None:
    console = Console(file=StringIO(), width=80, force_terminal=True)
    observer = LiveObserver(make_spec("split", "class", "rtf", dataset="digits", iters=20_000), console)
    observer.task_started(0)
    observer.stepped(0, 12_345, 0.1234)
    observer.probed(0, [0.987])
    with console.capture() as captured:
        console.print(observer.progress.get_renderable())
    (line,) = captured.get().splitlines()
    assert "12345/100000" in line
    assert "accuracy 98.7 %" in line
    assert "left" in line

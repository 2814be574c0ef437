"""Some faults at system calls, drawn at random; ``make faults`` tries all of them."""

from __future__ import annotations

import json
import subprocess
import sys
from pathlib import Path

import pytest

from tests.faults.operations import OPERATIONS

ROOT = Path(__file__).parents[2]


def test_whatever_call_fails_files_are_whole_and_the_next_command_works(tmp_path: Path) -> None:
    output = tmp_path / "faults.json"
    done = subprocess.run(
        [sys.executable, "-m", "tests.faults", "--sample", "3", "--output", str(output)],
        cwd=ROOT,
        capture_output=True,
        text=True,
        timeout=300,
    )
    if done.returncode == 3:
        pytest.skip(done.stdout.strip())
    assert done.returncode == 0, done.stdout + done.stderr
    found = json.loads(output.read_text())["operations"]
    assert found.keys() == {operation.name for operation in OPERATIONS}
    for tried in found.values():
        assert sum(tried["faults"].values()) >= 3
        assert tried["wrong"] == []

"""Methods and protocols from installed packages, sound and broken, as every command meets them."""

from __future__ import annotations

import os
import subprocess
import sys
from pathlib import Path

import pytest

FACTS = """
from relive._util.registry import Entry
from relive.core.facts import MethodFacts, Setting
from relive.data.catalogue import DatasetFacts, ProtocolFacts

MINE = MethodFacts("theirs", "theirs.code:Mine", "Theirs", settings=(Setting("lam", 3.0, 0, 4, "how much", "β"),))
TAKEN = MethodFacts("si", "theirs.code:Mine", "Theirs")
PARTIAL = ProtocolFacts("theirs", "Theirs", "theirs.code:SHORT", {"tasks": 2, "iters": 3})
NETWORK = Entry("their-network", "theirs.code:make", "Theirs")
OPTIMIZER = Entry("their-steps", "theirs.code:Steps", "Theirs")
DATA = DatasetFacts("theirs", "Theirs", "theirs.code:load")
"""
CODE = """
from sklearn.datasets import load_digits

from relive import Method, Protocol
from relive.data.protocols import split


class Mine(Method):
    def __init__(self, lam: float = 3.0) -> None:
        self.lam = lam

    def before_task(self, net, known):
        pass


def load():
    return load_digits(return_X_y=True)


SHORT = Protocol("short", split)
"""
SOUND = """
[relive.methods]
theirs = theirs.facts:MINE
[relive.protocols]
theirs = theirs.facts:PARTIAL
[relive.encoders]
their-network = theirs.facts:NETWORK
[relive.optimizers]
their-steps = theirs.facts:OPTIMIZER
[relive.datasets]
theirs = theirs.facts:DATA
"""
QUICK = ["run", "--method", "theirs", "--dataset", "theirs", "--protocol", "theirs", "--hidden", "5", "--quiet"]


@pytest.fixture
def package(tmp_path: Path) -> Path:
    """A package as pip installs it."""
    package, about = tmp_path / "site" / "theirs", tmp_path / "site" / "theirs-1.2.dist-info"
    package.mkdir(parents=True)
    about.mkdir()
    (package / "__init__.py").write_text("")
    (package / "facts.py").write_text(FACTS)
    (package / "code.py").write_text(CODE)
    (about / "METADATA").write_text("Metadata-Version: 2.1\nName: theirs\nVersion: 1.2\n")
    (about / "entry_points.txt").write_text(SOUND)
    return package


def registers(package: Path, points: str) -> None:
    """Give the package other entry points."""
    (package.parent / "theirs-1.2.dist-info" / "entry_points.txt").write_text(points)


def relive(package: Path, *words: str) -> subprocess.CompletedProcess[str]:
    """Run a command in a process in which the package is installed."""
    path = os.pathsep.join([str(package.parent), *sys.path])
    return subprocess.run(
        [sys.executable, "-m", "relive", *words],
        cwd=package.parents[1],
        env=os.environ | {"PYTHONPATH": path, "COLUMNS": "200"},
        capture_output=True,
        text=True,
    )


def test_a_partial_preset_is_completed(package: Path) -> None:
    said = relive(package, "run", "--help")
    assert (said.returncode, said.stderr) == (0, "")
    assert "2 (theirs)" in said.stdout
    assert "0.001 (theirs)" in said.stdout


def test_installed_encoders_and_optimizers_are_listed(package: Path) -> None:
    for command in ("run", "fit"):
        assert "inputs (none), their-network" in (text := " ".join(relive(package, "run", "--help").stdout.split()))
        assert "adam, sgd, their-steps" in text
        assert "their-network" in relive(package, command, "--help").stdout


@pytest.mark.parametrize(
    ("points", "facts", "why"),
    [
        ("[relive.protocols]\nit = theirs.facts:PARTIAL", "import nowhere", "No module named 'nowhere'"),
        ("[relive.encoders]\nit = theirs.facts:NONE", FACTS, "has no attribute 'NONE'"),
        ("[relive.methods]\nit = theirs.facts:TAKEN", FACTS, "there is another method named 'si'"),
        ("[relive.methods]\nit = theirs.facts:NETWORK", FACTS, "it must refer to a relive.core.facts.MethodFacts"),
        ("[relive.methods]\nit = theirs.facts:A", "raise SystemExit(3)", "SystemExit: 3"),
    ],
)
def test_what_cannot_be_used_is_named_and_breaks_no_command(package: Path, points: str, facts: str, why: str) -> None:
    registers(package, points)
    (package / "facts.py").write_text(facts)
    said = relive(package, "methods")
    assert said.returncode == 0
    assert "Zenke" in said.stdout
    assert said.stderr.startswith("note: the entry point 'it' of theirs 1.2 (relive.")
    assert said.stderr.count("is left out") == 1
    assert why in said.stderr
    assert relive(package, "--version").returncode == 0


def test_the_built_in_method_is_not_taken_for_an_installed_one_in_silence(package: Path) -> None:
    registers(package, "[relive.methods]\nit = theirs.facts:TAKEN")
    said = relive(package, "run", "--method", "si", "--dataset", "nowhere.npz")
    assert "is left out: InputError: there is another method named 'si'" in said.stderr


def test_code_that_has_changed_is_another_run(package: Path) -> None:
    def runs() -> set[str]:
        said = relive(package, *QUICK)
        assert said.returncode == 0, said.stderr
        return {path.name for path in (package.parents[1] / "runs").iterdir()}

    assert len(runs()) == 1
    assert len(runs()) == 1
    (package / "code.py").write_text(CODE + "\n# something else\n")
    assert len(runs()) == 2


def test_an_error_in_an_installed_method_is_said_to_be_there(package: Path) -> None:
    code = CODE.replace("        pass", "        raise RuntimeError('theirs')")
    (package / "code.py").write_text(code)
    said = relive(package, *QUICK)
    line = code[: code.index("raise")].count("\n") + 1
    assert f"code.py, line {line}: RuntimeError: theirs" in said.stderr
    assert "bug in relive" not in said.stderr


@pytest.mark.slow
def test_workers_do_not_repeat_what_was_said(package: Path) -> None:
    registers(package, "[relive.methods]\nit = theirs.facts:TAKEN")
    (package.parents[1] / "mine.py").write_text("import relive\nclass Typo(relive.Method):\n  regularize = print\n")
    sizes = ["--dataset", "digits", "--iters", "1", "--hidden", "5"]
    said = relive(package, "compare", "--method", "mine.py:Typo", *sizes, "--seeds", "2", "--workers", "2")
    assert said.returncode == 0, said.stderr
    assert said.stderr.count("is not a hook") == said.stderr.count("is left out") == 1, said.stderr


def test_settings_are_listed_with_symbol_and_limits(package: Path) -> None:
    assert "lam=3  β, how much (0 to 4)" in relive(package, "methods", "theirs").stdout

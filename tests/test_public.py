"""The public package: names, quick imports, and working links."""

from __future__ import annotations

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

import relive

README = Path(__file__).parents[1] / "README.md"


@pytest.mark.parametrize("name", relive.__all__)
def test_every_public_name_is_there_and_documented(name: str) -> None:
    thing = getattr(relive, name)
    if name.isupper():  # data: the docstring would be its type's
        assert thing
        return
    assert thing.__name__ == name
    assert thing.__doc__
    assert not thing.__doc__.startswith(f"{name}(")  # its own docstring, not the one that a dataclass generates


def test_dir_lists_the_public_names() -> None:
    assert dir(relive) == sorted(relive.__all__)
    assert len(set(relive.__all__)) == len(relive.__all__)


def test_an_unknown_name() -> None:
    with pytest.raises(AttributeError, match="no attribute 'nonsense'"):
        _ = relive.nonsense


@pytest.mark.parametrize(
    "code",
    [
        "import relive",
        "import relive; relive.RunSpec; relive.Fidelity; relive.ReliveError",
        "from relive.cli import main; sys.argv = ['relive', '--help']; main()",
        "from relive.cli import main; sys.argv = ['relive', 'run', '--help']; main()",
        "from relive.cli import main; sys.argv = ['relive', '--version']; main()",
    ],
)
def test_torch_is_imported_only_by_what_trains(code: str) -> None:
    program = f"""
import sys, atexit
atexit.register(lambda: sys.stderr.write("torch" if "torch" in sys.modules else "no torch"))
{code}
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stderr == "no torch"


def test_an_interrupt_is_one_from_the_first_moment(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise KeyboardInterrupt")
    environment = {**os.environ, "PYTHONPATH": f"{tmp_path}:{os.environ.get('PYTHONPATH', '')}"}
    done = subprocess.run(
        [sys.executable, "-m", "relive", "--help"], env=environment, capture_output=True, text=True, check=False
    )
    assert (done.returncode, done.stderr) == (130, "stopped.\n")


def test_a_command_line_without_its_extra_names_it(tmp_path: Path) -> None:
    (tmp_path / "typer.py").write_text("raise ModuleNotFoundError('gone', name='typer')")
    environment = {**os.environ, "PYTHONPATH": str(tmp_path)}
    command = [sys.executable, "-m", "relive", "methods"]
    done = subprocess.run(command, env=environment, capture_output=True, text=True, check=False)
    said = "the command line needs typer, which is not installed: pip install 'relive[cli]'\n"
    assert (done.returncode, done.stdout, done.stderr) == (1, "", said)


def test_the_library_needs_nothing_of_the_extras() -> None:
    program = """
import sys
for name in ("typer", "matplotlib", "jinja2", "distributed", "onnx", "starlette", "uvicorn", "pyarrow", "pandas"):
    sys.modules[name] = None  # importing it is an error
import relive
for name in relive.__all__:
    getattr(relive, name)
print(relive.ContinualClassifier().fit([[0.0], [0.1], [4.0], [4.1]], [0, 0, 1, 1]).predict([[4.0]]))
"""
    done = subprocess.run([sys.executable, "-c", program], capture_output=True, text=True, check=True)
    assert done.stdout == "[1]\n"


def test_the_readme_is_read_in_a_minute() -> None:
    lines = README.read_text(encoding="utf-8").splitlines()
    assert len(lines) < 100
    assert max(map(len, lines)) <= 100


@pytest.mark.parametrize(
    "page", ["README.md", "CHANGELOG.md", *(f"docs/{p.name}" for p in (README.parent / "docs").glob("*.md"))]
)
def test_every_link_to_a_file_leads_somewhere(page: str) -> None:
    path = README.parent / page
    links = re.findall(r"\]\(([^)#\s]+)[^)]*\)", path.read_text(encoding="utf-8"))
    dead = [link for link in links if "://" not in link and not (path.parent / link).exists()]
    assert not dead

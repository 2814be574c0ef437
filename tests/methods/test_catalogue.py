"""The catalogue: its facts are true, it needs no torch, and user-defined methods are added to it."""

from __future__ import annotations

import subprocess
import sys
import warnings
from dataclasses import replace
from importlib.metadata import EntryPoint
from pathlib import Path
from typing import Any
from unittest.mock import patch

import pytest

from relive import Method
from relive._util.errors import InputError
from relive._util.registry import Registry
from relive.core.facts import MethodFacts, Setting, facts_of
from relive.experiments.execute import run
from relive.experiments.shown import register_methods_in
from relive.experiments.spec import RunSpec, make_spec
from relive.methods import METHODS, make_method, method_class, method_facts
from relive.methods.ewc import EWC
from relive.report import style

MINE = """
from relive import Method

class Mine(Method):
    '''Does nothing of its own. And says more.'''
    def __init__(self, strength: float = 2.0) -> None:
        self.strength = strength

class NotOne:
    pass
"""
EXAMPLE = Path(__file__).parents[2] / "examples" / "own_method.py"


@pytest.fixture
def mine(tmp_path: Path) -> Path:
    path = tmp_path / "my_file.py"
    path.write_text(MINE)
    return path


def test_facts_of_a_class_that_says_nothing(mine: Path) -> None:
    facts = method_facts(f"{mine}:Mine")
    assert (facts.title, facts.reference) == ("Mine", "Does nothing of its own. And says more")
    assert facts.scenarios == ("task", "domain", "class")
    assert facts.defaults == {"strength": 2.0}
    assert not facts.keeps_data


def test_facts_that_a_class_says() -> None:
    class ElasticNet(EWC):
        title = "EN"
        colour, marker = "#123456", "*"
        scenarios = ("task",)
        why_not = "of a reason"
        limits = {"lam": (1, 5)}  # noqa: RUF012

        def __init__(self, lam: float = 2.0) -> None:
            super().__init__(lam)

    facts = facts_of(ElasticNet)
    assert (facts.name, facts.title, facts.colour, facts.marker) == ("elastic-net", "EN", "#123456", "*")
    with pytest.raises(InputError, match="EN does not work in scenario 'class': of a reason"):
        facts.check_scenario("class")
    with pytest.raises(InputError, match="at least 1 and at most 5"):
        facts.check_settings({"lam": 6})
    assert facts_of(EWC) is METHODS["ewc"]  # a subclass does not change its parent's facts


def test_a_setting_is_a_number_with_a_default() -> None:
    class Wordy(Method):
        def __init__(self, word: str = "x") -> None:
            self.word = word

    with pytest.raises(InputError, match="setting word of Wordy is 'x' by default: a setting is a number"):
        facts_of(Wordy)


@pytest.mark.parametrize(
    ("look", "message"),
    [
        ({"colour": "reddish"}, "colour = 'reddish' of Bright: it must be written as #rrggbb"),
        ({"marker": "zz"}, "marker = 'zz' of Bright: it must be one of o v"),
    ],
)
def test_a_look_that_cannot_be_drawn_is_refused_before_anything_runs(look: dict[str, str], message: str) -> None:
    with pytest.raises(InputError, match=message):
        facts_of(type("Bright", (Method,), look))


def test_a_misspelt_hook_is_said_once(tmp_path: Path) -> None:
    (tmp_path / "typo.py").write_text("import relive\nclass Typo(relive.Method):\n  def regularize(self): pass\n")
    with warnings.catch_warnings(record=True) as said:
        warnings.simplefilter("default")
        spec = make_spec("split", "class", f"{tmp_path}/typo.py:Typo", dataset="digits", iters=1, hidden=5)
        run(spec)
    assert [str(warning.message) for warning in said] == [
        "Typo.regularize is not a hook and is never called: did you mean regularise?"
    ]


@pytest.mark.parametrize(
    ("said", "message"),
    [
        ({"limits": {"strenght": (0, 1)}}, "unknown setting in limits of Said 'strenght': did you mean 'strength'"),
        ({"symbols": {"strenght": "λ"}}, "unknown setting in symbols of Said 'strenght'"),
        ({"explain": {"weight": "how much"}}, "unknown setting in explain of Said 'weight'. Known: strength"),
        ({"explain": "how much"}, "explain of Said = 'how much': it must be a dictionary"),
        ({"limits": {"strength": 5}}, "limits of Said, strength = 5: it must be the lowest and the highest value"),
        ({"limits": {"strength": (0, None)}}, r"limits of Said, strength = \(0, None\): it must be"),
        ({"limits": {"strength": (1, 0)}}, r"limits of Said, strength = \(1, 0\): it must be"),
        ({"scenarios": ("class", "Task-IL")}, "unknown scenario in scenarios of Said 'Task-IL'"),
        ({"scenarios": "class"}, r"scenarios of Said = 'class': it must be a tuple of names, such as \('class',\)"),
    ],
)
def test_wrong_facts_are_refused(said: dict[str, object], message: str) -> None:
    class Base(Method):
        def __init__(self, strength: float = 1.0) -> None:
            self.strength = strength

    with pytest.raises(InputError, match=message):
        facts_of(type("Said", (Base,), said))


def test_facts_of_a_setting_that_a_subclass_no_longer_has_are_no_mistake() -> None:
    class Base(Method):
        limits = {"size": (1, 9)}  # noqa: RUF012

        def __init__(self, size: float = 1.0) -> None:
            self.size = size

    class Fixed(Base):
        def __init__(self) -> None:
            super().__init__(3)

    assert facts_of(Fixed).settings == ()


def test_an_address_is_a_method_like_any_other(mine: Path) -> None:
    spec = make_spec("split", "class", f"{mine}:Mine", dataset="digits", iters=3, hidden=10, settings={"strength": 3})
    assert RunSpec.from_json(spec.to_json()) == spec
    assert "/" not in spec.name
    assert ":" not in spec.name
    result = run(spec).result
    assert result.shown == {"title": "Mine"}
    none = make_spec("split", "class", "none", dataset="digits", iters=3, hidden=10)
    assert run(none).result.accuracy_matrix == result.accuracy_matrix
    assert run(none).result.shown == {}


def test_settings_have_the_symbols_of_the_method_whose_they_are(tmp_path: Path) -> None:
    path = tmp_path / "mine.py"
    path.write_text(
        "from relive import Method\nfrom relive.core.facts import MethodFacts, Setting\n"
        "class Mine(Method):\n"
        "    symbols = {'lam': 'β'}\n"
        "    def __init__(self, proportion: float = 3.0, lam: float = 2.0): pass\n"
        "class Facts(Method):\n"
        "    facts = MethodFacts('x', 'x', 'X', settings=(Setting('share', 0.5, percent=True),))\n"
        "    def __init__(self, share: float = 0.5): pass\n"
    )
    for name, text in (("Mine", "proportion = 3, β = 2"), ("Facts", "share = 50 %")):
        method = f"{path}:{name}"
        result = run(make_spec("split", "class", method, dataset="digits", iters=1, hidden=5)).result
        assert style.settings_text(dict(METHODS[method].defaults), method) == text
        elsewhere = replace(result, spec=replace(result.spec, method=f"gone.py:{name}"))  # where the file is not
        register_methods_in([elsewhere])
        said = style.settings_text(elsewhere.spec.settings, f"gone.py:{name}")
        assert sorted(said.split(", ")) == sorted(text.split(", "))


def test_a_file_that_has_changed_is_another_spec_and_not_run_as_the_old_one(mine: Path) -> None:
    spec = make_spec("split", "class", f"{mine}:Mine", dataset="digits", iters=3, hidden=10)
    mine.write_text(MINE + "\n# something else\n")
    again = make_spec("split", "class", f"{mine}:Mine", dataset="digits", iters=3, hidden=10)
    assert again.digest != spec.digest
    with pytest.raises(InputError, match="has changed since the run was requested"):
        run(spec)


@pytest.mark.parametrize(
    ("name", "message"),
    [
        ("{file}:Other", "has no 'Other'; it has: Mine, NotOne$"),
        ("{file}", "my_file.py is a file: name the method in it, as .*my_file.py:Mine"),
        ("{file}:NotOne", "a method must be a class that extends relive.Method"),
        ("nowhere.py:Mine", "there is no file nowhere.py"),
        ("no.such.module:Mine", "there is no module 'no.such.module'"),
    ],
)
def test_an_address_that_leads_nowhere(name: str, message: str, mine: Path) -> None:
    with pytest.raises(InputError, match=message):
        make_spec("split", "class", name.format(file=mine), dataset="digits")


def test_a_module_s_class_by_its_address() -> None:
    assert method_class("relive.methods.ewc:EWC") is EWC
    assert make_method("relive.methods.ewc:EWC", lam=3.0).facts.title == "EWC"


def test_an_installed_package_adds_methods() -> None:
    facts = MethodFacts("theirs", "relive.methods.si:SI", "Theirs", settings=(Setting("c", 1.0),))
    point = EntryPoint("theirs", "anything", "relive.test")
    with patch("relive._util.registry.entry_points", return_value=[point]), patch.object(EntryPoint, "load") as load:
        load.return_value = facts
        registry: Registry[MethodFacts] = Registry("method", "relive.test", [METHODS["none"]])
        assert registry["theirs"] is facts
        assert set(registry) == {"none", "theirs"}
        with pytest.raises(InputError, match="did you mean 'theirs'"):
            registry["their"]


def test_methods_without_a_colour_get_one_that_no_other_has(mine: Path) -> None:
    taken = [f"{mine}:Mine", "relive.methods.none:FineTuning"]
    for name in taken:
        METHODS.register(MethodFacts(name, name, "X"))
    everything = [*METHODS]
    assert len({style.method_colour(name) for name in everything}) == len(everything)
    assert len({style.method_marker(name) for name in everything}) == len(everything)


@pytest.mark.parametrize("words", [["methods"], ["methods", "--json"]])
def test_listing_methods_needs_no_torch(words: list[str]) -> None:
    code = (
        f"import sys; sys.argv[1:] = {words!r}\nfrom relive.cli import app\ntry:\n    app()\nexcept SystemExit: pass\n"
    )
    done = subprocess.run(
        [sys.executable, "-c", code + "assert 'torch' not in sys.modules"], capture_output=True, text=True
    )
    assert done.returncode == 0, done.stderr
    assert "rtf" in done.stdout


def test_the_example_replays_what_it_kept() -> None:
    sizes: dict[str, Any] = {"dataset": "digits", "iters": 150, "hidden": 60}
    er, none = (run(make_spec("split", "class", m, **sizes)).result for m in (f"{EXAMPLE}:ExperienceReplay", "none"))
    assert er.average_accuracy > none.average_accuracy + 0.3
    assert er.stored_numbers == 200 * (64 + 2)
    assert er.shown["title"] == "ER"


def test_a_file_that_imports_another_beside_it(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    """The other file cannot be found; where it is found anyway, its changes are not recorded, and a warning says so."""
    (tmp_path / "beside_it.py").write_text("from relive import Method\n")
    (tmp_path / "asking.py").write_text("from beside_it import Method\nclass Mine(Method):\n    'Mine.'\n")
    (tmp_path / "missing.py").write_text("import nowhere_to_be_found\n")
    with pytest.raises(
        InputError, match=r"asking.py imports 'beside_it', another file in its folder, which is not supported"
    ):
        make_spec("split", "class", f"{tmp_path / 'asking.py'}:Mine", dataset="digits")
    with pytest.raises(InputError, match=r"missing.py imports 'nowhere_to_be_found', which is not installed"):
        make_spec("split", "class", f"{tmp_path / 'missing.py'}:Mine", dataset="digits")
    monkeypatch.syspath_prepend(tmp_path)
    with pytest.warns(
        UserWarning, match=r"imports 'beside_it', another file in its folder, and results do not record changes to that"
    ):
        make_spec("split", "class", f"{tmp_path / 'asking.py'}:Mine", dataset="digits")


def test_settings_that_are_whole_by_default_stay_whole(tmp_path: Path) -> None:
    (tmp_path / "sized.py").write_text(
        "from relive import Method\n"
        "class Sized(Method):\n    'Sized.'\n    def __init__(self, size=200, rate=1.0): self.given = size, rate\n"
        "class Bare(Method):\n    'Bare.'\n    def __init__(self, size): pass\n"
    )
    made: Any = make_method(f"{tmp_path / 'sized.py'}:Sized", size=100.0, rate=2.0)
    assert list(map(type, made.given)) == [int, float]
    assert made.given == (100, 2.0)
    with pytest.raises(InputError, match="setting size of Bare has no default: a setting is a number with a default"):
        make_method(f"{tmp_path / 'sized.py'}:Bare")

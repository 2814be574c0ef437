"""A page for each method, with the ledger's numbers and equations that browsers can draw."""

from __future__ import annotations

import re
from pathlib import Path

import pytest
from benchmarks.docsite.hooks import ROOT, mathml, moved
from benchmarks.docsite.methods import method_pages, scenarios

from relive.experiments.store import Store
from relive.methods.catalogue import METHODS
from relive.paper.published import PUBLISHED

PAGES = {name: text for name, _, text in method_pages()}


def test_every_method_has_a_page() -> None:
    assert set(PAGES) == set(METHODS)


@pytest.mark.parametrize("name", METHODS)
def test_a_page_has_advice_code_and_every_published_number(name: str) -> None:
    page = PAGES[name]
    facts = METHODS[name]
    assert facts.use_when
    assert facts.not_when
    assert f"class {facts.home.partition(':')[2]}(" in page
    assert all(f"`{setting.name}`" in page for setting in facts.settings)
    for (_, _, method), cell in PUBLISHED.items():
        assert method != name or f"{cell.mean:.2f} ± {cell.sem:.2f}" in page


def test_reproduced_numbers_are_means_of_the_ledger_s_runs() -> None:
    results, _ = Store(ROOT / "reproduction").scan()
    runs = {
        run.spec.seed: 100 * run.average_accuracy
        for run in results
        if (run.spec.method, run.spec.scenario, run.spec.protocol, run.spec.encoder)
        == ("none", "class", "split", "mlp")
        and run.spec.dataset == "mnist"
        and run.spec.seed != 0
    }
    assert f"{sum(runs.values()) / len(runs):.2f} ± " in PAGES["none"].split("Permuted")[0]


@pytest.mark.parametrize("name", METHODS)
def test_every_equation_can_be_drawn(name: str) -> None:
    prose = PAGES[name].partition("## The code")[0]
    for block, inline in re.findall(r"\\\[\n(.*?)\n\\\]|\\\((.*?)\\\)", prose, flags=re.DOTALL):
        assert "<math" in mathml(block or inline, block=bool(block))
    assert ".. math" not in prose


def test_an_unknown_command_in_an_equation_is_an_error() -> None:
    with pytest.raises(ValueError, match=r"cannot be drawn: \\nonsense"):
        mathml(r"a \nonsense b", block=True)


def test_links_follow_a_page_that_moves() -> None:
    home = Path(ROOT, "docs", "index.md")
    assert moved("[a](docs/faq.md#x)", ROOT / "README.md", home) == "[a](faq.md#x)"
    assert moved("[a](LICENSE)", ROOT / "README.md", home) == "[a](source/LICENSE.md)"
    assert moved("[a](https://b.c)", ROOT / "README.md", home) == "[a](https://b.c)"
    page = ROOT / "docs" / "own-data.md"
    assert moved("[a](../examples/wine.py)", page, page) == "[a](source/examples/wine.py.md)"


def test_the_table_of_the_scenarios_is_the_published_one() -> None:
    assert scenarios() in (ROOT / "docs" / "scenarios.md").read_text(encoding="utf-8")

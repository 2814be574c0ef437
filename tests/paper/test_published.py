"""The paper's numbers, copied from its two tables a second time, and the ranges of its searches."""

from __future__ import annotations

from itertools import pairwise

from relive.experiments.spec import SCENARIO_NAMES
from relive.paper.grid import at_edge, grid_specs
from relive.paper.published import FURTHER, GRIDS, PRESETS, PUBLISHED
from relive.paper.tuned import best
from tests.report.fake import result_of, spec_of

TABLES = {
    "split": """
        none         85.15 1.00  57.33 1.66  19.90 0.02
        xdg          98.74 0.31
        ewc          85.48 1.20  57.80 1.61  19.90 0.02
        online-ewc   85.22 1.06  57.60 1.66  19.90 0.02
        si           99.14 0.11  63.77 1.18  20.04 0.08
        lwf          99.60 0.03  71.02 1.26  24.17 0.51
        dgr          99.47 0.03  95.74 0.23  91.24 0.33
        dgr-distill  99.59 0.03  96.94 0.14  91.84 0.27
        rtf          99.66 0.03  97.31 0.11  92.56 0.21
        offline      99.64 0.03  98.41 0.06  97.93 0.04
    """,
    "permuted": """
        none         81.79 0.48  78.51 0.24  17.26 0.19
        xdg          91.40 0.23
        ewc          94.74 0.05  94.31 0.11  25.04 0.50
        online-ewc   95.96 0.06  94.42 0.13  33.88 0.49
        si           94.75 0.14  95.33 0.11  29.31 0.62
        lwf          69.84 0.46  72.64 0.52  22.64 0.23
        dgr          92.52 0.08  95.09 0.04  92.19 0.09
        dgr-distill  97.51 0.01  97.35 0.02  96.38 0.03
        rtf          97.31 0.01  97.06 0.02  96.23 0.04
        offline      97.68 0.01  97.59 0.01  97.59 0.02
    """,
}


def test_every_published_cell() -> None:
    expected = {}
    for protocol, text in TABLES.items():
        for method, *numbers in map(str.split, text.strip().splitlines()):
            for scenario, mean, sem in zip(SCENARIO_NAMES, numbers[::2], numbers[1::2], strict=False):
                expected[protocol, scenario, method] = (float(mean), float(sem))
    assert len(expected) == 56
    assert expected == PUBLISHED


def test_both_protocols() -> None:
    every = {"batch_size": 128, "latent": 100}
    assert {
        "split": {"tasks": 5, "iters": 2000, "learning_rate": 1e-3, "hidden": 400, **every},
        "permuted": {"tasks": 10, "iters": 5000, "learning_rate": 1e-4, "hidden": 1000, **every},
    } == PRESETS


def test_what_is_searched() -> None:
    gammas = [0.7, 0.8, 0.9, 1.0]
    for protocol, last in (("split", 1e13), ("permuted", 1e7)):
        lambdas = GRIDS[protocol, "ewc"]["lam"]
        assert (lambdas[0], lambdas[-1]) == (1, last)
        assert all(b == 10 * a for a, b in pairwise(lambdas))
        assert GRIDS[protocol, "online-ewc"] == {"lam": lambdas, "gamma": gammas}
        assert GRIDS[protocol, "si"] == {"c": [0.001, 0.01, 0.1, 1, 10, 100, 1e3, 1e4, 1e5]}
        assert GRIDS[protocol, "xdg"] == {"proportion": [0, 0.2, 0.4, 0.55, 0.7, 0.8, 0.9, 0.95]}
    assert len(GRIDS) == 8
    assert len(grid_specs("split", "class", "online-ewc")) == 56


def test_a_choice_at_either_edge_is_noticed_unless_nothing_lies_beyond() -> None:
    assert at_edge("split", "ewc", {"lam": 1e13}) == at_edge("split", "ewc", {"lam": 1.0}) == ["lam"]
    assert at_edge("split", "ewc", {"lam": 1e12}) == []
    assert at_edge("split", "online-ewc", {"lam": 1e12, "gamma": 0.7}) == ["gamma"]
    assert at_edge("split", "online-ewc", {"lam": 1e12, "gamma": 1.0}) == []
    assert at_edge("split", "xdg", {"proportion": 0.0}) == []
    assert at_edge("split", "xdg", {"proportion": 0.95}) == ["proportion"]


def test_of_equals_the_smallest_settings_are_chosen() -> None:
    runs = [result_of(spec_of("split", "task", "ewc", 1000, {"lam": lam}), 0.9) for lam in (100.0, 10.0, 1000.0)]
    assert best(runs).spec.settings == {"lam": 10.0}


def test_other_papers_cells_stay_out_of_the_paper_s_tables() -> None:
    assert len(PUBLISHED) == 56
    assert not {method for *_, method in FURTHER} & {method for *_, method in PUBLISHED}

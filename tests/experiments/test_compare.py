"""Runs side by side: how they are grouped, and the numbers against a computation by hand."""

from __future__ import annotations

import itertools
import json
import math
from dataclasses import replace
from typing import Any

import pytest
from scipy.stats import ttest_rel

from relive._util.fidelity import AS_RUN, AS_WRITTEN
from relive.experiments.compare import side_by_side, together
from relive.experiments.spec import RunResult
from relive.report import own_runs
from tests.report.fake import result_of, spec_of

ACCURACIES = {"none": [0.50, 0.62, 0.55], "rtf": [0.90, 0.95, 0.91], "si": [0.52, 0.61, 0.58]}


def runs(scenario: str = "class", **changes: Any) -> list[RunResult]:
    return [
        result_of(spec_of("split", scenario, method, seed, **changes), accuracy)
        for method, accuracies in ACCURACIES.items()
        for seed, accuracy in enumerate(accuracies, start=1)
    ]


def test_means_and_pairs_are_those_by_hand() -> None:
    (group,) = side_by_side(runs(), ["rtf", "none", "si"])
    assert [(entry.method, entry.n) for entry in group.entries] == [("rtf", 3), ("none", 3), ("si", 3)]
    for entry in group.entries:
        values = [100 * value for value in ACCURACIES[entry.method]]
        mean = sum(values) / 3
        assert entry.mean == pytest.approx(mean)
        assert entry.sem == pytest.approx(math.sqrt(sum((v - mean) ** 2 for v in values) / 2 / 3))
    pairs = group.pairs("class")
    assert [(p.first.method, p.second.method) for p in pairs] == list(itertools.combinations(["rtf", "none", "si"], 2))
    p_values = [float(ttest_rel(ACCURACIES[p.first.method], ACCURACIES[p.second.method]).pvalue) for p in pairs]
    assert [p.p for p in pairs] == pytest.approx(p_values)
    by_size = sorted(range(3), key=lambda i: p_values[i])
    expected, largest = [0.0] * 3, 0.0
    for rank, i in enumerate(by_size):
        largest = max(largest, min(1.0, (3 - rank) * p_values[i]))
        expected[i] = largest
    assert [p.p_holm for p in pairs] == pytest.approx(expected)


def test_only_runs_that_agree_in_the_rest_are_compared() -> None:
    others = [runs(iters=7), runs(dataset="digits"), runs(tasks=2)]
    others += [[replace(run, spec=replace(run.spec, fidelity=AS_WRITTEN)) for run in runs()]]
    groups = side_by_side([*runs(), *runs("task"), *itertools.chain(*others)])
    assert len(groups) == 5
    assert len({group.title for group in groups}) == 5
    (both,) = [group for group in groups if len(group.scenarios) == 2]
    assert both.scenarios == ["task", "class"]


def test_a_seed_counts_once_and_unequal_seeds_are_paired_where_they_can_be() -> None:
    results = runs()
    again = replace(results[0], spec=replace(results[0].spec, threads=2), average_accuracy=0.1)
    (group,) = side_by_side([*results, again, result_of(spec_of("split", "class", "rtf", 9), 0.2)])
    entries = {entry.method: entry for entry in group.entries}
    assert (entries["none"].n, entries["rtf"].n) == (3, 4)
    assert {pair.n for pair in group.pairs("class")} == {3}
    (lone,) = side_by_side([results[0], results[4]])
    assert lone.pairs("class") == []  # no seed in common


def test_one_seed_gives_a_difference_and_no_test() -> None:
    (group,) = side_by_side([results for results in runs() if results.spec.seed == 1])
    pair = group.pairs("class")[0]
    assert (pair.n, pair.sem, pair.p, pair.p_holm) == (1, None, None, None)
    assert pair.difference == pytest.approx(50 - 90)
    assert "−40.00" in own_runs.as_markdown(group)


def test_settings_tell_entries_of_a_method_apart_in_order_of_their_values() -> None:
    values = 10.0, 2.0, 0.5
    results = [result_of(spec_of("split", "class", "si", seed, {"c": c}), 0.5) for c in values for seed in (1, 2)]
    (group,) = side_by_side([*results, *runs()])
    labels = [own_runs.label(entry, group) for entry in group.entries]
    assert labels == ["None", "RtF", "SI (c = 0.1)", "SI (c = 0.5)", "SI (c = 2)", "SI (c = 10)"]  # 0.1: its default
    for figure in (own_runs.time_figure(group), own_runs.learning_figure(group)):
        lines = {str(line.get_label()): line.get_color() for line in figure.legends[0].get_lines()}
        assert len({lines[label] for label in labels}) == len(labels)


def test_every_format_has_every_number() -> None:
    (group,) = side_by_side([*runs(), *runs("task")], ["none"])
    told = json.loads(own_runs.as_json(group))
    assert [entry["n"] for entry in told["entries"]] == [3] * 6
    assert len(told["pairs"]) == 6
    assert own_runs.as_csv(group).count("\n") == 7
    markdown = own_runs.as_markdown(group)
    assert markdown.count("92.00 ± 1.53") == 2
    assert markdown.index("Task-IL") < markdown.index("Class-IL")
    for figure in (own_runs.time_figure(group), own_runs.learning_figure(group)):
        assert len(figure.axes) == 2


def test_every_label_has_one_line_style_and_is_in_the_legend_once() -> None:
    results = [*runs("task"), *runs(), result_of(spec_of("split", "class", "lwf", 1)), own(1, 0.5, "b.py:Other")]
    (group,) = side_by_side(results, ["rtf", "lwf"])
    figure = own_runs.learning_figure(group)
    legend = {str(line.get_label()): line.get_linestyle() for line in figure.legends[0].get_lines()}
    assert sorted(text.get_text() for text in figure.legends[0].get_texts()) == ["LwF", "None", "Other", "RtF", "SI"]
    for axis, scenario in zip(figure.axes, group.scenarios, strict=True):
        labels = [own_runs.label(entry, group) for entry in group.of(scenario)]
        drawn = [line.get_linestyle() for line in axis.lines][: len(labels)]
        assert drawn == [legend[label] for label in labels]


def own(seed: int, accuracy: float, method: str = "mine.py:Mine", digest: str = "aaaaaaaaaaaa") -> RunResult:
    spec = replace(spec_of("split", "class", "none", seed), method=method, sources={method: digest})
    return result_of(spec, accuracy)


def test_contents_of_a_file_are_methods_of_their_own() -> None:
    """Results from before a method's file changed are not runs of the changed method, and have another label."""
    results = [own(seed, 0.5, digest=digest) for digest in ("a" * 12, "b" * 12) for seed in (1, 2)]
    (group,) = side_by_side([*results, own(3, 0.9, digest="b" * 12)])
    assert [(entry.n, own_runs.label(entry, group)) for entry in group.entries] == [
        (2, "Mine (aaaaaaa)"),
        (3, "Mine (bbbbbbb)"),
    ]


def test_the_code_of_an_installed_method_tells_entries_apart_not_groups() -> None:
    results = [own(seed, 0.5, "theirs", digest) for digest in ("a" * 12, "b" * 12) for seed in (1, 2)]
    for i, run in enumerate(results):
        spec = replace(run.spec, sources={"method theirs": run.spec.sources["theirs"]})
        results[i] = replace(run, spec=spec)
    (group,) = side_by_side(results)
    assert [own_runs.label(entry, group) for entry in group.entries] == ["theirs (aaaaaaa)", "theirs (bbbbbbb)"]


def test_methods_of_one_name_are_told_apart_by_their_files() -> None:
    (group,) = side_by_side([own(1, 0.5), own(1, 0.6, "other.py:Mine"), *runs()])
    labels = [own_runs.label(entry, group) for entry in group.entries]
    assert labels == ["Mine (mine.py)", "None", "Mine (other.py)", "RtF", "SI"]
    legend = own_runs.time_figure(group).legends[0]
    assert {"Mine (mine.py)", "Mine (other.py)", "RtF"} <= {text.get_text() for text in legend.get_texts()}


def test_groups_of_one_title_say_in_what_they_differ() -> None:
    def group_of(digest: str, **changes: Any) -> list[RunResult]:
        return [
            replace(run, spec=replace(run.spec, sources={"my.npz": digest * 12}))
            for run in runs(dataset="my.npz", **changes)
        ]

    titles = [group.title for group in side_by_side([*group_of("a"), *group_of("b"), *group_of("b", hidden=7)])]
    common = "my.npz, split, 5 tasks of 2000 iterations"
    assert titles == [
        f"{common}, hidden 7",
        f"{common}, my.npz aaaaaaa",
        f"{common}, my.npz bbbbbbb",
    ]
    assert side_by_side(group_of("a"))[0].title == common


def test_another_optimizer_is_in_the_title() -> None:
    titles = [group.title for group in side_by_side([*runs(), *runs(optimizer="sgd", learning_rate=0.1)])]
    assert [title.partition("iterations")[2] for title in titles] == ["", ", optimizer sgd, learning_rate 0.1"]


def test_an_encoder_that_is_a_method_s_own_divides_nothing() -> None:
    """Runs requested together are grouped whatever their encoder, which distinguishes otherwise equal ones."""
    own = replace(spec_of("split", "class", "none"), method="analytic", encoder="random")
    (group,) = side_by_side([*runs(), result_of(own)])
    assert [own_runs.label(entry, group) for entry in group.entries] == ["Analytic", "None", "RtF", "SI"]
    with_conv = runs(encoder="conv")
    assert [len(group.entries) for group in side_by_side([*runs(), result_of(own), *with_conv])] == [4, 3]
    assert "encoder conv" in together(with_conv).title
    mixed = together([*with_conv, result_of(own), result_of(replace(own, encoder="conv"))])
    assert "encoder" not in mixed.title
    assert [own_runs.label(entry, mixed) for entry in mixed.entries][:2] == [
        "Analytic (encoder conv)",
        "Analytic (encoder random)",
    ]


@pytest.mark.parametrize(
    "accuracies", [{"none": [0.5, 0.6], "rtf": [0.7, 0.75]}, {"none": [0.5] * 3, "rtf": [0.7] * 3}]
)
def test_too_few_seeds_or_no_spread_are_not_tested(accuracies: dict[str, list[float]]) -> None:
    results = [
        result_of(spec_of("split", "class", method, seed), value)
        for method, values in accuracies.items()
        for seed, value in enumerate(values, start=1)
    ]
    (group,) = side_by_side(results)
    (pair,) = group.pairs("class")
    assert (pair.p, pair.p_holm) == (None, None)
    assert "| – | – |" in own_runs.as_markdown(group)


def test_seed_0_among_others_is_noted() -> None:
    in_order = result_of(spec_of("split", "class", "rtf", 0), 0.9)
    assert own_runs.IN_ORDER in own_runs.as_markdown(side_by_side([*runs(), in_order])[0])
    assert own_runs.IN_ORDER not in own_runs.as_markdown(side_by_side(runs())[0])
    assert own_runs.IN_ORDER not in own_runs.as_markdown(side_by_side([in_order])[0])  # with nothing to confuse it with


@pytest.mark.parametrize(("order", "noted"), [("shuffled_by_numpy", True), ("in_order", False)])
def test_seed_0_is_noted_where_other_seeds_shuffle(order: str, noted: bool) -> None:
    fidelity = AS_RUN.choose({"class_order": order})
    results = [
        result_of(replace(spec_of("split", "class", method, seed), fidelity=fidelity), 0.9)
        for method in ("none", "rtf")
        for seed in (0, 1)
    ]
    assert (own_runs.IN_ORDER in own_runs.as_markdown(side_by_side(results)[0])) is noted


def test_time_is_the_processor_s() -> None:
    """A run with half of a core takes twice the wall time, but the same CPU time."""
    spec = spec_of("split", "class", "rtf")
    for share, shown in ((0.5, "50"), (None, "–")):
        (group,) = side_by_side([result_of(spec, seconds=100.0, share=share)])
        assert own_runs.row(group.entries[0])[3] == shown


def test_a_negative_number_has_a_true_minus() -> None:
    (group,) = side_by_side([result_of(spec_of("split", "class", "rtf"), 0.99)])
    assert own_runs.row(group.entries[0])[2] == "−1.00"

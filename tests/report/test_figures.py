"""The figures: drawn from the available runs, with the right content, as SVG and PNG."""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from xml.etree import ElementTree

import numpy as np
import pytest
from matplotlib import image
from matplotlib.colors import to_hex, to_rgb
from matplotlib.figure import Figure
from matplotlib.lines import Line2D
from matplotlib.text import Text

from relive.experiments.compare import side_by_side
from relive.experiments.shown import register_methods_in
from relive.experiments.store import Store
from relive.methods import METHODS
from relive.paper.comparison import compare
from relive.paper.published import GRIDS, PUBLISHED
from relive.report import figures, gallery, own_runs, pictures, style
from tests.report.fake import paper_like, pictures_of, result_of, searched, spec_of


def words_of(figure: Figure) -> set[str]:
    """Every text in a figure."""
    return {item.get_text() for item in figure.findobj(Text) if isinstance(item, Text)}


def xs(line: Line2D) -> list[float]:
    """The x coordinates of a line's points."""
    return [float(x) for x in np.asarray(line.get_xdata())]


def ys(line: Line2D) -> list[float]:
    """The y coordinates of a line's points."""
    return [float(y) for y in np.asarray(line.get_ydata())]


def test_a_figure_is_saved_twice_the_same(tmp_path: Path) -> None:
    for folder in ("a", "b"):
        figures.save(figures.accuracy_figure(result_of(spec_of())), tmp_path / folder, "f")
    for name in ("f.svg", "f.png"):
        assert (tmp_path / "a" / name).read_bytes() == (tmp_path / "b" / name).read_bytes()
    assert ElementTree.parse(tmp_path / "a" / "f.svg").getroot().tag.endswith("svg")
    assert image.imread(tmp_path / "a" / "f.png").shape[0] > 500


def test_every_run_is_a_dot_in_published_deviations() -> None:
    published = PUBLISHED["split", "task", "si"]
    deviation = published.sem * 20**0.5
    accuracies = [published.mean + n * deviation for n in (-1.0, 0.0, 2.0, -30.0)]
    runs = [result_of(spec_of("split", "task", "si", seed), a / 100) for seed, a in enumerate(accuracies, start=1)]
    table = compare(runs[:3], "split")
    task, domain, class_ = figures.agreement_figure(table).axes
    dots = [np.asarray(marks.get_offsets()) for marks in task.collections]
    assert [len(some) for some in dots] == [3, 0, 0]
    np.testing.assert_allclose(dots[0][:, 0], [-1, 0, 2], atol=1e-9)
    low, high = table.cells["task", "si"].interval or (0, 0)
    assert xs(task.lines[-1]) == pytest.approx([low / deviation, high / deviation])
    assert [len(axis.collections) for axis in (domain, class_)] == [0, 0]
    beyond = figures.agreement_figure(compare(runs[3:], "split")).axes[0].collections
    assert [np.asarray(marks.get_offsets()).tolist() for marks in beyond[:2]] == [[], [[-4.85, 6.0]]]


def test_time_has_a_panel_per_scenario_and_a_star_per_mean() -> None:
    figure = figures.time_figure(compare(paper_like("split", 3), "split"))
    assert [axis.get_title() for axis in figure.axes] == ["Task-IL", "Domain-IL", "Class-IL"]
    assert [len(axis.collections) for axis in figure.axes] == [
        10 * 5,
        9 * 5,
        9 * 5,
    ]  # the mean is a star and a mark in it
    assert {"DGR+distill", "Offline", "hollow or pale: timing unreliable"} <= words_of(figure)


@pytest.mark.parametrize(("share", "hollow"), [(1.0, False), (0.5, True), (None, True)])
def test_a_busy_run_is_hollow_and_keeps_its_colour(share: float | None, hollow: bool) -> None:
    figure = figures.time_figure(compare([result_of(spec_of(), share=share)], "split"))
    (mark,) = figure.axes[2].collections
    assert (len(np.asarray(mark.get_facecolor())) == 0) is hollow
    assert to_hex(tuple(np.asarray(mark.get_edgecolor())[0])) == style.method_colour("rtf")
    assert "no runs yet" in words_of(figure)


def test_grid_searches_have_a_line_per_gamma_and_a_star() -> None:
    results, tuned = searched("split", "domain", ("ewc", "online-ewc", "si"))
    figure = figures.grid_figure(results, tuned, "split")
    assert figure is not None
    xdg, ewc, online, _ = figure.axes
    assert "only in Task-IL" in words_of(figure)
    assert len(xdg.lines) == 0
    assert ewc.get_xscale() == "log"
    values = GRIDS["split", "ewc"]["lam"]
    assert xs(ewc.lines[0]) == values
    stars = [line for line in ewc.lines if line.get_marker() == "*"]
    assert [xs(line)[0] for line in stars] == [tuned["split", "domain", "ewc"]["lam"]]
    legend = online.get_legend()
    assert legend is not None
    assert [text.get_text() for text in legend.get_texts()] == ["γ = 0.7", "γ = 0.8", "γ = 0.9", "γ = 1"]


def test_there_is_no_grid_figure_without_searches() -> None:
    assert figures.grid_figure(paper_like("split", 1), {}, "split") is None


def test_learning_shows_the_mean_of_the_runs() -> None:
    results = [result_of(spec_of(seed=1), 0.8), result_of(spec_of(seed=2), 0.9)]
    figure = figures.learning_figure(compare(results, "split"), "class")
    assert figure is not None
    (axis,) = figure.axes
    ends = axis.lines[1]  # the first task's marks
    finals = [100 * result.accuracy_matrix[-1][0] for result in results]
    assert xs(ends) == [2, 4, 6, 8, 10]
    assert ys(ends)[-1] == pytest.approx(np.mean(finals))
    assert "RtF (85.0 %, n=2)" in words_of(figure)
    assert figures.learning_figure(compare(results, "split"), "task") is None


def test_forgetting_shows_the_learned_half() -> None:
    figure = figures.forgetting_figure(compare([result_of(spec_of(), 0.8)], "split"), "class")
    assert figure is not None
    shown = figure.axes[0].images[0].get_array()
    assert np.array_equal(np.ma.getmaskarray(np.ma.asarray(shown)), np.triu(np.ones((5, 5), dtype=bool), 1))
    assert sum(text.get_text() == "98" for text in figure.axes[0].texts) == 4
    assert figures.forgetting_figure(compare([], "split"), "class") is None


@pytest.mark.parametrize("tasks", [5, 10])
def test_tasks_have_colours_of_their_own(tasks: int) -> None:
    assert len({figures.task_colour(k, tasks) for k in range(tasks)}) == tasks


def test_examples_of_split_name_tasks_and_classes() -> None:
    figure = pictures.split_examples(pictures_of(1)[0][:10])
    assert {"Task 1", "Task 5", "“0”\nfirst class", "“9”\nsecond class"} <= words_of(figure)


def test_examples_of_permuted_keep_the_pixels_and_change_their_order() -> None:
    some = pictures_of(1, 32)[0][:10]
    order = np.random.default_rng(0).permutation(32 * 32)
    figure = pictures.permuted_examples(some, [None, order, order])
    assert {"Task 1", "Task 2", "Task 3", "no permutation", "permutation 2", "…"} <= words_of(figure)
    first, second = (np.asarray(axis.images[0].get_array()) for axis in figure.axes[:2])
    assert not np.array_equal(first, second)
    assert np.array_equal(np.sort(first.ravel()), np.sort(second.ravel()))


def test_samples_have_a_row_per_method_and_a_column_per_task() -> None:
    figure = pictures.samples_figure([("RtF", pictures_of(10)), ("DGR", pictures_of(10))], [0, 3, 5, 8])
    assert len(figure.axes) == 8
    assert {"after task 1", "after task 4", "after task 6", "after task 9", "RtF", "DGR"} <= words_of(figure)


def test_a_run_draws_its_pictures(tmp_path: Path) -> None:
    pictures.draw_run(result_of(spec_of()), pictures_of(5), tmp_path)
    assert sorted(path.name for path in tmp_path.iterdir()) == ["accuracy.png", "replay.png"]


def test_a_run_without_a_generator_draws_one_picture(tmp_path: Path) -> None:
    pictures.draw_run(result_of(spec_of(method="si")), [], tmp_path)
    assert [path.name for path in tmp_path.iterdir()] == ["accuracy.png"]


def test_the_gallery_takes_samples_from_the_store(tmp_path: Path) -> None:
    store = Store(tmp_path)
    results = [result_of(spec_of("permuted", "class", method)) for method in ("rtf", "si")]
    store.save(results[0], pictures_of(10, 32))
    drawn = {item.name: item for item in gallery.gallery(compare(results, "permuted"), results, {}, tmp_path)}
    kinds = ("agreement-permuted", "time-permuted", "samples-permuted", "learning-permuted-class")
    assert {*kinds, "forgetting-permuted-class"} == set(drawn)
    assert "(figure 6)" in drawn["samples-permuted"].title
    assert all(item.alt and item.caption for item in drawn.values())


@pytest.mark.parametrize(
    ("processors", "said"),
    [
        (("A", "A"), "All were timed on A."),
        (("A", "B"), "not all timed on the same kind of processor"),
        (("A", None), "or that is not known"),
        ((None, None), "was not recorded"),
    ],
)
def test_the_figure_of_times_says_on_what_they_were_taken(
    tmp_path: Path, processors: tuple[str | None, ...], said: str
) -> None:
    runs = [result_of(spec_of(method=method)) for method in ("rtf", "si")]
    for run, processor in zip(runs, processors, strict=True):
        run.versions.update({"processor": processor} if processor else {})
    drawn = {item.name: item for item in gallery.gallery(compare(runs, "split"), runs, {}, tmp_path)}
    assert said in drawn["time-split"].caption


def test_the_gallery_of_nothing_is_empty(tmp_path: Path) -> None:
    assert list(gallery.gallery(compare([], "split"), [], {}, tmp_path)) == []


def test_examples_do_without_mnist_and_say_so(own_cache: Path) -> None:
    drawn = gallery.examples()
    assert [item.name for item in drawn] == ["examples-split", "examples-permuted"]
    assert all("MNIST is not on this machine" in item.caption for item in drawn)
    assert not own_cache.exists()


def test_the_axis_of_times_has_numbers_however_near_the_times_are() -> None:
    for seconds in ([30.0, 33.0], [2.0, 300.0]):
        runs = [result_of(spec_of(seed=i + 1), seconds=s) for i, s in enumerate(seconds)]
        axis = figures.time_figure(compare(runs, "split")).axes[2]
        low, high = axis.get_xlim()
        assert sum(low <= tick <= high for tick in axis.get_xticks()) >= 3
        assert "log scale" in axis.get_xlabel()


def test_a_busy_run_of_a_marker_without_inside_is_pale() -> None:
    register_methods_in(
        [replace(result_of(spec_of()), spec=replace(spec_of(), method="a.py:A"), shown={"marker": "+"})]
    )
    alphas = []
    for share in (1.0, 0.5):
        run = result_of(replace(spec_of(dataset="digits"), method="a.py:A"), share=share)
        (mark,) = own_runs.time_figure(side_by_side([run])[0]).axes[0].collections
        alphas.append(float(np.asarray(mark.get_facecolor())[0][3]))
    assert alphas[0] > alphas[1]


def test_the_legend_is_within_the_figure() -> None:
    runs = [result_of(spec_of("split", "class", method, dataset="digits")) for method in ("none", "rtf", "si", "lwf")]
    figure = own_runs.time_figure(side_by_side(runs)[0])
    figure.draw_without_rendering()
    box = figure.legends[0].get_window_extent()
    assert box.x0 >= 0
    assert box.x1 <= figure.bbox.width


def test_a_method_of_one_s_own_gets_the_spare_colour_that_is_least_like_all_others() -> None:
    register_methods_in([replace(result_of(spec_of()), spec=replace(spec_of(), method="a.py:A"))])
    others = np.array([to_rgb(style.method_colour(name)) for name in METHODS if name != "a.py:A"])
    spare = np.array([to_rgb(colour) for colour in style.SPARE_COLOURS])
    distances = np.linalg.norm(spare[:, None] - others, axis=2).min(1)
    assert style.method_colour("a.py:A") == style.SPARE_COLOURS[int(distances.argmax())]


def test_a_closed_form_is_drawn_over_tasks() -> None:
    closed = replace(result_of(spec_of(dataset="digits")), curve=[])
    (axis,) = figures.accuracy_figure(closed).axes
    assert axis.get_xlabel() == "tasks learned"
    assert [tick.get_text() for tick in axis.get_xticklabels()] == ["0", "1", "2", "3", "4", "5"]
    (line, *_) = own_runs.learning_figure(side_by_side([closed])[0]).axes[0].lines
    assert xs(line) == [2, 4, 6, 8, 10]
    assert ys(line) == pytest.approx(
        [100 * float(np.mean(row[: k + 1])) for k, row in enumerate(closed.accuracy_matrix)]
    )


def test_few_steps_are_not_counted_in_thousands() -> None:
    (axis,) = own_runs.learning_figure(side_by_side([result_of(spec_of(iters=20))])[0]).axes
    assert axis.get_xlabel() == "training steps"
    assert axis.get_xlim() == (0, 100)

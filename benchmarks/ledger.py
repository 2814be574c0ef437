"""Bring the tables of docs/results.md and docs/fidelity.md up to date with the ledger, reproduction/.

relive collect runs --into reproduction    # finished runs into the ledger
python -m benchmarks.ledger                # the ledger's tables into the page
"""

from __future__ import annotations

import math
import statistics
import sys
from collections import Counter, defaultdict
from collections.abc import Iterator, Sequence
from dataclasses import replace
from pathlib import Path

from benchmarks.page import put, table_of
from relive._util.fidelity import AS_RUN
from relive._util.statistics import mean_and_sem, paired
from relive.experiments.compare import TESTED_RUNS
from relive.experiments.spec import SCENARIO_NAMES, RunResult
from relive.experiments.store import Store
from relive.methods.catalogue import METHODS as METHOD_FACTS
from relive.paper.comparison import METHODS, Compared, Comparison, compare, preferred
from relive.paper.published import FIRST_SEED, FURTHER, GRIDS, PAPER_DATASET, PROTOCOL_NAMES
from relive.paper.tuned import DEFAULTS, LATER, Tuned, as_in_paper, searched, searched_settings, tuned_of
from relive.report.claims import REPLAY, claims
from relive.report.style import PROTOCOL_TITLES, SCENARIO_TITLES, method_title, settings_text
from relive.report.tables import (
    accuracy_text,
    as_markdown,
    difference_text,
    interval_text,
    p_text,
    verdict_text,
)
from relive.report.times import Times, read_times

ROOT = Path(__file__).parents[1]
LEDGER, PAGE = ROOT / "reproduction", ROOT / "docs" / "results.md"
REPEATS = LEDGER / "repeats"  # a ledger of runs that LEDGER has from other processors
PAGES = {"choices": ROOT / "docs" / "fidelity.md"}  # parts that are elsewhere


def tables(results: list[RunResult]) -> dict[str, str]:
    """Return the parts of the page that come from the ledger, by the name of their marks."""
    tuned = tuned_of(results)
    parts = {}
    for protocol in PROTOCOL_NAMES:
        default, chosen = compare(results, protocol), compare(results, protocol, searched_settings(tuned))
        if all(result.spec.protocol != protocol for result in results):
            continue
        parts[protocol] = as_markdown(default)
        later = compare(results, protocol, LATER)
        parts[f"{protocol}-claims"] = "\n".join(checked(preferred(default, later, chosen), read_times(LEDGER)))
        found = list(searches(results, tuned, protocol))
        if found:
            parts[f"{protocol}-searches"] = "\n\n".join(found)
        parts[f"{protocol}-settings"] = beside([default, *([chosen] if found else []), later])
    split = compare(results, "split")
    parts["split-domain"] = against(split, "domain", "none", METHODS)
    parts["split-seeds"] = other_seeds(results, "split", "domain")
    parts["split-class"] = against(split, "class", "dgr-distill", REPLAY)
    parts["missing"] = missing(results)
    parts["further"] = further(results)
    parts["choices"] = choices(results)
    parts["repeats"] = repeats(results, Store(REPEATS).scan()[0])
    return parts


ENOUGH = 10  # pairs for a correlation


def against(table: Comparison, scenario: str, base: str, methods: Sequence[str]) -> str:
    """Return how methods differ from another one seed by seed, and how strongly both depend on the seed.

    The published difference has two errors, since the paper does not say whether its methods shared their seeds: if
    not, their errors are independent; if so, we assume that they are correlated as ours are.
    """
    title = f"minus {method_title(base)}, same seeds"
    lines = [["method", title, "correlation over seeds", "in the paper, own seeds", "shared seeds"]]
    other = table.cells[scenario, base]
    by_seed = {run.spec.seed: 100 * run.average_accuracy for run in other.runs}
    for (where, method), cell in table.cells.items():
        pairs = [(100 * r.average_accuracy, by_seed[r.spec.seed]) for r in cell.runs if r.spec.seed in by_seed]
        if where == scenario and method in methods and method != base and len(pairs) >= TESTED_RUNS:
            said = _difference([ours - others for ours, others in pairs])
            a, b = cell.published.sem, other.published.sem
            published = f"{difference_text(cell.published.mean - other.published.mean)} ± {math.hypot(a, b):.2f}"
            shown = shared = ""
            if len(pairs) >= ENOUGH:
                correlation = statistics.correlation(*zip(*pairs, strict=True))
                shown = f"{correlation:.2f}".replace("-", "−")
                shared = f"± {math.sqrt(a * a + b * b - 2 * correlation * a * b):.2f}"
            lines.append([method_title(method), said, shown, published, shared])
    return table_of(*lines)


def other_seeds(results: list[RunResult], protocol: str, scenario: str) -> str:
    """Return the methods run with further seeds too, or with the digits that the 2018 code draws, a row per set."""
    lines = [["method", "seeds", "accuracy (%)", "paper"]]
    by_numpy = replace(AS_RUN, class_order="shuffled_by_numpy")
    for method in METHODS:
        sets = []
        for title, seeds, fidelity in (
            ("1 to 20", range(1, 21), AS_RUN),
            ("21 to 40", range(21, 41), AS_RUN),
            ("1111 to 1130, the digits of the 2018 code", range(1111, 1131), by_numpy),
        ):
            runs = [run for run in results if run.spec.fidelity == fidelity and run.spec.seed in seeds]
            as_run = [replace(run, spec=replace(run.spec, fidelity=AS_RUN)) for run in runs]
            cell = compare(as_run, protocol).cells.get((scenario, method))
            if cell is not None and cell.n:
                text = f"{accuracy_text(cell.mean, cell.sem)} (n={cell.n})"
                sets.append([method_title(method), title, text, accuracy_text(*cell.published)])
        lines += sets if len(sets) > 1 else []
    return table_of(*lines)


def beside(tables: list[Comparison]) -> str:
    """Return the cells of methods with settings to choose: a row each, with a column for each table's settings."""
    first = tables[0]
    lines = [["method", "scenario", "paper", *(table.settings.title for table in tables)]]
    for (scenario, method), cell in first.cells.items():
        if (first.protocol, method) in GRIDS:
            name = [method_title(method), SCENARIO_TITLES[scenario], accuracy_text(*cell.published)]
            lines.append(name + [_with_settings(table.cells[scenario, method]) for table in tables])
    return table_of(*lines)


def _with_settings(cell: Compared) -> str:
    """Return a cell's mean, its settings, and how it compares with the published one."""
    settings = "not searched" if cell.settings is None else settings_text(cell.settings, cell.method)
    if not cell.n:
        return f"{settings}: no runs"
    said = [difference_text(cell.difference), interval_text(cell), verdict_text(cell)]
    return f"{settings}<br>**{accuracy_text(cell.mean, cell.sem)}** (n={cell.n})<br>{' '.join(filter(None, said))}"


def missing(results: list[RunResult]) -> str:
    """Return what has not been run yet of what is planned, and what it would cost; a cell counts in its first table."""
    lines = [["table", "seeds", "complete cells", "missing runs", "core-hours", "command"]]
    seconds = defaultdict(list)
    for run in results:
        if run.cpu_seconds and as_in_paper(run.spec, run.spec.settings):
            seconds[run.spec.protocol, run.spec.scenario, run.spec.method].append(run.cpu_seconds)
    counted = set()
    searched_here = searched_settings(tuned_of(results))
    for protocol, settings, n in (
        ("split", DEFAULTS, 20),
        ("split", LATER, 20),
        ("split", searched_here, 20),
        ("permuted", LATER, 3),
    ):
        left, hours, complete, cells = 0, 0.0, 0, 0
        for cell in compare(results, protocol, settings).cells.values():
            key = (protocol, cell.scenario, cell.method)
            if cell.settings is None or (key, str(cell.settings)) in counted:
                continue
            counted.add((key, str(cell.settings)))
            lacking = n - len({run.spec.seed for run in cell.runs} & set(range(FIRST_SEED, FIRST_SEED + n)))
            cells += 1
            complete += not lacking
            left += lacking
            hours += lacking * (statistics.median(seconds[key]) if seconds[key] else math.nan) / 3600
        words = ["relive paper --protocol", protocol, *settings.options, "--seeds", str(n), "--from reproduction"]
        cost = "unknown" if math.isnan(hours) else f"{hours:.1f}"
        title = f"{PROTOCOL_TITLES[protocol]}, {settings.title}"
        lines.append([title, f"1 to {n}", f"{complete} of {cells}", str(left), cost, f"`{' '.join(words)}`"])
    return table_of(*lines)


def choices(results: list[RunResult]) -> str:
    """Return what a single fidelity choice changes, seed by seed, and how many pairs are of one code and processor."""
    as_run = {run.spec: run for run in results if run.spec.fidelity == AS_RUN}
    pairs: dict[tuple[str, ...], list[float]] = defaultdict(list)
    alike: Counter[tuple[str, ...]] = Counter()
    for run in results:
        changed = {name: value for name, value in vars(run.spec.fidelity).items() if value != getattr(AS_RUN, name)}
        other = as_run.get(replace(run.spec, fidelity=AS_RUN))
        if len(changed) == 1 and other is not None:
            (name, value), spec = changed.popitem(), run.spec
            where = PROTOCOL_TITLES[spec.protocol], method_title(spec.method), SCENARIO_TITLES[spec.scenario]
            cell: tuple[str, ...] = f"`{name}={value}`", *where
            pairs[cell].append(100 * (run.average_accuracy - other.average_accuracy))
            alike[cell] += run.versions == other.versions
    lines = [
        ["choice", "protocol", "method", "scenario", "minus `as_run`, same seeds (points)", "same code, processor"]
    ]
    for cell, differences in sorted(pairs.items()):
        lines.append([*cell, _difference(differences), f"{alike[cell]} of {len(differences)}"])
    return table_of(*lines)


def repeats(results: list[RunResult], again: list[RunResult]) -> str:
    """Return how the results of runs differ between processors, and with them between libraries of products."""
    first = {run.spec.name: run for run in results}
    pairs: dict[tuple[str, ...], list[tuple[str, float]]] = defaultdict(list)
    for run in (run for run in again if run.spec.name in first):
        spec, other = run.spec, first[run.spec.name]
        where = PROTOCOL_TITLES[spec.protocol], method_title(spec.method), SCENARIO_TITLES[spec.scenario]
        difference = 100 * (run.average_accuracy - other.average_accuracy)
        pairs[*where, run.versions["processor"]].append((other.versions.get("processor", "not known"), difference))
    lines = [["protocol", "method", "scenario", "repeated on", "first on", "repeated − first (points)", "p", "largest"]]
    for cell, found in sorted(pairs.items()):
        differences = [difference for _, difference in found]
        p = p_text(paired(differences)) if len(differences) >= TESTED_RUNS else "–"
        processors = ", ".join(sorted({processor for processor, _ in found}))
        lines.append([*cell, processors, _difference(differences), p, difference_text(max(differences, key=abs))])
    return table_of(*lines)


def _difference(points: Sequence[float]) -> str:
    """Format the mean of paired differences."""
    mean, error = mean_and_sem(points)
    spread = "" if error is None else f" ± {error:.2f}"
    return f"{difference_text(mean)}{spread} (n={len(points)})"


def further(results: list[RunResult]) -> str:
    """Return the runs in none of the paper's tables: other methods, data sets and encoders, a row for each kind."""
    rows: dict[tuple[str, ...], dict[str, list[RunResult]]] = defaultdict(lambda: defaultdict(list))
    for run in results:
        spec = run.spec
        own = METHOD_FACTS[spec.method].encoder
        encoder = "" if spec.encoder in ("", own) else f", {spec.encoder}"
        if spec.method not in METHODS or spec.dataset != PAPER_DATASET or encoder:
            settings = {k: v for k, v in spec.settings.items() if v != METHOD_FACTS[spec.method].defaults[k]}
            said = f" ({settings_text(settings, spec.method)})" if settings else ""
            kind = (spec.dataset, spec.protocol, f"{method_title(spec.method)}{encoder}{said}")
            rows[kind][spec.scenario].append(run)
    head = ["data", "protocol", "method", *SCENARIO_TITLES.values(), "published elsewhere", "numbers kept", "CPU time"]
    lines = [head]
    for (dataset, protocol, title), cells in sorted(rows.items()):
        runs = [run for cell in cells.values() for run in cell]
        kept = statistics.median(run.parameters + run.stored_numbers for run in runs)
        seconds = statistics.median(run.cpu_seconds or run.train_seconds for run in runs)
        lines.append(
            [
                dataset,
                protocol,
                title,
                *(_mean(cells.get(scenario, [])) for scenario in SCENARIO_TITLES),
                _published(runs),
                f"{kept:,.0f}",
                f"{seconds:.0f} s",
            ]
        )
    return table_of(*lines)


def _mean(runs: list[RunResult]) -> str:
    if not runs:
        return ""
    mean, sem = mean_and_sem([100 * run.average_accuracy for run in runs])
    return f"{mean:.2f} ± {sem:.2f} ({len(runs)})" if sem is not None else f"{mean:.2f} (1)"


def _published(runs: list[RunResult]) -> str:
    """Return the cells that others have published for these runs, by scenario."""
    if runs[0].spec.dataset != PAPER_DATASET:
        return ""
    protocol, method = runs[0].spec.protocol, runs[0].spec.method
    cells = {scenario: FURTHER.get((protocol, scenario, method)) for scenario in SCENARIO_TITLES}
    return ", ".join(f"{SCENARIO_TITLES[name]} {cell.mean:.2f}" for name, cell in cells.items() if cell)


def checked(table: Comparison, times: Times) -> Iterator[str]:
    """Yield the paper's claims as a list, each with what our runs say."""
    for claim in claims(table, times):
        basis = f", by {claim.basis}" if claim.basis else ""
        yield f"- **{claim.title}: {claim.status}{basis}.** Here that means: {claim.rule}."
        yield from (f"  - {part.outcome}: {part.text}" for part in claim.parts)


def searches(results: list[RunResult], tuned: Tuned, protocol: str) -> Iterator[str]:
    """Yield a table per method whose settings were searched: a row per scenario, the chosen value in bold."""
    found = searched(results, protocol)
    for method in (name for which, name in GRIDS if which == protocol):
        name, *others = GRIDS[protocol, method]
        values = GRIDS[protocol, method][name]
        lines = []
        for scenario in SCENARIO_NAMES:
            rows: dict[str, dict[float, RunResult]] = defaultdict(dict)
            for run in found.get((scenario, method), []):
                settings = run.spec.settings
                rows[settings_text({key: settings[key] for key in others}, method)][settings[name]] = run
            chosen = tuned.get((protocol, scenario, method))
            for rest, runs in sorted(rows.items()):
                title = f"{SCENARIO_TITLES[scenario]}, {rest}".removesuffix(", ")
                lines.append([title, *(_accuracy(runs.get(value), chosen) for value in values)])
        if lines:
            head = [
                f"{method_title(method)}: {settings_text({name: 0}, method).partition(' = ')[0]} =",
                *(settings_text({name: value}, method).partition(" = ")[2] for value in values),
            ]
            yield table_of(head, *lines)


def _accuracy(run: RunResult | None, chosen: dict[str, float] | None) -> str:
    if run is None:
        return ""
    text = f"{100 * run.average_accuracy:.2f}"
    return f"**{text}**" if run.spec.settings == chosen else text


def main() -> None:
    """Write the tables between their marks."""
    results, damaged = Store(LEDGER).scan()
    if damaged:
        sys.exit("\n".join(map(str, damaged)))
    for name, table in tables(results).items():
        put(PAGES.get(name, PAGE), name, table)
    print("tables   ", PAGE, *PAGES.values())


if __name__ == "__main__":
    main()

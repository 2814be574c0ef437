"""Methods side by side: mean ± SEM of each, and every pair compared seed by seed. No torch."""

from __future__ import annotations

import itertools
from collections import Counter, defaultdict
from collections.abc import Iterable, Mapping, Sequence
from dataclasses import dataclass, fields, replace

from relive._util.fidelity import AS_RUN, name_of
from relive._util.registry import short_name
from relive._util.statistics import holm, mean_and_sem, paired
from relive.data.catalogue import PROTOCOLS
from relive.experiments.spec import SCENARIO_NAMES, RunResult, RunSpec
from relive.methods import METHODS

TESTED_RUNS = 3  # with two, a spread near 0 occurs by chance too often for a test
DIGITS = 7  # of a digest that distinguishes two contents of a file
OWN_ENCODER = "mlp"  # stands for the method's own encoder, which it is for most
OWN_CORE = 0.95  # share of the time; a run that had less waited for others, and its time says little


def percents(runs: Iterable[RunResult]) -> list[float]:
    """Return the runs' average accuracies in percent."""
    return [100 * run.average_accuracy for run in runs]


def core_share(run: RunResult) -> float | None:
    """Return the share of its training time during which a run had its cores, or None if not known."""
    if run.cpu_seconds is None or not run.train_seconds:
        return None
    return run.cpu_seconds / (run.train_seconds * run.spec.threads)


def is_quiet(run: RunResult) -> bool:
    """Return whether a run is known to have had a core for each of its threads, so that its time counts."""
    share = core_share(run)
    return share is not None and share >= OWN_CORE


@dataclass(frozen=True)
class Entry:
    """A method with its settings and encoder in one scenario, and its runs, one per seed. Accuracies in percent."""

    scenario: str
    method: str
    settings: Mapping[str, float]
    runs: tuple[RunResult, ...]

    @property
    def encoder(self) -> str:
        """The encoder, the method's own or another."""
        return self.runs[0].spec.encoder

    @property
    def digest(self) -> str:
        """The digest of the user's file with the method: other contents are another method."""
        spec = self.runs[0].spec
        return spec.sources.get(spec.method_source, "")

    @property
    def n(self) -> int:
        """How many runs."""
        return len(self.runs)

    @property
    def mean(self) -> float:
        """Of the average accuracies."""
        return mean_and_sem(percents(self.runs))[0]

    @property
    def sem(self) -> float | None:
        """Of the mean; one run has none."""
        return mean_and_sem(percents(self.runs))[1]


@dataclass(frozen=True)
class Pair:
    """Two entries on the same seeds: the mean of their differences in points, and the paired t-test, if any."""

    first: Entry
    second: Entry
    n: int
    difference: float
    sem: float | None
    p: float | None = None
    p_holm: float | None = None


@dataclass(frozen=True)
class SideBySide:
    """Runs that differ only in method, settings, scenario and seed.

    Attributes
    ----------
    like
        A spec that they all agree with otherwise.
    entries
        In the order of scenarios, and of methods as given.
    apart
        What distinguishes it from other groups with the same title.
    """

    like: RunSpec
    entries: tuple[Entry, ...]
    apart: str = ""

    @property
    def title(self) -> str:
        """What was learned: data set, protocol, and sizes."""
        spec = self.like
        fidelity = "" if spec.fidelity == AS_RUN else name_of(spec.fidelity)
        protocol = next((entry.runs[0].protocol_title for entry in self.entries), spec.protocol)
        encoder = "" if spec.encoder == OWN_ENCODER else f"encoder {short_name(spec.encoder)}"
        learned = f"{spec.tasks} tasks of {spec.iters} iterations"
        usual = PROTOCOLS[spec.protocol].preset if spec.protocol in PROTOCOLS else {}
        usual = {"optimizer": "adam", "device": "cpu"} | {k: v for k, v in usual.items() if k not in ("tasks", "iters")}
        own = [f"{name} {getattr(spec, name)}" for name, value in usual.items() if getattr(spec, name) != value]
        what = [short_name(spec.dataset), protocol, learned, *([encoder] if encoder else []), *own]
        return ", ".join([*what, *([fidelity] if fidelity else []), *([self.apart] if self.apart else [])])

    @property
    def scenarios(self) -> list[str]:
        """The scenarios that have runs."""
        return [name for name in SCENARIO_NAMES if any(entry.scenario == name for entry in self.entries)]

    def of(self, scenario: str) -> list[Entry]:
        """Return the entries of one scenario."""
        return [entry for entry in self.entries if entry.scenario == scenario]

    def pairs(self, scenario: str) -> list[Pair]:
        """Return all pairs of entries of a scenario that share seeds, corrected for the number of tests."""
        found = [pair for two in itertools.combinations(self.of(scenario), 2) if (pair := _pair(*two)) is not None]
        corrected = holm({i: pair.p for i, pair in enumerate(found) if pair.p is not None})
        return [replace(pair, p_holm=corrected.get(i)) for i, pair in enumerate(found)]


def _pair(first: Entry, second: Entry) -> Pair | None:
    by_seed = {run.spec.seed: run for run in second.runs}
    both = [(run, by_seed[run.spec.seed]) for run in first.runs if run.spec.seed in by_seed]
    if not both:
        return None
    differences = [100 * (a.average_accuracy - b.average_accuracy) for a, b in both]
    mean, sem = mean_and_sem(differences)
    tested = len(both) >= TESTED_RUNS and sem != 0  # without any spread there is nothing to test
    return Pair(first, second, len(both), mean, sem, paired(differences) if tested else None)


def side_by_side(results: Iterable[RunResult], methods: Sequence[str] = ()) -> list[SideBySide]:
    """Sort results into comparable groups; methods come in the order given, others after them by name.

    Using a method's own encoder does not separate them.
    """
    groups: dict[RunSpec, list[RunResult]] = defaultdict(list)
    for result in results:
        groups[_rest(result.spec)].append(result)
    return _told_apart([_group(like, runs, methods) for like, runs in groups.items()])


def together(results: Sequence[RunResult], methods: Sequence[str] = ()) -> SideBySide:
    """Put results side by side that were requested together, whatever their encoders are."""
    encoders = {result.spec.encoder for result in results}
    encoder = encoders.pop() if len(encoders) == 1 else OWN_ENCODER
    return _group(replace(_rest(results[0].spec), encoder=encoder), results, methods)


def _group(like: RunSpec, runs: Sequence[RunResult], methods: Sequence[str]) -> SideBySide:
    """Sort comparable runs into entries, one run per seed."""
    order = {name: i for i, name in enumerate(methods)}
    entries: dict[tuple[int, int, str, str, str, tuple[tuple[str, float], ...]], list[RunResult]] = defaultdict(list)
    for run in sorted(runs, key=lambda run: (run.spec.seed, run.spec.threads)):
        spec = run.spec
        place = SCENARIO_NAMES.index(spec.scenario), order.get(spec.method, len(order))
        source = spec.sources.get(spec.method_source, "")
        cell = entries[*place, spec.method, source, spec.encoder, tuple(sorted(spec.settings.items()))]
        if all(spec.seed != other.spec.seed for other in cell):  # another number of threads is not a new draw
            cell.append(run)
    made = [
        Entry(cell[0].spec.scenario, cell[0].spec.method, cell[0].spec.settings, tuple(cell))
        for _, cell in sorted(entries.items())
    ]
    return SideBySide(like, tuple(made))


def _told_apart(groups: list[SideBySide]) -> list[SideBySide]:
    """Return groups by title, with what distinguishes those with the same title."""
    titles = Counter(group.title for group in groups)
    told = [
        replace(group, apart=_apart(group, [other for other in groups if other.title == group.title]))
        if titles[group.title] > 1
        else group
        for group in groups
    ]
    return sorted(told, key=lambda group: group.title)


def _apart(group: SideBySide, twins: list[SideBySide]) -> str:
    """Describe how a group differs from those with the same title: fields, and digests of files."""

    def known(spec: RunSpec) -> dict[str, object]:
        plain = {field.name: getattr(spec, field.name) for field in fields(spec)}
        files = {f"{short_name(name)}": digest[:DIGITS] for name, digest in spec.sources.items()}
        return {name: value for name, value in plain.items() if name not in ("sources", "fidelity")} | files

    mine, others = known(group.like), [known(twin.like) for twin in twins]
    differing = [name for name, value in mine.items() if any(other.get(name) != value for other in others)]
    return ", ".join(f"{name} {mine[name]}" for name in differing)


def _rest(spec: RunSpec) -> RunSpec:
    """Return the part of a spec that runs must share to be comparable."""
    sources = {name: digest for name, digest in spec.sources.items() if name != spec.method_source}
    own = METHODS[spec.method].encoder if spec.method in METHODS else OWN_ENCODER
    encoder = OWN_ENCODER if spec.encoder == own else spec.encoder
    like = replace(spec, method="none", settings={}, scenario="class", seed=0, threads=1)
    return replace(like, sources=sources, encoder=encoder)

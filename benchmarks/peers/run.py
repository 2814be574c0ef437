"""Other libraries and relive on the same tasks: ``python -m benchmarks.peers.run``, in the environment of setup.sh.

Everything goes to ``reproduction/peers.json``; ``docs`` writes the tables of ``docs/peers.md`` from it and from the
ledger, which has relive's runs of the same seeds.
"""

from __future__ import annotations

import argparse
import ast
import contextlib
import importlib.metadata
import inspect
import itertools
import json
import os
import statistics
import subprocess
import sys
import time
from collections.abc import Iterator, Sequence
from pathlib import Path
from types import ModuleType
from typing import Any

import torch

from benchmarks.machine import machine
from benchmarks.page import put
from benchmarks.peers import relive_split
from relive import load_data, make_spec, tasks_of
from relive.experiments.store import Store

ROOT = Path(__file__).parents[2]
LEDGER = ROOT / "reproduction"
RESULTS = LEDGER / "peers.json"
DOCS = ROOT / "docs" / "peers.md"
N_TASKS, ITERATIONS, SEEDS = 5, 2000, (1, 2, 3)

# function of avalanche_split: its name in tables, relive's methods with the same idea
METHODS: dict[str, tuple[str, tuple[str, ...]]] = {
    "naive": ("Naive", ("none",)),
    "ewc": ("EWC, λ = 5,000", ("ewc",)),
    "ewc_strong": ("EWC, λ = 10⁹", ("ewc",)),
    "si": ("SynapticIntelligence", ("si",)),
    "si_copied": ("SynapticIntelligence, weights copied", ("si",)),
    "lwf": ("LwF, α = 1", ("lwf",)),
    "lwf_strong": ("LwF, α = 2", ("lwf",)),
    "generative_replay": ("GenerativeReplay, its own generator", ("dgr", "rtf")),
    "generative_replay_paper": ("GenerativeReplay, a generator of the paper's sizes", ("dgr", "rtf")),
}
OURS = ("none", "ewc", "si", "lwf", "dgr", "rtf")
ONLY_CLASS = ("generative_replay", "generative_replay_paper")  # its docs: it "does not use task identities"
SETTINGS_ONLY = ("ewc_strong", "si_copied", "lwf_strong")  # differ in one thing: neither timed nor counted
TIMED = tuple(method for method in METHODS if method not in SETTINGS_ONLY)
PACKAGES = ("avalanche-lib", "torch", "torchvision", "numpy")


def split_mnist(seed: int) -> Sequence[Any]:
    """Return the five tasks of this seed."""
    return tasks_of("split", load_data("mnist"), N_TASKS, seed)


def high_water() -> float:
    """Return this process's peak memory in megabytes."""
    lines = Path("/proc/self/status").read_text().splitlines()
    return int(next(line.split()[1] for line in lines if line.startswith("VmHWM"))) / 1024


@contextlib.contextmanager
def silence() -> Iterator[None]:
    """Discard what a library prints: Avalanche's generator has a progress bar that cannot be turned off."""
    with open(os.devnull, "w") as nowhere, contextlib.redirect_stdout(nowhere), contextlib.redirect_stderr(nowhere):
        yield


# ---- one run, in a fresh process ---------------------------------------------------------------------------------


def one(library: str, method: str, scenario: str, seed: int, iterations: int) -> dict[str, Any]:
    """Do one run in this process."""
    tasks = split_mnist(seed)
    if library == "avalanche":
        from benchmarks.peers import avalanche_split

        torch.manual_seed(seed)
        with silence():
            stream = avalanche_split.stream_of(tasks, scenario, normalise=method == "generative_replay")
            model = avalanche_split.MultiHeadMLP() if scenario == "task" else avalanche_split.single_head()
            strategy = getattr(avalanche_split, method)(model, iterations)
            start = time.perf_counter()
            accuracies = avalanche_split.learn(strategy, stream)
        done = strategy.clock.train_iterations
        if done != iterations * N_TASKS:
            raise RuntimeError(f"{done} iterations instead of {iterations * N_TASKS}")
    else:
        learner = relive_split.learner_of(method, scenario, tasks, seed)
        start = time.perf_counter()
        accuracies = relive_split.learn(learner, tasks, iterations)
    return {
        "library": library,
        "method": method,
        "scenario": scenario,
        "seed": seed,
        "iterations": iterations,
        "accuracies": accuracies,
        "average_accuracy": statistics.mean(accuracies),
        "seconds": round(time.perf_counter() - start, 1),
        "peak_mb": round(high_water(), 1),
    }


def fresh(*arguments: object) -> Any:
    """Do one run in a fresh process, with one thread."""
    command = [sys.executable, "-m", "benchmarks.peers.run", "one", *map(str, arguments)]
    environment = os.environ | {"OMP_NUM_THREADS": "1", "MKL_NUM_THREADS": "1"}
    done = subprocess.run(command, cwd=ROOT, env=environment, capture_output=True, text=True)
    if done.returncode:
        raise RuntimeError(f"{' '.join(command)} failed:\n{done.stderr[-3000:]}")
    return json.loads(done.stdout.splitlines()[-1])


# ---- stored results ----------------------------------------------------------------------------------------------


def read() -> dict[str, Any]:
    """Return the stored results."""
    if not RESULTS.exists():
        return {"runs": []}
    found: dict[str, Any] = json.loads(RESULTS.read_text())
    return found


def keep(**parts: Any) -> None:
    """Write these parts into the file."""
    versions = {name: importlib.metadata.version(name) for name in PACKAGES}
    found = read() | parts | {"versions": versions}
    RESULTS.parent.mkdir(exist_ok=True)
    replace(RESULTS, json.dumps(found, indent=1, ensure_ascii=False) + "\n")


def replace(path: Path, text: str) -> None:
    """Write a file atomically."""
    new = path.with_name(f".{path.name}.tmp")
    new.write_text(text)
    new.replace(path)


def key(run: dict[str, Any]) -> tuple[str, str, str, int]:
    """Return the key of a run."""
    return run["library"], run["method"], run["scenario"], run["seed"]


def add(runs: Sequence[dict[str, Any]]) -> None:
    """Store these runs, replacing those with the same key."""
    new = {key(run): run for run in read()["runs"]} | {key(run): run for run in runs}
    keep(runs=[new[k] for k in sorted(new)])


# ---- accuracy ----------------------------------------------------------------------------------------------------


def accuracy(scenario: str, methods: Sequence[str], seeds: Sequence[int]) -> None:
    """Do the missing runs, one after the other."""
    for seed, method in itertools.product(seeds, methods):
        if ("avalanche", method, scenario, seed) in {key(run) for run in read()["runs"]}:
            continue
        run = fresh("avalanche", method, scenario, seed, ITERATIONS)
        add([run])
        print(f"{scenario} {method} seed {seed}: {run['average_accuracy']:.4f} in {run['seconds']} s", flush=True)


def ours() -> list[dict[str, Any]]:
    """Return relive's runs of the same cells, from the ledger."""
    results = {result.spec.name: result for result in Store(LEDGER).scan()[0]}
    found = []
    for scenario, method, seed in itertools.product(("class", "task"), OURS, SEEDS):
        result = results[make_spec("split", scenario, method, seed=seed).name]
        run = {"library": "relive", "method": method, "scenario": scenario, "seed": seed}
        found.append(run | {"average_accuracy": result.average_accuracy})
    return found


def everything() -> dict[str, Any]:
    """Return the stored results together with relive's runs."""
    found = read()
    return found | {"runs": [*found["runs"], *ours()]}


# ---- speed, memory, lines ----------------------------------------------------------------------------------------


def turns(repeats: int, rounds: int, size: int) -> None:
    """Time iterations alternately, one round over all methods after the other; repeats are added to those stored."""
    from benchmarks.peers.turns import compare, ratios

    tasks = split_mnist(SEEDS[0])
    timing = read().get("timing", {"rounds": rounds, "size": size, "repeats": {}})
    if (timing["rounds"], timing["size"]) != (rounds, size):
        raise SystemExit("the stored repeats were measured with other --rounds or --size")
    about = machine()
    stored = timing["repeats"].setdefault(about["products"], [])
    for _ in range(repeats):
        found: dict[str, Any] = {"machine": about}
        for method in TIMED:
            with silence():
                found[method] = compare(method, METHODS[method][1], tasks, rounds, size)
            found[method]["ratios"] = ratios(found[method])
            print(method, found[method]["ratios"], found[method].get("fisher", ""), flush=True)
        stored.append(found)
        keep(timing=timing)


def memory(iterations: int = 10) -> None:
    """Measure the peak memory of a short run of each, in a fresh process, and of the imports alone."""
    found: dict[str, Any] = {"iterations": iterations, "avalanche": {}, "relive": {}}
    for library, module in (("avalanche", "avalanche_split"), ("relive", "relive_split")):
        code = f"import benchmarks.peers.{module}; from benchmarks.peers.run import high_water; print(high_water())"
        done = subprocess.run([sys.executable, "-c", code], cwd=ROOT, capture_output=True, text=True, check=True)
        found[library]["imports"] = round(float(done.stdout), 1)
        for method in TIMED if library == "avalanche" else OURS:
            found[library][method] = fresh(library, method, "class", SEEDS[0], iterations)["peak_mb"]
    keep(memory=found)


def needed(module: ModuleType, names: Sequence[str]) -> int:
    """Return how many lines of a module these functions need: their own, those they call, and the imports."""
    source = inspect.getsource(module)
    tree = ast.parse(source)
    homes: dict[str, ast.stmt] = {}
    for node in tree.body:
        if isinstance(node, ast.FunctionDef | ast.ClassDef):
            homes[node.name] = node
        elif isinstance(node, ast.Import | ast.ImportFrom) and "__future__" not in ast.unparse(node):
            homes |= {alias.asname or alias.name.split(".")[0]: node for alias in node.names}
    nodes: set[ast.stmt] = set()
    todo = [homes[name] for name in names]
    while todo:
        node = todo.pop()
        if node not in nodes:
            nodes.add(node)
            todo += [homes[n.id] for n in ast.walk(node) if isinstance(n, ast.Name) and n.id in homes]
    lines = {line for node in nodes for line in range(first_line(node), (node.end_lineno or node.lineno) + 1)}
    for part in ast.walk(tree):  # docstrings, like comments, are not counted
        if isinstance(part, ast.Expr) and isinstance(part.value, ast.Constant):
            lines -= set(range(part.lineno, (part.end_lineno or part.lineno) + 1))
    text = source.splitlines()
    return sum(1 for line in lines if text[line - 1].strip() and not text[line - 1].strip().startswith("#"))


def first_line(node: ast.stmt) -> int:
    """Return the line that a definition begins on, its decorators included."""
    decorators: list[ast.expr] = getattr(node, "decorator_list", [])
    return min([node.lineno, *(d.lineno for d in decorators)])


def lines() -> None:
    """Count the lines that a user writes for each method, without the lines that turn relive's tasks into a stream."""
    from benchmarks.peers import avalanche_split

    found = {
        method: {"class": needed(avalanche_split, [method, "single_head", "learn"])}
        | ({} if method in ONLY_CLASS else {"task": needed(avalanche_split, [method, "MultiHeadMLP", "learn"])})
        for method in TIMED
    }
    stop = needed(avalanche_split, ["StopAfter"])
    keep(lines={"avalanche": found, "relive": needed(relive_split, ["learner_of", "learn"]), "stop_after": stop})


# ---- commands ---------------------------------------------------------------------------------------------------


def docs() -> None:
    """Write the tables into the page."""
    from benchmarks.peers.tables import tables

    put(DOCS, "tables", tables(everything()))


def main() -> None:
    """Run the given command."""
    parser = argparse.ArgumentParser(description=__doc__)
    commands = parser.add_subparsers(dest="command", required=True)
    command = commands.add_parser("one", help="one run, printed as JSON")
    for name in ("library", "method", "scenario"):
        command.add_argument(name)
    for name in ("seed", "iterations"):
        command.add_argument(name, type=int)
    command = commands.add_parser("accuracy", help="do the missing runs of Avalanche")
    command.add_argument("--scenario", choices=("class", "task"), default="class")
    command.add_argument("--methods", nargs="+", default=list(METHODS))
    command.add_argument("--seeds", nargs="+", type=int, default=SEEDS)
    command = commands.add_parser("turns", help="time iterations of both alternately")
    command.add_argument("--repeats", type=int, default=3)
    command.add_argument("--rounds", type=int, default=4)
    command.add_argument("--size", type=int, default=6)
    commands.add_parser("memory", help="peak memory of each")
    commands.add_parser("lines", help="lines that a user writes")
    commands.add_parser("docs", help="write the tables of docs/peers.md")
    options = parser.parse_args()
    torch.set_num_threads(1)
    if options.command == "one":
        found = one(options.library, options.method, options.scenario, options.seed, options.iterations)
        print(json.dumps(found))
    elif options.command == "accuracy":
        accuracy(options.scenario, options.methods, options.seeds)
    elif options.command == "turns":
        turns(options.repeats, options.rounds, options.size)
    else:
        {"memory": memory, "lines": lines, "docs": docs}[options.command]()


if __name__ == "__main__":
    main()

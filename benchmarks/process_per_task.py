"""Split MNIST through `relive fit`, a process per task, against the run in the ledger.

    python benchmarks/process_per_task.py [--iterations 2000] [--runs-dir reproduction]

Each task is one `relive fit` on the same model file, which is all that passes from one process to the next. Then its
accuracy on every task and the pictures that it generates must be those of `relive run --protocol split --scenario class
--method rtf --seed 0`, number by number. Exits with 1 if they are not.
"""

from __future__ import annotations

import argparse
import subprocess
import sys
import tempfile
from pathlib import Path

import numpy as np
import torch

import relive
from relive._util.seeds import stream
from relive.experiments.store import SAMPLES, Store
from relive.networks import GenerativeClassifier

TASKS = 5


def command_line(*arguments: str | Path) -> None:
    subprocess.run([sys.executable, "-m", "relive", *map(str, arguments)], check=True)


def taught(home: Path, iterations: int) -> relive.ContinualClassifier:
    """Return the model that five processes have trained."""
    data, model = relive.load_data("mnist"), home / "model.safetensors"
    for k in range(TASKS):
        rows = np.isin(data.train_labels, [2 * k, 2 * k + 1])
        np.savez(home / "task.npz", X=data.train_inputs[rows], y=data.train_labels[rows])
        options = [] if k else ["--iterations", str(iterations), "--fidelity", "as_run", "--seed", "0"]
        command_line("fit", model, home / "task.npz", *options)
    return relive.load(model)


def main() -> None:
    parser = argparse.ArgumentParser(description=__doc__, formatter_class=argparse.RawDescriptionHelpFormatter)
    parser.add_argument("--iterations", type=int, default=2000)
    parser.add_argument("--runs-dir", type=Path, default=Path("reproduction"))
    options = parser.parse_args()
    torch.set_num_threads(1)
    spec = relive.make_spec("split", "class", "rtf", iters=options.iterations, seed=0)
    store = Store(options.runs_dir)
    run = store.load(spec)
    if run is None:
        sys.exit(f"{store.directory(spec)} has no result: do the run first, with --runs-dir {options.runs_dir}")
    with tempfile.TemporaryDirectory() as folder:
        model = taught(Path(folder), options.iterations)
    data, ours = relive.load_data("mnist"), list[float]()
    for k in range(TASKS):
        rows = np.isin(data.test_labels, [2 * k, 2 * k + 1])
        ours.append(model.score(data.test_inputs[rows].reshape(rows.sum(), -1), data.test_labels[rows]))
    net = model.learner_.net
    assert isinstance(net, GenerativeClassifier)
    drawn = net.generate(100, stream(0, f"samples after task {TASKS - 1}")).mul(255).round().byte().numpy()
    with np.load(store.directory(spec) / SAMPLES) as samples:
        pictures = bool((drawn == samples[f"task{TASKS - 1}"].reshape(drawn.shape)).all())
    print("task      a process per task    relive run")
    for k, (mine, its) in enumerate(zip(ours, run.accuracy_matrix[-1], strict=True), 1):
        print(f"{k}         {100 * mine:17.4f} %  {100 * its:10.4f} %")
    print(f"average   {100 * np.mean(ours):17.4f} %  {100 * run.average_accuracy:10.4f} %")
    print(f"the hundred pictures drawn after the last task are {'the same' if pictures else 'NOT the same'}")
    sys.exit(0 if pictures and np.allclose(ours, run.accuracy_matrix[-1], rtol=0, atol=1e-9) else 1)


if __name__ == "__main__":
    main()

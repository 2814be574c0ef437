"""Your own method in your own file: experience replay from a small buffer of real samples.

    relive run --method examples/own_method.py:ExperienceReplay --dataset digits --iters 500
    relive compare --method none --method examples/own_method.py:ExperienceReplay --dataset digits --iters 500

It stores data, which most methods here are designed to avoid, and declares it.
"""

from __future__ import annotations

from collections.abc import Collection, Sequence

import torch
from torch import Tensor

from relive import Method
from relive.core.batch import Batch, concat, hard_rows
from relive.core.sources import Part
from relive.core.state import check_form
from relive.data.tasks import Task
from relive.networks import Classifier


class ExperienceReplay(Method):
    """Keep some samples of every task, and train on a batch of them beside each batch of new ones."""

    title = "ER"
    reference = "Rolnick et al. 2019, experience replay"
    keeps_data = True
    limits = {"size": (1, 1e6)}  # noqa: RUF012
    explain = {"size": "how many samples are kept in all"}  # noqa: RUF012

    def __init__(self, size: float = 200) -> None:
        self.size = size
        self.x_ = torch.empty(0, 0)
        self.label_ = torch.empty(0, dtype=torch.long)  # position within the task's classes
        self.task_ = torch.empty(0, dtype=torch.long)

    def replay(self, net: Classifier, current: Batch, seen: int, rng: torch.Generator) -> Batch | None:
        if not len(self.task_):
            return None
        scenario, n = self.problem.scenario, min(len(current), len(self.task_))
        chosen = torch.randperm(len(self.task_), generator=rng)[:n]
        parts = []
        for k in sorted(set(self.task_[chosen].tolist())):
            rows = chosen[self.task_[chosen] == k]
            unit = scenario.units(k)[self.label_[rows]]
            mine = hard_rows(self.x_[rows], unit, scenario.active(k, seen), self.task_[rows])
            parts.append(mine.times(len(rows) / n))
        return concat(parts)

    def after_task(self, net: Classifier, learned: Sequence[Part], seen: int) -> None:
        for part in learned:  # the newest task; several in a stream without boundaries
            new = torch.randperm(len(part.examples), generator=torch.Generator().manual_seed(seen))[: int(self.size)]
            x = part.examples.inputs(new)
            self.x_ = torch.cat([x, self.x_.view(-1, x.shape[1])])  # the newest first
            self.label_ = torch.cat([part.examples.labels[new], self.label_])
            self.task_ = torch.cat([torch.full((len(new),), part.task), self.task_])
        room = int(self.size) // seen  # for each task
        kept = torch.cat([(self.task_ == k).nonzero().flatten()[:room] for k in range(seen)])
        self.x_, self.label_, self.task_ = self.x_[kept], self.label_[kept], self.task_[kept]

    def forget(self, net: Classifier, gone: Collection[int]) -> None:
        """Drop the samples of classes that the user has forgotten; a method with ``keeps_data`` must say how."""
        classes, rows = self.problem.scenario.classes, zip(self.task_.tolist(), self.label_.tolist(), strict=True)
        kept = torch.tensor([classes[k][c] not in gone for k, c in rows], dtype=torch.bool)
        self.x_, self.label_, self.task_ = self.x_[kept], self.label_[kept], self.task_[kept]

    def state(self) -> dict[str, Tensor]:
        return {"x": self.x_, "label": self.label_, "task": self.task_}

    def load_state(self, state: dict[str, Tensor]) -> None:
        self.x_, self.label_, self.task_ = state["x"], state["label"], state["task"]

    def check_state(self, state: dict[str, Tensor], net: Classifier) -> None:
        """Refuse a buffer that cannot be one, as a model file may hold anything; this hook is optional."""
        n, classes = len(state["x"]), self.problem.scenario.classes
        long = torch.empty(n, dtype=torch.long)
        check_form(state, {"x": torch.empty(n, self.problem.sizes.inputs), "label": long, "task": long})
        rows = zip(state["task"].tolist(), state["label"].tolist(), strict=True)
        if not all(0 <= k < len(classes) and 0 <= c < len(classes[k]) for k, c in rows):
            raise ValueError("the buffer has samples of no task and class")

    def stored_numbers(self, tasks: Sequence[Task]) -> int:
        return self.x_.numel() + self.label_.numel() + self.task_.numel()


if __name__ == "__main__":
    from relive import make_spec, run

    for method in ("none", f"{__file__}:ExperienceReplay"):
        spec = make_spec("split", "class", method, dataset="digits", iters=200, hidden=100)
        print(f"{spec.method.rpartition(':')[2]:<18} {100 * run(spec).result.average_accuracy:.1f} %")

"""Progress of a run: a live bar on a terminal, a line per finished task elsewhere."""

from __future__ import annotations

from rich.console import Console
from rich.progress import BarColumn, MofNCompleteColumn, Progress, TextColumn, TimeRemainingColumn

from relive.experiments.observer import Observer
from relive.experiments.spec import RunSpec


class LiveObserver(Observer):
    """Shows task, iteration, loss, accuracy so far and time left."""

    def __init__(self, spec: RunSpec, console: Console) -> None:
        self.spec = spec
        self.console = console
        self.live = console.is_terminal
        self.progress = Progress(
            TextColumn("task {task.fields[number]}/" + str(spec.tasks)),
            BarColumn(bar_width=None),  # what the words leave of the line
            MofNCompleteColumn(),
            TextColumn("loss {task.fields[loss]}, accuracy {task.fields[accuracy]}"),
            TextColumn("{task.fields[bound]}"),
            TimeRemainingColumn(),
            TextColumn("left"),
            console=console,
            disable=not self.live,
            transient=True,
            expand=True,
        )
        self.bar = self.progress.add_task("", total=spec.tasks * spec.iters, number=1, loss="–", accuracy="–", bound="")

    def __enter__(self) -> LiveObserver:
        self.progress.start()
        return self

    def __exit__(self, *exception: object) -> None:
        self.progress.stop()

    def resumed(self, done: int) -> None:
        self.task_started(done)
        self.console.print(f"resuming after task {done} of {self.spec.tasks}")

    def task_started(self, task: int) -> None:
        bound = "≥" if task == 0 and self.spec.tasks > 1 else ""  # nothing is replayed yet: later tasks cost more
        self.progress.update(self.bar, number=task + 1, completed=task * self.spec.iters, bound=bound)

    def stepped(self, task: int, iteration: int, loss: float) -> None:
        self.progress.update(self.bar, completed=task * self.spec.iters + iteration, loss=f"{loss:.3f}")

    def probed(self, task: int, accuracies: list[float]) -> None:
        self.progress.update(self.bar, accuracy=_percent(accuracies))

    def task_finished(self, task: int, accuracies: list[float]) -> None:
        so_far = accuracies[: task + 1]
        self.progress.update(self.bar, accuracy=_percent(so_far))
        self.console.print(f"learned task {task + 1} of {self.spec.tasks}: average accuracy so far {_percent(so_far)}")


def _percent(accuracies: list[float]) -> str:
    return f"{100 * sum(accuracies) / len(accuracies):.1f} %"

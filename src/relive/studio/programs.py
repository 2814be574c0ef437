"""What a command does to a model file, as a Python program: the same model and the same predictions."""

from __future__ import annotations

from collections.abc import Mapping
from dataclasses import dataclass, field

LOAD, NEW = "from relive import load", "from relive import ContinualClassifier"
PATHS, READ = "from pathlib import Path", "from relive.data.readers.formats import read_any"
NOTED = "model.notes_.get('fit', {})"  # how the first task was read
TESTED = "0.1 if len(samples.x) >= 200 else 0.0"  # share of a task's samples that is held out for testing


@dataclass(frozen=True)
class Step:
    """One operation on a model file.

    Attributes
    ----------
    model
        Its file.
    new
        Whether this operation creates it.
    data
        Name of the file or folder of samples.
    asked
        Options of the command, by name.
    keep
        How many earlier versions are kept.
    """

    model: str
    new: bool = False
    data: str = ""
    asked: Mapping[str, str] = field(default_factory=dict)
    keep: int = 0

    def fit(self) -> str:
        """Return the program that trains the model."""
        task = f", {self.asked['task']!r}" if self.asked.get("task") else ""
        learn = f"model.partial_fit({self._x}, samples.y{task})"
        if not self.new:
            tested = f"model.set_params(holdout={NOTED}.get('holdout', {TESTED}))"
            return self._changed(*self._read(True), tested, learn)
        method = {"method": repr(self.asked["method"])} if self.asked.get("method") else {}
        given = method | ({"forgettable": "True"} if self.asked.get("forgettable") == "yes" else {})
        given |= ({"shape": "samples.image"} if self._is_folder else {}) | {"holdout": TESTED, "n_jobs": "1"}
        noted = {name: self.asked[name] for name in ("label", "x", "y") if self.asked.get(name)}
        notes = [f"model.notes_['fit'] = {noted!r}  # the defaults for later tasks"] if noted else []
        notes += ["model.notes_['image'] = list(samples.image)"] if self._is_folder else []
        made = f"model = ContinualClassifier({', '.join(f'{name}={value}' for name, value in given.items())})"
        return _program({PATHS, NEW, READ} | self._pandas, *self._read(True), made, learn, *notes, self._save)

    def predict(self) -> str:
        """Return the program that prints the model's predictions."""
        said = f"for label, row in zip(model.predict({self._asked}), model.predict_proba({self._asked})):"
        return self._loaded(*self._read(False), *self._task, said, "    print(label, row.max())")

    def evaluate(self) -> str:
        """Return the program that evaluates the model."""
        test = f"found = model.evaluate({self._x}, samples.y{', task' * bool(self._task)})"
        told = "print(found.overall.share, found.overall.n)"
        return self._loaded(*self._read(True), *self._task, test, told)

    def inspect(self) -> str:
        """Return the program that prints what the model remembers."""
        return _program({LOAD}, self._open, "for memory in model.report():", "    print(memory)")

    def replay(self, n: int, task: int | None) -> str:
        """Return the program that generates samples from the model; in Task-IL with labels of one task."""
        given = f"{n}, task={task}" if task is not None else f"{n}"
        return _program({LOAD}, self._open, f"x, labels = model.replay({given})", "print(x.shape, labels)")

    def forget(self) -> str:
        """Return the program that makes the model forget a class."""
        label = f"label = next(label for label in model.labels_.tolist() if str(label) == {self.asked['class']!r})"
        return self._changed(label, "model.forget(label)")

    def rollback(self) -> str:
        """Return the program that restores the previous version."""
        history = "from relive.classifier.history import locked, roll_back"
        back = ("with locked(path):", "    roll_back(path, check=load)", "print(load(path).classes_)")
        return _program({PATHS, LOAD, history}, f"path = Path({self.model!r})", *back)

    @property
    def _is_table(self) -> bool:
        return self.data.lower().endswith(".csv")

    @property
    def _is_folder(self) -> bool:
        return not self.data.lower().endswith((".csv", ".npz"))

    @property
    def _x(self) -> str:
        return "pd.DataFrame(samples.x, columns=samples.names)" if self._is_table else "samples.x"

    @property
    def _asked(self) -> str:
        return self._x + ", task" * bool(self._task)

    @property
    def _pandas(self) -> set[str]:
        return {"import pandas as pd"} if self._is_table else set()

    @property
    def _open(self) -> str:
        return f"model = load({self.model!r})"

    @property
    def _save(self) -> str:
        return f"model.save({self.model!r})"

    @property
    def _task(self) -> list[str]:
        name = self.asked.get("task")
        return [f"task = next(t.name for t in model.lessons_ if str(t.name) == {name!r})"] if name else []

    def _read(self, needed: bool) -> list[str]:
        """Return the line that reads the samples; options default to those of the first task."""
        names = {"label": "label"} if self._is_table else {"x": "X", "y": "y"} if not self._is_folder else {}
        given = {name: repr(self.asked[name]) for name in names if self.asked.get(name)}
        if not self.new:
            usual = {name: f"{NOTED}.get({name!r}, {value!r})" for name, value in names.items()}
            given = usual | given
            given |= {"text_labels": "model.labels_.dtype.kind == 'U'"} if self._is_table else {}
            given |= {"image": "tuple(model.notes_['image'])"} if self._is_folder else {}
        if not needed and not any(self.asked.get(name) for name in ("label", "y") if name in names):
            given["needed"] = "False"
        options = "".join(f", {name}={value}" for name, value in given.items())
        return [f"samples = read_any(Path({self.data!r}){options})"]

    def _loaded(self, *lines: str) -> str:
        return _program({PATHS, LOAD, READ} | self._pandas, self._open, *lines)

    def _changed(self, *lines: str) -> str:
        """Return a program that changes the model and keeps the previous version."""
        imports = {PATHS, LOAD, "from relive.classifier.history import keeping"}
        imports |= {READ} | self._pandas if self.data else set()
        return _program(
            imports, self._open, *lines, f"with keeping(Path({self.model!r}), {self.keep}):", f"    {self._save}"
        )


def _program(imports: set[str], *lines: str) -> str:
    """Return a program, its imports sorted: standard library, third-party, relive."""
    ours = sorted(line for line in imports if "relive" in line)
    plain, others = [PATHS] * (PATHS in imports), sorted(imports - {PATHS, *ours})
    parts = ["\n".join(part) for part in (plain, others, ours, lines) if part]
    return "\n\n".join(parts) + "\n"

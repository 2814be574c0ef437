"""Fuzzing targets: each generates cases and consumes them. Only ``ReliveError`` may be raised."""

from __future__ import annotations

import base64
import csv
import io
import json
import os
import shutil
import sys
import zlib
from abc import ABC, abstractmethod
from pathlib import Path
from random import Random
from typing import Any, ClassVar

import numpy as np

from relive.classifier.modelfile import load
from relive.classifier.modelheader import described
from relive.cli import main
from relive.cli.console import json_text
from relive.data.datasets import idx
from relive.data.readers.formats import read_any
from relive.experiments import ledger
from relive.experiments.shown import register_methods_in
from relive.experiments.spec import RunResult, RunSpec, make_spec
from relive.experiments.store import RESULT, Store
from relive.inference.about import about, remembered
from relive.inference.predictor import NeedsTorchError, checked
from relive.methods.catalogue import METHODS
from tests.fuzzing import mutate, seeds
from tests.report.fake import result_of

LARGE = 10_000  # models with more features are not queried


class Target(ABC):
    """Something that takes input from outside.

    Parameters
    ----------
    folder
        Where files may be written; the working directory.
    """

    name: ClassVar[str]
    ending: ClassVar[str]  # of a case's file in the corpus
    share: ClassVar[int]  # of 100 cases

    def __init__(self, folder: Path) -> None:
        self.folder = folder

    @abstractmethod
    def case(self, rng: Random) -> bytes:
        """Return a case."""

    @abstractmethod
    def take(self, case: bytes) -> None:
        """Consume a case; raises ``ReliveError`` if it is refused, and anything else only if relive has a bug."""


class Models(Target):
    """Model files: bytes changed at random; headers and tensors changed with a corrected digest."""

    name, ending, share = "models", ".safetensors", 60

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.files = list(seeds.models(folder).values())
        self.parts = [seeds.taken_apart(raw, folder) for raw in self.files]

    def case(self, rng: Random) -> bytes:
        which, how = rng.randrange(len(self.files)), rng.random()
        if how < 0.2:
            raw = self.files[which]
            return mutate.of_bytes(raw, rng, 8 + int.from_bytes(raw[:8], "little"))
        header, arrays = self.parts[which]
        if how < 0.6:
            return seeds.put_together(mutate.of_json(header, rng), arrays)
        return seeds.put_together(header, mutate.of_arrays(arrays, rng))

    def take(self, case: bytes) -> None:
        path = self.folder / "m.safetensors"
        path.write_bytes(case)
        header, arrays = described(path, allow_code=False)
        books = header.bookkeeping
        json_text(about(header, path, remembered(header)))
        if header.n_features > LARGE:
            return
        task = books.lessons[0].name if header.parameters["scenario"] == "task" else None
        x = np.linspace(0, 1, 3 * header.n_features).reshape(3, -1)
        try:
            predictor = checked(path, header, arrays)
            assert np.isfinite(predictor.predict_proba(x, task)).all()
            if len(header.asked.scores):
                predictor.judged(x, task, 0.5)
        except NeedsTorchError:
            pass
        if zlib.crc32(case) % 4 == 0:  # torch takes longer
            self._learn(path, x, task)

    def _learn(self, path: Path, x: Any, task: Any) -> None:
        model = load(path)
        model.report()
        assert np.isfinite(model.predict_proba(x, task)).all()
        if len(model.asked_.scores):
            model.judged(x, task, 0.5)
        model.set_params(iterations=1, early_stopping=False, batch_size=4, n_jobs=None, consolidate_every=None)
        model.partial_fit(x, np.resize(model.labels_[:2], 3), task=None if model.pending_ else "another")
        model.save(path)


class Results(Target):
    """Results with a correct digest, as another machine may send them."""

    name, ending, share = "results", ".json", 18

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        made = [make_spec("split", "class", method, seed=3) for method in ("rtf", "si", "none")]
        self.values = [result_of(spec, 0.7).to_json() for spec in made]
        self.values[0]["shown"] = {"title": "Mine", "colour": "#123456", "marker": "o"}

    def case(self, rng: Random) -> bytes:
        values = mutate.of_json(rng.choice(self.values), rng)
        raw = seeds.resigned(values) if isinstance(values, dict) else json.dumps(values).encode()
        return mutate.of_bytes(raw, rng) if rng.random() < 0.2 else raw

    def take(self, case: bytes) -> None:
        root = self.folder / "runs"
        (root / "x").mkdir(parents=True, exist_ok=True)
        (root / "x" / RESULT).write_bytes(case)
        (root / "x.jsonl").write_bytes(case.replace(b"\n", b""))
        Store(root).scan()
        for found in ledger._lines(root / "x.jsonl").values():
            if isinstance(found, RunResult):
                json.dumps(found.to_json())
                assert found.protocol_title
        try:
            values = json.loads(case)
        except (ValueError, RecursionError):
            return
        if isinstance(values, dict):
            values.pop("sha256", None)
            result = RunResult.from_json(values)
            own = dict(METHODS._own)
            register_methods_in([result])
            METHODS._own = own


class Specs(Target):
    """Specs as JSON."""

    name, ending, share = "specs", ".json", 5

    def case(self, rng: Random) -> bytes:
        return json.dumps(mutate.of_json(make_spec("split", "task", "si", seed=3).to_json(), rng)).encode()

    def take(self, case: bytes) -> None:
        values = json.loads(case)
        if isinstance(values, dict):
            spec = RunSpec.from_json(values)
            assert RunSpec.from_json(json.loads(json.dumps(spec.to_json()))) == spec
            assert spec.name


class Idx(Target):
    """IDX files."""

    name, ending, share = "idx", "-ubyte", 3

    def case(self, rng: Random) -> bytes:
        shape = rng.choice([(7,), (3, 2, 2), (0,), (1, 1)])
        return mutate.of_bytes(idx.to_bytes(np.zeros(shape, np.uint8)), rng, 16)

    def take(self, case: bytes) -> None:
        idx.from_bytes(case, "case")


class Arrays(Target):
    """NPZ files."""

    name, ending, share = "npz", ".npz", 4
    kinds = (
        *({"X": np.ones((4, 3)), "y": np.arange(4)}, {"X": np.ones((4, 2, 2), np.uint8), "y": np.array(list("abab"))}),
        *({"X": np.full((4, 3), np.nan), "y": np.arange(4)}, {"X": np.ones((0, 3)), "y": np.ones(0)}),
        *({"X": np.ones((4, 3), np.complex64), "y": np.arange(4)}, {"X": np.ones((4, 3)), "y": np.array([b"a"] * 4)}),
        {"X": np.ones((4, 3)), "y": np.array(["2020"] * 4, "datetime64[Y]")},
    )

    def case(self, rng: Random) -> bytes:
        raw = seeds.npz(**rng.choice(self.kinds))
        return mutate.of_bytes(raw, rng, 120) if rng.random() < 0.7 else raw

    def take(self, case: bytes) -> None:
        path = self.folder / "a.npz"
        path.write_bytes(case)
        read_any(path, needed=zlib.crc32(case) % 2 == 0)


class Tables(Target):
    """CSV files."""

    name, ending, share = "csv", ".csv", 4

    def case(self, rng: Random) -> bytes:
        text = io.StringIO()
        writer = csv.writer(text)
        names = ["a", "b", rng.choice(["c", "", "a", "\x1b", "=1"])]
        writer.writerow([*names, rng.choice(["label", "label", "y"])])
        for _ in range(rng.choice([0, 1, 5])):
            cells = [str(value) for value in mutate.VALUES if not isinstance(value, str | list | dict)]
            row = [rng.choice(["1", "2.5", "-3e2", "4", rng.choice(cells)]) for _ in range(3)]
            writer.writerow([*row, rng.choice(["x", "y", "1", "01", "", " ", "a\0", "nan", "\x85", "True"])])
        raw = text.getvalue().encode(errors="replace")
        return mutate.of_bytes(raw, rng) if rng.random() < 0.5 else raw

    def take(self, case: bytes) -> None:
        path = self.folder / "a.csv"
        path.write_bytes(case)
        read_any(path, needed=zlib.crc32(case) % 2 == 0, text_labels=zlib.crc32(case) % 3 == 0)


class Folders(Target):
    """Folders of pictures, as JSON: a file's content, in base64, by its name."""

    name, ending, share = "folders", ".json", 2

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        rng = np.random.default_rng(0)
        kinds = [("PNG", (6, 6)), ("PNG", (6, 6, 4)), ("JPEG", (6, 6, 3)), ("BMP", (6, 6)), ("GIF", (6, 6))]
        self.pictures = [(kind, seeds.picture(rng, kind, shape)) for kind, shape in kinds]

    def case(self, rng: Random) -> bytes:
        files = {}
        for k in range(rng.choice([1, 2, 3])):
            kind, raw = rng.choice(self.pictures)
            raw = mutate.of_bytes(raw, rng) if rng.random() < 0.7 else raw
            inside = rng.choice(["x/", "y/", "", "x/z/", "\udce9/", "\x1b[2J/"])
            files[f"{inside}{k}{rng.choice(['.' + kind.lower(), '.png', '.txt'])}"] = base64.b64encode(raw).decode()
        return json.dumps(files).encode()

    def take(self, case: bytes) -> None:
        root = self.folder / "photos"
        shutil.rmtree(root, ignore_errors=True)
        root.mkdir()
        for name, content in json.loads(case).items():
            (root / name).parent.mkdir(parents=True, exist_ok=True)
            (root / name).write_bytes(base64.b64decode(content))
        read_any(root, needed=zlib.crc32(case) % 2 == 0, image=(4, 4))


class CommandLines(Target):
    """Commands with bad options, as JSON lists of words."""

    name, ending, share = "commands", ".json", 4
    values: ClassVar = (
        *("-1", "0", "1", "2", "x", "1e3", "9" * 30, "", "nan", "inf", "1" * 5000, "[/]", "\x1b[2J", "a=b", "a=", "=1"),
        *("--", "-", "t.csv", "m.safetensors", "no.csv", ".", "/dev/null", "none", "slda", "rtf", "task", "é\ud800"),
    )
    options: ClassVar = {
        "fit": (
            *("--task", "--label", "--size", "--colour", "--again", "--keep", "--threads", "--method", "--scenario"),
            *("--set", "--forgettable", "--encoder", "--shape", "--hidden", "--latent", "--learning-rate", "--seed"),
            *("--batch-size", "--likelihood", "--fidelity", "--holdout", "--early-stopping", "--x", "--y"),
        ),
        "predict": ("--output", "--format", "--task", "--task-column", "--proba", "--reject", "--label", "--x", "--y"),
        "evaluate": ("--against", "--format", "--page", "--task", "--label"),
        "inspect": ("--json", "--picture", "--allow-code"),
        "forget": ("--keep",),
        "rename": ("--keep",),
        "merge": ("--into", "--keep"),
        "rollback": ("--allow-code",),
        "methods": ("--json",),
        "table": ("--runs-dir", "--protocol", "--format", "--tuned", "--later"),
        "collect": ("--into", "--samples", "--replace"),
        "data": ("list", "verify", "--data-dir"),
    }

    def __init__(self, folder: Path) -> None:
        super().__init__(folder)
        self.model = next(iter(seeds.models(folder).values()))

    def case(self, rng: Random) -> bytes:
        command = rng.choice(list(self.options))
        words = [command]
        if command not in ("methods", "table", "data") and rng.random() < 0.9:
            words += [rng.choice(["m.safetensors", "m.safetensors", "new.safetensors", "t.csv"])]
            words += [rng.choice(["t.csv", *self.values])] * (rng.random() < 0.8)
        for _ in range(rng.choice([0, 1, 2, 4])):
            words += [rng.choice(self.options[command])] + [rng.choice(self.values)] * (rng.random() < 0.7)
        words += ["--iterations", "1"] if command == "fit" else []
        return json.dumps(words).encode()

    def take(self, case: bytes) -> None:
        home = self.folder / "cli"
        shutil.rmtree(home, ignore_errors=True)
        home.mkdir()
        (home / "m.safetensors").write_bytes(self.model)
        rows = "\n".join(f"{k},{k * 2},1,0,{k % 3},{k % 2}" for k in range(6))
        (home / "t.csv").write_text(f"a,b,c,d,e,label\n{rows}\n")
        words = [os.fsdecode(os.fsencode(w)) if "\ud800" not in w else w[:1] for w in json.loads(case) if "\0" not in w]
        code, said = _given(words, home)
        if code not in (0, 1, 2) or "Traceback" in said or "not foreseen" in said:
            raise RuntimeError(f"relive {words} ended with {code}: {said[-500:]}")
        sent = {c for c in said if ord(c) < 32 and c not in "\n\t"} - ({"\x1b"} if "Usage:" in said else set())
        assert not sent, (words, sent)


def _given(words: list[str], home: Path) -> tuple[int, str]:
    """Run a command in this process; return its exit code, and what it printed."""
    before, argv, here = (sys.stdout, sys.stderr), sys.argv, os.getcwd()
    raw = io.BytesIO()
    stream = io.TextIOWrapper(raw, encoding="utf-8", write_through=True)
    sys.stdout, sys.stderr, sys.argv = stream, stream, ["relive", *words]
    os.chdir(home)
    try:
        main()
        code = 0
    except SystemExit as ended:
        code = int(ended.code or 0) if isinstance(ended.code, int | None) else 1
    finally:
        os.chdir(here)
        sys.stdout, sys.stderr = before
        sys.argv = argv
    return code, raw.getvalue().decode(errors="replace")


TARGETS: tuple[type[Target], ...] = (Models, Results, Specs, Idx, Arrays, Tables, Folders, CommandLines)

"""Everything known about a model, from its file alone, as JSON."""

from __future__ import annotations

import math
from collections.abc import Sequence
from dataclasses import asdict
from pathlib import Path
from typing import Any

from relive._util.fidelity import Fidelity, name_of
from relive.classifier.bookkeeping import Array
from relive.classifier.history import kept
from relive.classifier.lessons import Lesson
from relive.classifier.modelheader import Header
from relive.classifier.portraits import by_label
from relive.classifier.selfreport import Memory, memories
from relive.methods import method_facts


def about(header: Header, path: Path, memories: Sequence[Memory]) -> dict[str, Any]:
    """Describe what a model has learned and when, how well it remembers each class, and how it was created."""
    books, parameters = header.bookkeeping, dict(header.parameters)
    if isinstance(parameters["fidelity"], Fidelity):
        parameters["fidelity"] = name_of(parameters["fidelity"])
    return {
        "bytes": path.stat().st_size,
        "parameters": parameters,
        "choice": asdict(header.choice),
        "holds_data": method_facts(header.choice.method).keeps_data or header.pending > 0,
        "likelihood": header.features.likelihood,
        "features": header.n_features,
        "feature_names": list(header.feature_names),
        "image": image_in(header.notes, header.n_features),
        "tasks": [_task(books.labels, lesson) for lesson in books.lessons],
        "classes": [asdict(memory) for memory in memories],
        "waiting": header.pending,
        "declared": [label for label in books.classes.tolist() if label not in books.labels.tolist()],
        "changes": [asdict(change) for change in books.changes],
        "versions": header.versions,
        "kept": [str(version) for version in kept(path)],
    }


def remembered(header: Header) -> list[Memory]:
    """Return what a model file says about each class."""
    books = header.bookkeeping
    painted = by_label(header.portraits, books)
    return memories(books.labels.tolist(), books.lessons, header.replayed or {}, painted)


def image_in(notes: dict[str, Any], n_features: int) -> tuple[int, ...] | None:
    """Return the shape of the images that a model learned from, None if there were none."""
    shape = notes.get("image")
    if not isinstance(shape, list) or not all(isinstance(n, int) and n > 0 for n in shape):
        return None
    fits = len(shape) in (2, 3) and math.prod(shape) == n_features
    return tuple(shape) if fits else None


def _task(labels: Array, lesson: Lesson) -> dict[str, Any]:
    counts = [
        {"label": labels[c].item(), "samples": count}
        for c, count in zip(lesson.classes, lesson.counts, strict=True)
        if count
    ]
    return {
        "name": lesson.name,
        "learned_at": lesson.learned_at,
        "samples": sum(lesson.counts),
        "classes": counts,
        "iterations": lesson.iterations,
        "seconds": lesson.seconds,
        "digest": lesson.digest,
        "tested": [
            {"label": labels[c].item(), "samples": n, "right": right} for c, (n, right) in lesson.tested.items()
        ],
        "gathered": lesson.batches,
    }

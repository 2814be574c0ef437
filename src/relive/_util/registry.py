"""Registries of things by name: facts that can be read without importing the thing itself.

A registry is filled from three sources: the package's own catalogue, installed packages (entry points in the registry's
group), and the command line, where ``my_file.py:Thing`` or ``package.module:Thing`` refers to something unregistered.
"""

from __future__ import annotations

import ast
import functools
import hashlib
import importlib
import sys
import types
import warnings
from collections.abc import Callable, Iterable, Iterator, Mapping
from contextlib import contextmanager
from contextvars import ContextVar
from dataclasses import dataclass
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from typing import Any, Generic, Protocol, TypeVar

from relive._util import schema
from relive._util.errors import InputError, unknown


class Named(Protocol):
    """Facts with a name and the location of the object they describe."""

    @property
    def name(self) -> str:
        """Its name on the command line."""

    @property
    def home(self) -> str:
        """``package.module:object``."""


Facts = TypeVar("Facts", bound=Named)


@dataclass(frozen=True)
class Entry:
    """The minimum known about a named thing: an encoder, an optimizer.

    Attributes
    ----------
    name, title
        On the command line, and for people.
    home
        Where its factory is: ``package.module:function``.
    """

    name: str
    home: str
    title: str


class Registry(Mapping[str, Facts], Generic[Facts]):
    """Facts by name.

    Parameters
    ----------
    kind
        What it is a registry of, for messages: "method".
    group
        The entry points that installed packages register facts under: "relive.methods". Each is an object of facts.
    facts
        The initial facts.
    factory
        What creates such a thing, for :meth:`find`: "a function (shape, hidden, rng) that …".
    """

    def __init__(self, kind: str, group: str, facts: list[Facts], factory: str = "") -> None:
        self.kind = kind
        self.group = group
        self.factory = factory
        self._own = {fact.name: fact for fact in facts}

    def register(self, facts: Facts) -> None:
        """Add facts, or replace those of the same name."""
        self._own[facts.name] = facts

    @functools.cached_property
    def _installed(self) -> dict[str, Facts]:
        """Facts from installed packages; one that cannot be loaded, or whose name is taken, is left out."""
        found: dict[str, Facts] = {}
        for point in entry_points(group=self.group):
            try:
                facts = self._checked(point.load())
                if facts.name in self._own or facts.name in found:
                    raise InputError(f"there is another {self.kind} named {facts.name!r}")
                found[facts.name] = facts
            except (Exception, SystemExit) as error:
                warnings.warn(f"{_described(point)} is left out: {type(error).__name__}: {error}", stacklevel=1)
        return found

    def _checked(self, facts: Any) -> Facts:
        """Return what an entry point refers to, if it is facts as in this registry."""
        kind = type(next(iter(self._own.values())))
        if not isinstance(facts, kind):
            raise InputError(f"it must refer to a {kind.__module__}.{kind.__name__}, but refers to {facts!r}")
        for field in ("name", "home", "title"):
            schema.text(getattr(facts, field), field)
        return facts

    def is_installed(self, name: str) -> bool:
        """Return whether a name comes from an installed package: not from this one, nor from ``register``."""
        return name in self._installed and name not in self._own  # in this order: what is left out is always said

    def digest(self, name: str) -> str:
        """Return a short digest of the file with something from an installed package, "" for anything else."""
        return digest_of_address(self._installed[name].home) if self.is_installed(name) else ""

    def __getitem__(self, name: str) -> Facts:
        facts = self._own.get(name) or self._installed.get(name)
        if facts is None and name.endswith(".py"):
            raise InputError(
                f"{name} is a file: name the {self.kind} in it, as {name}:{'make' if self.factory else 'Mine'}"
            )
        if facts is None:
            raise unknown(self.kind, name, self)
        return facts

    def check(self, name: str) -> None:
        """Refuse what :meth:`find` would refuse; a name is looked up without importing anything."""
        if is_address(name):
            self.find(name)
        else:
            self[name]

    def find(self, thing: str | Callable[..., Any]) -> Any:
        """Return a factory: by name, by address (``my_file.py:make``), or the callable itself."""
        found: Any = thing
        if isinstance(thing, str):
            found = load_object(thing if is_address(thing) else self[thing].home)
        if not callable(found):
            raise InputError(
                f"{self.kind} = {thing!r}: it must be one of {', '.join(self)}, an address such as "
                f"my_file.py:make, or {self.factory}"
            )
        return found

    def __contains__(self, name: object) -> bool:
        return name in self._own or name in self._installed

    def __iter__(self) -> Iterator[str]:
        return iter(self._installed | self._own)

    def __len__(self) -> int:
        return len(self._installed | self._own)


def _described(point: EntryPoint) -> str:
    package = f" of {point.dist.name} {point.dist.version}" if point.dist else ""
    return f"the entry point {point.name!r}{package} ({point.group}, {point.value})"


def is_address(name: str) -> bool:
    """Return whether a name is an address: ``my_file.py:Thing`` or ``package.module:Thing``.

    >>> is_address("my_file.py:Mine"), is_address("online-ewc")
    (True, False)
    """
    return ":" in name


def short_name(name: str) -> str:
    """Return a short name for something given by its location; any other name is unchanged.

    >>> short_name("here/my_file.py:load"), short_name("/data/my.npz"), short_name("digits")
    ('my_file.load', 'my.npz', 'digits')
    """
    place, colon, attribute = name.rpartition(":")
    if colon:
        return f"{Path(place).name.removesuffix('.py')}.{attribute}"
    return Path(name).name or name


def load_object(address: str) -> Any:
    """Return the object at an address.

    >>> load_object("math:pi") > 3
    True
    """
    place, _, attribute = address.rpartition(":")
    module = _module_of_file(Path(place)) if place.endswith(".py") else _module(place)
    try:
        return getattr(module, attribute)
    except AttributeError:
        there = [name for name, value in vars(module).items() if not name.startswith("_") and _is_of(value, module)]
        raise InputError(f"{place} has no {attribute!r}; it has: {', '.join(there) or 'nothing'}") from None


def _is_of(value: object, module: types.ModuleType) -> bool:
    """Return whether a module defines a class, function or record (such as a protocol) rather than imports it."""
    home = str(getattr(value, "__module__", ""))
    return home == module.__name__ or (not callable(value) and home.startswith("relive."))


def _module(name: str) -> Any:
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as error:
        raise InputError(
            f"there is no module {name!r}: {error}. To name a file, include its ending: {name}.py"
        ) from error


def _module_of_file(path: Path) -> Any:
    """Import a file; the same contents are imported only once, so that a class stays the same class."""
    content = _content(path)
    name = f"relive_user_{path.stem}_{_digest(content)}"
    if name not in sys.modules:
        module = types.ModuleType(name)
        module.__file__ = str(path)
        sys.modules[name] = module
        try:
            exec(compile(content, str(path), "exec", dont_inherit=True), module.__dict__)
        except ModuleNotFoundError as error:
            del sys.modules[name]
            missing = str(error.name)
            if not _beside(path, missing):
                raise InputError(f"{path} imports {missing!r}, which is not installed") from error
            raise InputError(
                f"{path} imports {missing!r}, another file in its folder, which is not supported: only "
                f"{path.name} itself is checked for changes and sent with a run. Put both into one file, or "
                "install them as a package"
            ) from error
        except BaseException:
            del sys.modules[name]
            raise
    return sys.modules[name]


def _beside(path: Path, module: str) -> bool:
    """Return whether a module is a file or folder next to a file."""
    top = path.parent / module.partition(".")[0]
    return top.with_suffix(".py").is_file() or (top / "__init__.py").is_file()


def warn_of_neighbours(address: str) -> None:
    """Warn about a file that imports its neighbours: a result's digest covers only the file itself."""
    place = Path(address.rpartition(":")[0])
    if place.suffix != ".py":
        return
    imported: set[str] = set()
    for node in ast.walk(ast.parse(_content(place))):
        if isinstance(node, ast.Import):
            imported |= {alias.name for alias in node.names}
        elif isinstance(node, ast.ImportFrom) and node.module:
            imported.add(node.module)
    for module in sorted(imported):
        loaded = getattr(sys.modules.get(module.partition(".")[0]), "__file__", None)
        if _beside(place, module) and loaded and Path(loaded).resolve().is_relative_to(place.resolve().parent):
            warnings.warn(
                f"{place} imports {module!r}, another file in its folder, and results do not record changes to "
                "that one: put both into one file, or repeat the runs",
                stacklevel=3,
            )


_SENT: ContextVar[Mapping[str, bytes]] = ContextVar(
    "files that were sent to this process", default=types.MappingProxyType({})
)


@contextmanager
def with_files(contents: Mapping[str, bytes]) -> Iterator[None]:
    """Make addresses of these files, by path, refer to these contents: on a worker the files do not exist."""
    before = _SENT.set(contents)
    try:
        yield
    finally:
        _SENT.reset(before)


def files_at(addresses: Iterable[str]) -> dict[str, bytes]:
    """Return the contents of the files that addresses name, by path; modules of installed packages are skipped."""
    places = {address.rpartition(":")[0] for address in addresses}
    return {str(Path(place)): _content(Path(place)) for place in places if place.endswith(".py")}


def _content(path: Path) -> bytes:
    if str(path) in _SENT.get():
        return _SENT.get()[str(path)]
    if not path.is_file():
        raise InputError(f"there is no file {path}")
    return path.read_bytes()


def digest_of_address(address: str) -> str:
    """Return a short digest of the file that an address names."""
    place = address.rpartition(":")[0]
    return _digest(_content(Path(place if place.endswith(".py") else _module(place).__file__)))


def _digest(content: bytes) -> str:
    return hashlib.sha256(content).hexdigest()[:12]

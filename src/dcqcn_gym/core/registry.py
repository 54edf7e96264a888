"""Named plug-ins: built-ins, add-ons, entry points of other packages, or ``path.py:Class``."""

from __future__ import annotations

import difflib
import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Callable, Mapping
from importlib.machinery import PathFinder
from importlib.metadata import EntryPoint, entry_points
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from dcqcn_gym.core.add_ons import ADD_ONS
from dcqcn_gym.core.errors import (
    ConfigError,
    DcqcnGymError,
    UnknownNameError,
    in_one_line,
    line_in,
    quote,
)
from dcqcn_gym.core.files import read_file

T = TypeVar("T")


class Registry(Generic[T]):
    """One kind of plug-in: names to classes, loaded only when asked for.

    ``builtin`` maps a name to ``"module:Class"``, and so does the table of add-ons
    (:mod:`dcqcn_gym.core.add_ons`); packages add names by the entry-point group ``group``; a name
    of the form ``path.py:Class`` loads that file. A built-in name wins over an entry point of the
    same name, so that results of built-ins cannot be changed from outside.

    A class must extend ``base``; where that is a Protocol, it must have every member of it.
    ``check`` is called with what is loaded and ``kind 'name'`` and raises for anything else that is
    wrong with it.
    """

    def __init__(
        self,
        kind: str,
        group: str,
        base: type[T],
        builtin: Mapping[str, str],
        check: Callable[[type[T], str], None] | None = None,
    ) -> None:
        self.kind = kind
        self.group = group
        self.base = base
        self.builtin = {**builtin, **ADD_ONS.get(group, {})}
        self._check = check

    def names(self) -> list[str]:
        """Return every name: built-ins in table order, then installed ones, sorted."""
        installed = {point.name for point in entry_points(group=self.group)}
        return [*self.builtin, *sorted(installed - set(self.builtin))]

    def load(self, name: str) -> type[T]:
        """Return the class for a name or ``path.py:Class``.

        Raises ConfigError, in one sentence, if there is none, if two packages register the name, or
        if what is there is not such a plug-in.
        """
        if is_file(name):
            path, _, attribute = name.rpartition(":")
            return self._checked(_load_file(self.kind, Path(path)), attribute, name)
        module, attribute = self._import(name)
        return self._checked(module, attribute, name)

    def load_object(self, name: str) -> object:
        """Return what a registered name stands for, whatever it is.

        Raises ConfigError as :meth:`load`, but for an object that is not such a plug-in.
        """
        module, attribute = self._import(name)
        found = getattr(module, attribute, None)
        if found is None:
            raise ConfigError(f"{self.kind} {name!r}: {module.__name__} has no {attribute!r}")
        return found

    def _import(self, name: str) -> tuple[ModuleType, str]:
        """Return the module of a registered name, and what to take from it."""
        module, attribute = self._target(name)
        try:
            return importlib.import_module(module), attribute
        except (DcqcnGymError, KeyboardInterrupt):
            raise
        except BaseException as error:  # plug-ins end in every way there is
            raise ConfigError(
                f"{self.kind} {name!r}: {module} cannot be imported: {in_one_line(error)}"
            ) from error

    def check_name(self, name: str) -> None:
        """Raise what :meth:`load` would say of the name alone; imports nothing."""
        if not is_file(name):
            self._target(name)
        elif not (path := Path(name.rpartition(":")[0])).exists():
            raise ConfigError(_no_file(self.kind, path))

    def source(self, name: str) -> tuple[Path, str]:
        """Return the file and the class that a name stands for; imports nothing.

        Raises what :meth:`check_name` does, and ConfigError for a module that is not found.
        """
        self.check_name(name)
        if is_file(name):
            path, _, attribute = name.rpartition(":")
            return Path(path), attribute
        module, attribute = self._target(name)
        return _file_of(module, f"{self.kind} {name!r}"), attribute

    def _target(self, name: str) -> tuple[str, str]:
        """Return module and class of a registered name."""
        if name.endswith(".py"):
            raise ConfigError(f"{self.kind} {name!r} is a file; name its class: {name}:Class")
        if name in self.builtin:
            module, _, attribute = self.builtin[name].partition(":")
            return module, attribute
        points = [point for point in entry_points(group=self.group) if point.name == name]
        values = sorted({point.value for point in points})
        if not values and ":" in name:
            raise ConfigError(f"{self.kind} {name!r}: expected a name, or FILE.py:Class")
        if not values:
            raise UnknownNameError(self.kind, name, self.names())
        if len(values) > 1:
            owners = " and ".join(sorted(f"{_owner(p)} ({p.value})" for p in points))
            raise ConfigError(
                f"{self.kind} {name!r} is registered twice, by {owners}; remove one of the packages"
            )
        module, _, rest = values[0].partition(":")
        attribute = rest.split("[")[0].strip()
        if not module.strip() or not attribute:
            raise ConfigError(
                f"{self.kind} {name!r}: the entry point {values[0]!r} of {_owner(points[0])} names "
                "no class; expected module:Class"
            )
        return module.strip(), attribute

    def _checked(self, module: ModuleType, attribute: str, name: str) -> type[T]:
        found = getattr(module, attribute, None)
        if found is None:
            fitting = [
                key
                for key, value in vars(module).items()
                if value is not self.base and self._misfit(value) is None
            ]
            unknown = UnknownNameError("class", attribute, fitting)
            raise ConfigError(f"{self.kind} {name!r}: {unknown}")
        misfit = self._misfit(found)
        if misfit is not None:
            raise ConfigError(f"{self.kind} {name!r}: {attribute} {misfit}")
        if self._check is not None:
            self._check(found, f"{self.kind} {name!r}")
        return found  # type: ignore[no-any-return]

    def _misfit(self, found: object) -> str | None:
        """Return why this is not such a plug-in, or None."""
        base = f"{self.base.__module__}.{self.base.__qualname__}"
        if not isinstance(found, type):
            return f"is of type {type(found).__name__}; expected a class as {base}"
        protocol = getattr(self.base, "_is_protocol", False)
        if not protocol and not issubclass(found, self.base):
            return f"is not a subclass of {base}"
        if protocol:
            members = [member for member in vars(self.base) if not member.startswith("_")]
            missing = [
                name
                for name in members
                if not hasattr(found, name) or getattr(found, name) is getattr(self.base, name)
            ]
        else:
            missing = sorted(getattr(found, "__abstractmethods__", ()))
        return _lacks(found, missing, base) if missing else None


def is_file(name: str) -> bool:
    """True for a name of the form ``path.py:Class``."""
    return ".py:" in name


def _lacks(found: type, missing: list[str], base: str) -> str:
    """Return the words for a class without some members, with the ones it may have meant."""
    own = [key for key in vars(found) if not key.startswith("_") and key not in missing]
    meant = [
        f"its {near[0]!r} may be meant as {member!r}"
        for member in missing
        if (near := difflib.get_close_matches(member, own, n=1))
    ]
    hint = f" ({', '.join(meant)})" if meant else ""
    return f"is abstract: it lacks {', '.join(missing)} of {base}{hint}"


def _owner(point: EntryPoint) -> str:
    return point.dist.name if point.dist is not None else "a package"


def _file_of(module: str, source: str) -> Path:
    """Return a module's file; unlike ``importlib.util.find_spec`` without importing its package."""
    first, *rest = module.split(".")
    spec, name = importlib.util.find_spec(first), first
    for part in rest:
        name = f"{name}.{part}"
        inside = spec.submodule_search_locations if spec is not None else None
        spec = None if inside is None else PathFinder.find_spec(name, inside)
    if spec is None or spec.origin is None:
        raise ConfigError(f"{source}: {module} cannot be found")
    return Path(spec.origin)


def _load_file(kind: str, path: Path) -> ModuleType:
    if not path.exists():
        raise ConfigError(_no_file(kind, path))
    source = read_file(path)
    # the name holds the text's digest: two versions of a file in one process stay two modules
    module_name = f"dcqcn_gym_plugin_{path.stem}_{hashlib.sha256(source).hexdigest()[:12]}"
    if module_name in sys.modules:
        return sys.modules[module_name]
    spec = importlib.util.spec_from_file_location(module_name, path)
    assert spec is not None  # a .py path always has a loader
    assert spec.loader is not None
    module = importlib.util.module_from_spec(spec)
    sys.modules[module_name] = module
    try:
        spec.loader.exec_module(module)
    except BaseException as error:
        del sys.modules[module_name]
        if isinstance(error, DcqcnGymError | KeyboardInterrupt):
            raise
        line = None if isinstance(error, SyntaxError) else line_in(error, str(path))
        place = "" if line is None else f" (line {line})"
        raise ConfigError(
            f"{kind} file {str(path)!r} cannot be imported: {in_one_line(error)}{place}"
        ) from error
    return module


def _no_file(kind: str, path: Path) -> str:
    return f"{kind} file {quote(str(path))} cannot be read: No such file"

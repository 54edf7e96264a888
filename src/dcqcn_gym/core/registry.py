"""Named plug-ins: a table of built-ins, entry points of other packages, or ``path.py:Class``."""

from __future__ import annotations

import hashlib
import importlib
import importlib.util
import sys
from collections.abc import Mapping
from importlib.metadata import entry_points
from pathlib import Path
from types import ModuleType
from typing import Generic, TypeVar

from dcqcn_gym.core.errors import ConfigError, DcqcnGymError, UnknownNameError, in_one_line, quote
from dcqcn_gym.core.files import read_file

__all__ = ["Registry"]

T = TypeVar("T")


class Registry(Generic[T]):
    """One kind of plug-in: names to classes, loaded only when asked for.

    ``builtin`` maps a name to ``"module:Class"``; packages add names by the entry-point group
    ``group``; a name of the form ``path.py:Class`` loads that file. A built-in name wins over an
    entry point of the same name, so that results of built-ins cannot be changed from outside.
    """

    def __init__(self, kind: str, group: str, base: type[T], builtin: Mapping[str, str]) -> None:
        self.kind = kind
        self.group = group
        self.base = base
        self.builtin = dict(builtin)

    def names(self) -> list[str]:
        """Return every name: built-ins in table order, then installed ones, sorted."""
        return [*self.builtin, *sorted(set(self._installed()) - set(self.builtin))]

    def load(self, name: str) -> type[T]:
        """Return the class for a name or ``path.py:Class``; raise ConfigError if there is none."""
        if ".py:" in name:
            path, _, attribute = name.rpartition(":")
            return self._checked(_load_file(self.kind, Path(path)), attribute, name)
        if name.endswith(".py"):
            raise ConfigError(f"{self.kind} {name!r} is a file; name its class: {name}:Class")
        target = self.builtin.get(name) or self._installed().get(name)
        if target is None:
            raise UnknownNameError(self.kind, name, self.names())
        module_name, _, attribute = target.partition(":")
        try:
            module = importlib.import_module(module_name)
        except (DcqcnGymError, KeyboardInterrupt):
            raise
        except BaseException as error:  # plug-ins end in every way there is
            raise ConfigError(
                f"{self.kind} {name!r}: {module_name} cannot be imported: {in_one_line(error)}"
            ) from error
        return self._checked(module, attribute, name)

    def _installed(self) -> dict[str, str]:
        return {point.name: point.value for point in entry_points(group=self.group)}

    def _checked(self, module: ModuleType, attribute: str, name: str) -> type[T]:
        found = getattr(module, attribute, None)
        if found is None:
            known = [
                key
                for key, value in vars(module).items()
                if isinstance(value, type)
                and issubclass(value, self.base)
                and value is not self.base
            ]
            unknown = UnknownNameError("class", attribute, known)
            raise ConfigError(f"{self.kind} {name!r}: {unknown}")
        if not (isinstance(found, type) and issubclass(found, self.base)):
            raise ConfigError(
                f"{self.kind} {name!r}: {attribute} is not a subclass of "
                f"{self.base.__module__}.{self.base.__qualname__}"
            )
        return found


def _load_file(kind: str, path: Path) -> ModuleType:
    if not path.exists():
        raise ConfigError(f"{kind} file {quote(str(path))} cannot be read: No such file")
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
        raise ConfigError(
            f"{kind} file {str(path)!r} cannot be imported: {in_one_line(error)}"
        ) from error
    return module

"""Kernels: functions over arrays that Numba compiles when they are first called, and keeps on disk.

They are kept for the user (`~/.cache/ropewalk/kernels` on Linux, or NUMBA_CACHE_DIR), by what they are made of and not
by where the source lies: a second checkout or installation of the same code compiles nothing.

A wheel may bring them compiled ahead, for every CPU of the last ten years: `ropewalk warm --into FOLDER` writes them,
`make wheel` packs them. They are taken where Python, Numba and the instructions of the CPU agree with what they were
made for and the source is the same, to the byte; whatever is missing is compiled as usual.

Numba looks at the file of a kernel alone. Here what a kernel is made of is also every file from which it takes other
kernels or types, and the value of every constant that it takes from elsewhere.
"""

from __future__ import annotations

import hashlib
import json
import os
import platform
import sys
from collections.abc import Callable, Iterator
from functools import cache, cached_property
from pathlib import Path
from types import CodeType, ModuleType
from typing import Any, NamedTuple

import numba
import numpy as np
from numba.core.caching import (
    CompileResultCacheImpl,
    FunctionCache,
    IndexDataCacheFile,
    InTreeCacheLocator,
    UserProvidedCacheLocator,
)
from numba.core.dispatcher import Dispatcher
from numba.misc.appdirs import AppDirs

INTO = "ROPEWALK_COMPILE_INTO"
"""While kernels are compiled for a wheel: the folder that they are written to."""
BROUGHT = Path(__file__).with_name("_compiled")
"""Where a wheel has them."""
TARGET = "target.json"
VERSIONS = 8
"""Of every kernel so many are kept: checkouts that differ need some each."""
CPUS = {"x86_64": ("x86-64-v3", "+avx,+avx2,+bmi,+bmi2,+cx16,+f16c,+fma,+lzcnt,+movbe,+popcnt,+sse4.2,+xsave")}
"""What kernels of a wheel need of a CPU: its name for LLVM and its features."""


class KernelTarget(NamedTuple):
    """What compiled kernels were made for."""

    python: str
    numba: str
    llvm: tuple[str, str, str]
    """triple, CPU, features: as Numba's own index has them"""

    @classmethod
    def here(cls) -> KernelTarget:
        """The one of this process."""
        from numba.core.registry import cpu_target

        return cls(_python(), numba.__version__, cpu_target.target_context.codegen().magic_tuple())

    def write(self, folder: Path) -> None:
        (folder / TARGET).write_text(json.dumps(self._asdict(), indent=1) + "\n", "utf-8")

    @classmethod
    def read(cls, folder: Path) -> KernelTarget | None:
        """The one of a folder of kernels; None where there are none."""
        try:
            found = json.loads((folder / TARGET).read_text("utf-8"))
        except FileNotFoundError:
            return None
        return cls(found["python"], found["numba"], tuple(found["llvm"]))

    def why_not_here(self) -> str | None:
        """Why its kernels cannot be taken in this process; None where they can."""
        from llvmlite import binding

        if (self.python, self.numba) != (_python(), numba.__version__):
            return f"they are for Python {self.python} with Numba {self.numba}"
        triple, cpu, features = self.llvm
        if triple != binding.get_process_triple():
            return f"they are for {triple}"
        has = binding.get_host_cpu_features()
        needed = [name[1:] for name in features.split(",") if name.startswith("+")]  # "-avx512f": does without
        missing = [name for name in needed if not has.get(name, False)]
        return f"they are for CPUs like {cpu}, and this one lacks {', '.join(missing)}" if missing else None


def settings_for_wheels(folder: Path) -> dict[str, str]:
    """The environment of a process that compiles kernels for a wheel into a folder."""
    cpu, features = CPUS.get(platform.machine(), ("generic", ""))
    return {INTO: str(folder), "NUMBA_CPU_NAME": cpu, "NUMBA_CPU_FEATURES": features}


def compiled(**options: Any) -> Callable[[Callable[..., Any]], Any]:
    """How a function becomes a kernel: kept on disk, without the interpreter lock."""

    def made(function: Callable[..., Any]) -> Any:
        dispatcher = numba.njit(nogil=True, **options)(function)
        dispatcher._cache = _cache_of(function)
        return dispatcher

    return made


def _cache_of(function: Callable[..., Any]) -> FunctionCache:
    if os.environ.get(INTO):
        return _Writing(function)
    brought = _brought()
    return _Kept(function) if brought is None else _Brought(function, brought)


@cache
def _brought() -> KernelTarget | None:
    """What the kernels of this wheel were made for, where they can be taken."""
    target = KernelTarget.read(BROUGHT)
    return None if target is None or target.why_not_here() else target


def _python() -> str:
    return f"{sys.version_info.major}.{sys.version_info.minor}"


class _Index(IndexDataCacheFile):  # type: ignore[misc]
    """Which compiled forms of a kernel are on disk."""

    def _load_index(self) -> Any:
        try:
            return super()._load_index()
        except (AttributeError, ImportError):  # of types that the source had when it was written
            return {}


class _ForUser(UserProvidedCacheLocator):  # type: ignore[misc]
    """A kernel's place among those of the user: by the name of its module, wherever its source lies."""

    def __init__(self, function: Callable[..., Any], source: str) -> None:
        self._py_file = source
        self._lineno = function.__code__.co_firstlineno
        self._cache_path = str(self.root() / function.__module__)

    @staticmethod
    def root() -> Path:
        """The folder of all modules."""
        return kept()

    @classmethod
    def from_function(cls, function: Callable[..., Any], source: str) -> _ForUser | None:
        made = cls(function, source)
        try:
            made.ensure_cache_path()
        except OSError:  # a home that cannot be written to
            return None
        return made


class _KeptResults(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_ForUser, InTreeCacheLocator]  # noqa: RUF012


def kept() -> Path:
    """The folder in which kernels are kept, where it can be written to."""
    if numba.config.CACHE_DIR:
        return Path(numba.config.CACHE_DIR)
    return Path(AppDirs(appname="ropewalk", appauthor=False).user_cache_dir) / "kernels"


def code_digest() -> str:
    """All sources of the package, and what kernels are compiled for here, in a few letters."""
    package = Path(__file__).parent
    digest = hashlib.sha256(repr(KernelTarget.here()).encode())
    for path in sorted(package.rglob("*.py")):
        digest.update(str(path.relative_to(package)).encode() + path.read_bytes())
    return digest.hexdigest()


class _Kept(FunctionCache):  # type: ignore[misc]
    """A kernel as it was compiled here, unless it or something that it is made of has changed since."""

    _impl_class = _KeptResults

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        # Not before a kernel is called: what it calls may be defined below it.
        self._cache_file = self._index(self._cache_path)
        return super()._load_overload(sig, target_context)

    def _save_overload(self, sig: Any, data: Any) -> None:
        super()._save_overload(sig, data)
        forget_old(Path(self._cache_path), self._impl.filename_base)

    @cached_property
    def _parts(self) -> tuple[str, ...]:
        return _made_of(self._py_func)

    def _index(self, folder: str) -> _Index:
        """Versions lie beside each other: checkouts that differ leave those of each other alone."""
        version = hashlib.sha256("\n".join(self._parts).encode()).hexdigest()[:16]
        return _Index(folder, f"{self._impl.filename_base}-{version}", self._parts)


def forget_old(folder: Path, kernel: str) -> None:
    """Of a kernel the latest versions stay."""
    found = sorted((path.stat().st_mtime, path) for path in folder.glob(f"{kernel}-*.nbi"))
    for _, index in found[:-VERSIONS]:
        for path in folder.glob(f"{index.stem}.*"):
            path.unlink(missing_ok=True)


def _made_of(function: Callable[..., Any]) -> tuple[str, ...]:
    """What a kernel is made of: files from which it takes other kernels, however deep, and types; and constants."""
    package = function.__module__.partition(".")[0]
    files: set[str] = set()
    constants: set[str] = set()
    seen: set[Any] = set()
    left: list[Any] = [function]
    while left:
        if (one := left.pop()) in seen:
            continue
        seen.add(one)
        files.add(one.__code__.co_filename)
        for name, value in _globals_of(one):
            if isinstance(value, Dispatcher):
                left.append(value.py_func)
            elif isinstance(value, type) and value.__module__.partition(".")[0] == package:
                files.add(str(sys.modules[value.__module__].__file__))
            elif isinstance(value, np.ndarray):
                constants.add(f"{name} {value.dtype} {value.shape} {hashlib.sha256(value.tobytes()).hexdigest()}")
            elif _is_plain(value):
                constants.add(f"{name} {value!r}")
    return tuple(sorted({*map(_stamp, files), *constants}))


def _is_plain(value: Any) -> bool:
    """Is it a constant that is the same in every process?"""
    if isinstance(value, tuple):
        return all(map(_is_plain, value))
    return isinstance(value, bool | int | float | str | np.generic)


def _globals_of(function: Any) -> Iterator[tuple[str, Any]]:
    """What the names in a function stand for, in its module and in modules that it names."""
    names = set(_names(function.__code__))
    for name in names:
        value = function.__globals__.get(name)
        yield name, value
        if isinstance(value, ModuleType):
            yield from ((f"{name}.{inner}", vars(value).get(inner)) for inner in names)


def _names(code: CodeType) -> Iterator[str]:
    yield from code.co_names
    for inner in code.co_consts:
        if isinstance(inner, CodeType):
            yield from _names(inner)


@cache
def _stamp(path: str) -> str:
    return hashlib.sha256(Path(path).read_bytes()).hexdigest()


class _Brought(_Kept):
    """A kernel as the wheel brought it, else as it was compiled here."""

    def __init__(self, function: Callable[..., Any], target: KernelTarget) -> None:
        super().__init__(function)
        self._llvm = target.llvm

    def _load_overload(self, sig: Any, target_context: Any) -> Any:
        key = self._index_key(sig, target_context.codegen())
        data = self._index(str(BROUGHT / self._py_func.__module__)).load((key[0], self._llvm, *key[2:]))
        if data is None:
            return super()._load_overload(sig, target_context)
        return self._impl.rebuild(target_context, data)


class _InFolder(_ForUser):
    """A kernel's place in a folder for a wheel: as for the user."""

    @staticmethod
    def root() -> Path:
        return Path(os.environ[INTO])


class _WrittenResults(CompileResultCacheImpl):  # type: ignore[misc]
    _locator_classes = [_InFolder]  # noqa: RUF012


class _Writing(_Kept):
    """A kernel on its way into a wheel."""

    _impl_class = _WrittenResults


kernel = compiled()
kernel_ieee = compiled(error_model="numpy")
"""The same, dividing as IEEE 754 says: by zero too."""


if __name__ == "__main__":
    KernelTarget.here().write(Path(sys.argv[1]))

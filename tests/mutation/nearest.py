"""Which tests are near a module: those that import it, then those that import what imports it, and so on."""

from __future__ import annotations

import ast
from collections import deque
from collections.abc import Iterator
from functools import cached_property
from pathlib import Path


class Imports:
    """Who imports whom in a tree of sources and tests, through names that packages pass on."""

    def __init__(self, root: Path) -> None:
        self.root = root
        self.files = {self._name(path): path for path in sorted((root / "src").rglob("*.py"))}
        """Modules of the package by their names."""
        self.tests = sorted(path for path in (root / "tests").rglob("test_*.py") if "extras" not in path.parts)

    def tests_near(self, module: Path) -> list[tuple[int, Path]]:
        """Test files by how many imports lie between them and the module; the module's own examples first."""
        start = self._name(module)
        away = {start: 1}
        queue = deque([start])
        while queue:
            here = queue.popleft()
            for name in self._importers.get(here, ()):
                if name not in away:
                    away[name] = away[here] + 1
                    queue.append(name)
        own = [(0, module)] if ">>> " in module.read_text("utf-8") else []
        reached = [
            (min((away[name] for name in names if name in away), default=0), path) for path, names in self._of_tests
        ]
        package = module.parent.relative_to(self.root / "src" / "ropewalk").parts[0]
        return own + sorted(
            (pair for pair in reached if pair[0]),
            key=lambda pair: (
                pair[0],
                f"unit/{package}/" not in pair[1].as_posix(),
                module.stem not in pair[1].stem,
                pair[1],
            ),
        )

    @cached_property
    def _importers(self) -> dict[str, list[str]]:
        found: dict[str, list[str]] = {}
        for name, path in self.files.items():
            for imported in self._imported(path):
                found.setdefault(imported, []).append(name)
        return found

    @cached_property
    def _of_tests(self) -> list[tuple[Path, set[str]]]:
        return [(path, set(self._imported(path))) for path in self.tests]

    def _imported(self, path: Path) -> Iterator[str]:
        for node in ast.walk(ast.parse(path.read_text("utf-8"))):
            if isinstance(node, ast.Import):
                yield from (alias.name for alias in node.names if alias.name in self.files)
            elif isinstance(node, ast.ImportFrom) and (node.module or "") in self.files:
                yield from (self._home(node.module or "", alias.name) for alias in node.names)

    def _home(self, module: str, name: str) -> str:
        """The module that a name comes from: packages pass on names of their modules."""
        if f"{module}.{name}" in self.files:
            return f"{module}.{name}"
        passed_on = self._passed_on.get(module, {}).get(name)
        return module if passed_on is None or passed_on == module else self._home(passed_on, name)

    @cached_property
    def _passed_on(self) -> dict[str, dict[str, str]]:
        """By package: where the names come from that its `__init__` imports."""
        return {
            name: {
                alias.asname or alias.name: node.module
                for node in ast.walk(ast.parse(path.read_text("utf-8")))
                if isinstance(node, ast.ImportFrom) and node.module in self.files
                for alias in node.names
            }
            for name, path in self.files.items()
            if path.name == "__init__.py"
        }  # fmt: skip

    def _name(self, path: Path) -> str:
        parts = path.relative_to(self.root / "src").with_suffix("").parts
        return ".".join(parts[:-1] if parts[-1] == "__init__" else parts)

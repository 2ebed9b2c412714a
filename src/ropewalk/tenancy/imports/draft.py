"""A leaf map while its file is being read: every statement with its line, every contradiction a finding."""

from __future__ import annotations

from collections.abc import Sequence
from pathlib import Path

from ropewalk.errors import FabricError, Findings
from ropewalk.tenancy.imports.hostlist import expand
from ropewalk.tenancy.imports.leaf_map import LeafMap


class Draft:
    """Leafs with their servers and switches with what is below them, checked when everything is there."""

    def __init__(self, path: Path) -> None:
        self.path = path
        self.findings = Findings(FabricError, str(path))
        self._servers: dict[str, list[str]] = {}
        self._children: dict[str, list[str]] = {}
        self._line: dict[str, int] = {}
        self._of_server: dict[str, tuple[str, int]] = {}

    def add(self, line: int, message: str) -> None:
        self.findings.add(f"line {line}: {message}")

    def names(self, text: str, line: int) -> list[str]:
        """A host list; one that cannot be read is a finding and stands for nothing."""
        try:
            return expand(text)
        except FabricError as problem:
            self.add(line, str(problem))
            return []

    def leaf(self, name: str, servers: Sequence[str], line: int) -> None:
        """A leaf with its servers, said once."""
        if not self._is_new(name, line):
            return
        self._servers[name] = []
        if not servers:
            self.add(line, f"leaf {name!r} has no host: list its hosts, or remove it")
        for server in servers:
            self.server(server, name, line)

    def server(self, name: str, leaf: str, line: int) -> None:
        """A server of a leaf, where files say it server by server."""
        self._line.setdefault(leaf, line)
        listed = self._servers.setdefault(leaf, [])
        if name in self._of_server:
            before, at = self._of_server[name]
            self.add(line, f"host {name!r} of leaf {leaf!r} is also on line {at}, leaf {before!r}: list it once")
            return
        self._of_server[name] = (leaf, line)
        listed.append(name)

    def switch(self, name: str, children: Sequence[str], line: int) -> None:
        """A switch with the leafs or switches below it, said once."""
        if not self._is_new(name, line):
            return
        self._children[name] = list(children)
        if not children:
            self.add(line, f"switch {name!r} has nothing below it: list its switches, or remove it")

    def below(self, child: str, parent: str, line: int) -> None:
        """A child of a switch, where files say it child by child."""
        self._line.setdefault(parent, line)
        listed = self._children.setdefault(parent, [])
        if child not in listed:
            listed.append(child)

    def finish(self) -> LeafMap:
        above: dict[str, list[str]] = {}
        for switch, children in self._children.items():
            for child in children:
                if child not in self._servers and child not in self._children:
                    self.add(
                        self._line[switch], f"switch {switch!r} is above {child!r}, which is not defined: define it"
                    )
                elif switch in above.setdefault(child, []):
                    self.add(self._line[switch], f"switch {switch!r} lists {child!r} twice: remove one of the two")
                else:
                    above[child].append(switch)
        if not self._servers and not self.findings:
            self.findings.add("there is no leaf with hosts: list at least one")
        for switch in self._in_a_circle(above):
            self.add(self._line[switch], f"switch {switch!r} is above itself: fix what is below it")
        self.findings.raise_if_any()
        leafs = {leaf: tuple(servers) for leaf, servers in self._servers.items()}
        return LeafMap(
            str(self.path),
            leafs,
            {child: tuple(parents) for child, parents in above.items()},
            {leaf: self._line[leaf] for leaf in leafs},
        )

    def _is_new(self, name: str, line: int) -> bool:
        if name in self._line:
            self.add(line, f"switch {name!r} is also defined on line {self._line[name]}: define it once")
            return False
        self._line[name] = line
        return True

    def _in_a_circle(self, above: dict[str, list[str]]) -> list[str]:
        """Switches that are their own ancestors: what is left when tops are taken away again and again."""
        left = {child: set(parents) for child, parents in above.items()}
        while True:
            tops = {child for child, parents in left.items() if not parents & left.keys()}
            if not tops:
                return [child for child in left if child in self._children]
            for top in tops:
                del left[top]

"""XML as a tree of elements that remember their line, so that every mistake can be shown where it was made.

Documents that declare entities or a document type are refused: no file that is read here needs them.
"""

from __future__ import annotations

from collections.abc import Iterator
from dataclasses import dataclass, field
from pathlib import Path
from xml.parsers import expat

from ropewalk.documents.limits import DEEPEST
from ropewalk.documents.opening import Problem, read_bytes


@dataclass
class Element:
    """`<name key="value" …>` with what stands inside it."""

    name: str
    attributes: dict[str, str]
    line: int
    inside: list[Element] = field(default_factory=list)

    def all(self, name: str) -> Iterator[Element]:
        """The elements of this name directly inside."""
        return (element for element in self.inside if element.name == name)


def read_xml(path: Path, subject: str, error: Problem) -> Element:
    """The outermost element of a file."""
    return parse_xml(read_bytes(path, subject, error), subject, error)


def parse_xml(content: bytes | str, subject: str, error: Problem, *, texts: bool = False) -> Element:
    """The outermost element of a document; text between elements is refused unless it is expected.

    >>> from ropewalk.errors import FabricError
    >>> parse_xml('<system version="1"><cpu numaid="0"/></system>', "text", FabricError).inside[0].attributes
    {'numaid': '0'}
    """
    outermost: list[Element] = []
    open_elements: list[Element] = []
    parser = expat.ParserCreate()

    def start(name: str, attributes: dict[str, str]) -> None:
        element = Element(name, attributes, parser.CurrentLineNumber)
        (open_elements[-1].inside if open_elements else outermost).append(element)
        open_elements.append(element)
        if len(open_elements) > DEEPEST:
            raise error(f"{subject}: line {element.line}: elements are nested over {DEEPEST} deep: fix the XML there")

    def end(name: str) -> None:
        open_elements.pop()

    def text(characters: str) -> None:
        if characters.strip() and not texts:
            where = f"line {parser.CurrentLineNumber}"
            raise error(f"{subject}: {where}: text {characters.strip()[:20]!r} between elements: remove it")

    def doctype(*_: object) -> None:
        where = f"line {parser.CurrentLineNumber}"
        raise error(f"{subject}: {where}: declares a document type, which is not allowed here: remove the declaration")

    parser.StartElementHandler = start
    parser.EndElementHandler = end
    parser.CharacterDataHandler = text
    parser.StartDoctypeDeclHandler = doctype
    try:
        parser.Parse(content, True)
    except expat.ExpatError as problem:
        what = expat.errors.messages[problem.code]
        where = f"line {problem.lineno}, column {problem.offset + 1}"
        raise error(f"{subject}: {where}: {what}: fix the XML there") from None
    except (ValueError, LookupError) as problem:  # an encoding that is declared and does not exist
        raise error(f"{subject}: {problem}: save it as UTF-8") from None
    return outermost[0]

"""Files of others are opened and parsed in `ropewalk.documents` alone: whoever adds a reader goes through it."""

import ast
import re
from functools import cache
from pathlib import Path

import pytest

import ropewalk

ROOT = Path(ropewalk.__file__).parent
OPENING = {"open", "fdopen"}
METHODS = {"read_text", "read_bytes", "read_pickle", "read_csv", "read_json", "read_parquet"}
PARSERS = {
    "json": {"load", "loads", "JSONDecoder"},
    "yaml": {"load", "load_all", "safe_load", "safe_load_all", "full_load", "parse", "scan", "compose", "compose_all"},
    "tomllib": {"load", "loads"},
    "csv": {"reader", "DictReader"},
    "gzip": {"open", "decompress", "GzipFile"},
    "zlib": {"decompress", "decompressobj"},
    "bz2": {"open", "decompress", "BZ2File"},
    "lzma": {"open", "decompress", "LZMAFile"},
    "zipfile": {"ZipFile"},
    "tarfile": {"open", "TarFile"},
    "pickle": {"load", "loads", "Unpickler"},
    "marshal": {"load", "loads"},
    "np": {"load", "loadtxt", "genfromtxt", "fromfile", "memmap"},
    "torch": {"load"},
    "onnx": {"load", "load_model"},
    "ElementTree": {"parse", "fromstring", "iterparse", "XMLParser", "XML"},
    "expat": {"ParserCreate"},
}
PATHS = {None, "path", "file", "source", "target"}
NUMBERS = {"isdecimal", "isdigit", "isnumeric"}

ALLOWED = {
    "lab/worker.py": "what the kernel says of this machine, and lines of the process that started it",
    "lab/process.py": "lines of a process that this one started",
    "lab/state.py": "what the kernel says of processes, and a lock",
    "lab/lifecycle.py": "what the kernel says of processes",
    "lab/machine.py": "what the kernel says of this machine",
    "lab/hash_paths.py": "what `ip` prints",
    "lab/priority.py": "what the kernel says of this machine",
    "device/profile.py": "writes an archive",
    "compiled.py": "sources and compiled kernels of the package itself",
    "cli/blanks.py": "a file of the package itself",
    "serve/rules/folder.py": "what a driver has written for a device; what is damaged is replaced",
    "serve/slurm/files.py": "a file of the package itself",
    "serve/kubernetes/files.py": "a file of the package itself",
    "serve/store/backup.py": "a copy that it has just made",
    "ui/pages.py": "a file of the package itself",
    "ui/desk.py": "what a command of this process has written",
    "ui/process.py": "what the kernel says of processes",
    "ui/routes.py": "what a command of this process has written, checked by the shelf",
}
"""Besides `documents`: what does not come from outside."""
APART = ("documents",)
"""The one place itself."""


@cache
def modules():
    """Those that have a word which might read a file or a number; reading all of them as Python takes seconds."""
    words = {*METHODS, *NUMBERS, *(f"{owner}.{name}" for owner, names in PARSERS.items() for name in names)}
    suspicious = re.compile(rf"\bopen\(|{'|'.join(map(re.escape, sorted(words)))}|\\\\d")
    paths = [path for path in ROOT.rglob("*.py") if path.relative_to(ROOT).parts[0] not in APART]
    texts = {path.relative_to(ROOT).as_posix(): path.read_text() for path in paths}
    return {name: ast.parse(text) for name, text in texts.items() if suspicious.search(text)}


def bypasses(tree):
    """Calls that open or parse a file, as (line, what)."""
    for node in ast.walk(tree):
        if not isinstance(node, ast.Call):
            continue
        called = node.func
        if isinstance(called, ast.Name) and called.id in OPENING and not _writes(node):
            yield node.lineno, called.id
        if isinstance(called, ast.Attribute):
            owner = called.value.id if isinstance(called.value, ast.Name) else None
            if called.attr in PARSERS.get(owner, ()):
                yield node.lineno, f"{owner}.{called.attr}"
            elif (called.attr in METHODS and owner is None) or (called.attr in METHODS and not node.args):
                yield node.lineno, f".{called.attr}"
            elif called.attr == "open" and owner in PATHS and not _writes(node):
                yield node.lineno, f"{owner}.open"


def _writes(call):
    """A file that is opened to be written; only a literal mode counts."""
    place = 1 if isinstance(call.func, ast.Name) else 0
    modes = [argument.value for argument in call.args[place : place + 1] if isinstance(argument, ast.Constant)]
    modes += [one.value.value for one in call.keywords if one.arg == "mode" and isinstance(one.value, ast.Constant)]
    return any(isinstance(mode, str) and set(mode) & set("wax") for mode in modes)


def test_no_module_opens_or_parses_files_on_its_own():
    found = {name: list(bypasses(tree)) for name, tree in modules().items()}
    past = {name: calls for name, calls in found.items() if calls and name not in ALLOWED}
    assert not past, "these read files past ropewalk.documents"
    assert not [name for name in ALLOWED if not found[name]], "these open nothing any more: take them out of ALLOWED"


@pytest.mark.parametrize(
    "text",
    [
        "open('a')", "open('a', 'rb')", "path.open()", "Path('a').read_text()", "path.read_bytes()",
        "json.loads(text)", "yaml.safe_load(text)", "csv.reader(lines)", "gzip.open('a')", "np.load('a')",
        "ElementTree.fromstring(text)", "tomllib.loads(text)", "pickle.loads(data)", "zipfile.ZipFile('a')",
    ],
)  # fmt: skip
def test_every_manner_of_opening_a_file_is_seen(text):
    assert list(bypasses(ast.parse(text)))


@pytest.mark.parametrize("text", ["open('a', 'w')", "path.open('wb')", "read_text(a, b, c)", "json.dumps(value)"])
def test_writing_is_not_reading(text):
    assert not list(bypasses(ast.parse(text)))


def test_no_module_takes_digits_of_other_scripts_for_numbers():
    for name, tree in modules().items():
        for node in ast.walk(tree):
            if isinstance(node, ast.Attribute):
                assert node.attr not in NUMBERS, f"{name}:{node.lineno}: {node.attr} knows digits of all scripts"
            if isinstance(node, ast.Constant) and isinstance(node.value, str):
                assert "\\d" not in node.value, f"{name}:{node.lineno}: \\d is a digit of any script: write [0-9]"


def test_commands_and_services_ask_for_files_where_names_may_be_too_long():
    asks = re.compile(r"\.(?:exists|is_dir|is_file)\(\)")
    found = {
        path.relative_to(ROOT).as_posix()
        for folder in ("cli", "serve", "tenancy")
        for path in (ROOT / folder).rglob("*.py")
        if asks.search(path.read_text())
    }
    own = {"cli/warm.py", "cli/serve_kubernetes_options.py"}
    assert found == own, (
        "use ropewalk.files.is_there, is_file and is_folder: methods of paths raise on names of 256 bytes"
    )


def test_the_controller_parses_json_of_others_by_documents_alone():
    own = {"serve/encoding.py": "what the service itself has written into its store"}
    parses = re.compile(r"\bjson\.(?:loads?|JSONDecoder|[dD]ecode\w*)\b")
    found = {
        path.relative_to(ROOT).as_posix() for path in (ROOT / "serve").rglob("*.py") if parses.search(path.read_text())
    }
    assert found == set(own)

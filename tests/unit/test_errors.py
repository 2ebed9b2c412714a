from __future__ import annotations

import inspect

import pytest

from ropewalk import errors


def test_the_tree_in_the_docstring_is_the_tree_in_the_code():
    tree = [cls for _, cls in inspect.getmembers(errors, inspect.isclass) if issubclass(cls, errors.RopewalkError)]
    assert errors.__doc__ is not None
    for cls in tree:
        assert cls.__name__ in errors.__doc__
    assert sum(line.strip().startswith(("├", "│", "└")) for line in errors.__doc__.splitlines()) == len(tree) - 1


def test_findings_are_raised_together():
    findings = errors.Findings(errors.GraphError, "graph")
    findings.add("first")
    findings.add("second")
    with pytest.raises(errors.GraphError, match=r"2 findings\n  1\. first\n  2\. second"):
        findings.raise_if_any()


def test_no_findings_raise_nothing():
    findings = errors.Findings(errors.GraphError, "graph")
    findings.raise_if_any()
    assert not findings

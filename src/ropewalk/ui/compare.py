"""Two answers beside each other: what was asked differently, and what that brought, number by number."""

from __future__ import annotations

from typing import Any

MOST_NUMBERS = 400
MORE_IS_BETTER = ("per_s", "mfu", "gain")
LESS_IS_BETTER = ("_s", "_bytes", "gap")


def compare(first: dict[str, Any], second: dict[str, Any], answers: tuple[Any, Any]) -> dict[str, Any]:
    """The difference of two questions and of the numbers of their answers; strands where both have them."""
    before, after = (numbers(_taken(answer)) for answer in answers)
    shared = _once(before, after)
    return {
        "asked": {"first": first["command_line"], "second": second["command_line"], "differs": differs(first, second)},
        "numbers": [
            {
                "name": name, "first": before[name], "second": after[name],
                "change": after[name] / before[name] - 1 if before[name] else None,
                "better": _better(name, before[name], after[name]),
            }
            for name in shared
            if before[name] != after[name]
        ],
        "strands": _strands(*answers),
        "first_said": _said(answers[0]), "second_said": _said(answers[1]),
    }  # fmt: skip


def _taken(answer: Any) -> Any:
    """Of an answer for several networks that for the one to take."""
    if not isinstance(answer, dict) or "networks" not in answer:
        return answer
    return next((one for one in answer["networks"] if one["network"] == answer.get("pick")), answer)


def _said(answer: Any) -> str | None:
    """The strategy of an answer in words, where it has one."""
    taken = _taken(answer)
    if not isinstance(taken, dict):
        return None
    best = taken.get("best")
    said = best.get("said") if isinstance(best, dict) else taken.get("strategy")
    return said if isinstance(said, str) else None


def numbers(answer: Any, prefix: str = "") -> dict[str, float]:
    """The numbers of an answer by their names, those on top first; lists are left out.

    >>> numbers({"step_time_s": 2.0, "bound": {"gap": 0.1}, "name": "a", "runs": [1, 2]})
    {'step_time_s': 2.0, 'bound.gap': 0.1}
    """
    found: dict[str, float] = {}
    if not isinstance(answer, dict):
        return found
    for name, value in answer.items():
        if isinstance(value, int | float) and not isinstance(value, bool):
            found[prefix + name] = float(value)
    for name, value in answer.items():
        if isinstance(value, dict) and len(found) < MOST_NUMBERS:
            found |= numbers(value, f"{prefix}{name}.")
    return dict(list(found.items())[:MOST_NUMBERS])


def differs(first: dict[str, Any], second: dict[str, Any]) -> list[dict[str, Any]]:
    """Options that two command lines do not share.

    >>> line = {"command": ["plan"]}
    >>> differs(line | {"arguments": ["gpt2", "--batch", "8"]}, line | {"arguments": ["gpt2", "--batch", "16"]})
    [{'option': '--batch', 'first': '8', 'second': '16'}]
    """
    before, after = _options(first), _options(second)
    return [
        {"option": name, "first": before.get(name), "second": after.get(name)}
        for name in dict.fromkeys((*before, *after))
        if before.get(name) != after.get(name)
    ]


def _options(question: dict[str, Any]) -> dict[str, str]:
    """Words of a command line as options and their values; arguments by their place."""
    found: dict[str, str] = {"command": " ".join(question["command"])}
    words, place = list(question["arguments"]), 0
    while words:
        word = words.pop(0)
        if word.startswith("--") and len(word) > 2:
            has_value = bool(words) and not words[0].startswith("--")
            found[word] = words.pop(0) if has_value else "on"
        elif word != "--":
            place += 1
            found[f"argument {place}"] = word
    return found


def _once(before: dict[str, float], after: dict[str, float]) -> list[str]:
    """Names that both have; what an object repeats of those on top is left out.

    >>> answer = {"step_time_s": 2.0, "best.step_time_s": 2.0, "plain.step_time_s": 3.0}
    >>> _once(answer, answer)
    ['step_time_s', 'plain.step_time_s']
    """
    both = [name for name in before if name in after]
    top = {(name, before[name], after[name]) for name in both if "." not in name}
    return [name for name in both if "." not in name or (name.rpartition(".")[2], before[name], after[name]) not in top]


def _better(name: str, before: float, after: float) -> bool | None:
    """Is a change for the better? None where more is neither good nor bad.

    >>> _better("tokens_per_s", 1.0, 2.0), _better("exposed_s.data", 1.0, 2.0), _better("counts.fit", 1.0, 2.0)
    (True, False, None)
    """
    parts = name.split(".")
    if parts[-1].endswith(MORE_IS_BETTER):
        return after > before
    if any(part.endswith(LESS_IS_BETTER) for part in parts) and "capacity" not in name:
        return after < before
    return None


def _strands(first: Any, second: Any) -> list[dict[str, Any]]:
    gains = [
        {one["name"]: one for one in answer.get("strands", [])} if isinstance(answer, dict) else {}
        for answer in (first, second)
    ]
    return [
        {
            "name": name, "first": gains[0][name]["gain"], "second": gains[1][name]["gain"],
            "first_said": gains[0][name].get("said"), "second_said": gains[1][name].get("said"),
        }
        for name in gains[0]
        if name in gains[1]
    ]  # fmt: skip

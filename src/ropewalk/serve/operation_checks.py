"""What no operation may say, whatever it asks for: limits on names, lists and numbers."""

from __future__ import annotations

import math

from ropewalk.errors import ClusterError, Findings

MOST_TEXT = 256
"""Characters of a name, a user, a label."""
MOST_LABELS = 32
MOST_PARTS = 4096
"""Servers or parts that one operation names."""
MOST_GPUS = 1 << 24
MOST_STEPS = 1 << 53


def check_texts(subject: str, **texts: str) -> None:
    findings = Findings(ClusterError, subject)
    find_texts(findings, **texts)
    findings.raise_if_any()


def check_parts(subject: str, parts: tuple[str, ...], note: str) -> None:
    findings = Findings(ClusterError, subject)
    if not parts:
        findings.add("it names no parts: give some, such as server:server7 or link:leaf3-spine2")
    find_names(findings, "parts", parts)
    find_texts(findings, note=note)
    findings.raise_if_any()


def find_texts(findings: Findings, **texts: str) -> None:
    for name, text in texts.items():
        if len(text) > MOST_TEXT:
            findings.add(f"{name} has {len(text)} characters: give {MOST_TEXT} or fewer")
        if not text.isprintable():
            findings.add(f"{name} has control characters: leave them out")


def find_names(findings: Findings, what: str, names: tuple[str, ...]) -> None:
    if len(names) > MOST_PARTS:
        findings.add(f"there are {len(names)} {what}: give {MOST_PARTS} or fewer at a time")
        return
    if len(set(names)) < len(names):
        findings.add(f"{what} are listed twice: list each once")
    for name in names:
        find_texts(findings, **{what: name})


def find_gpus(findings: Findings, gpus: int) -> None:
    if not 1 <= gpus <= MOST_GPUS:
        findings.add(f"it asks for {gpus} GPUs: give 1 to {MOST_GPUS}")


def find_seconds(findings: Findings, **times: float | None) -> None:
    for name, seconds in times.items():
        if seconds is not None and not (math.isfinite(seconds) and seconds > 0):
            findings.add(f"{name} is {seconds}: give more than 0 seconds, or leave it out")


def find_labels(findings: Findings, labels: dict[str, str]) -> None:
    if len(labels) > MOST_LABELS:
        findings.add(f"there are {len(labels)} labels: give {MOST_LABELS} or fewer")
        return
    for key, value in labels.items():
        if not isinstance(key, str) or not isinstance(value, str):
            findings.add(f"label {key!r} is {value!r}: give text")
        else:
            find_texts(findings, label=key, **{"value of a label": value})

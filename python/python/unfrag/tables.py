"""The rows of an answer: what of its JSON makes a table."""

from __future__ import annotations

from collections.abc import Iterable, Iterator
from typing import Any

Row = dict[str, Any]


def flat(value: dict[str, Any], prefix: str = "") -> Row:
    """Numbers, texts and truth values of a part, those of parts within it with dotted names; lists are left out."""
    row: Row = {}
    for name, v in value.items():
        if isinstance(v, dict):
            row |= flat(v, f"{prefix}{name}.")
        elif not isinstance(v, list):
            row[prefix + name] = v
    return row


def _zones(moments: Iterable[dict[str, Any]], **kept: Any) -> Iterator[Row]:
    """A row for each zone of each moment."""
    for moment in moments:
        of = {k: moment[k] for k in ("name", "seconds") if k in moment}
        for zone in moment["zones"]:
            row = kept | of | flat(zone)
            for order, blocks in enumerate(zone.get("free_blocks") or []):
                row[f"free_blocks.{order}"] = blocks
            yield row


def rows(question: str, data: dict[str, Any]) -> list[Row]:
    """The rows of the answer to a question."""
    if question == "replay":
        found = list(_zones(data["recorded"], kernel="recorded"))
        for kernel in data["kernels"]:
            found += _zones(kernel["samples"], kernel=kernel["kernel"])
        return found
    if question == "simulate":
        return [flat(sample) for sample in data["samples"]]
    if question == "experiment":
        return [flat(result) for result in data["results"]]
    if question == "doctor":
        return [flat(zone) for zone in data["zones"]]
    if question == "inspect":
        return list(_zones(data["snapshots"]))
    return [flat(report) for report in data["reports"]]


def _bar(change: dict[str, Any]) -> Row:
    """What is predicted of a number, between which ends, and what can be said; ``None`` where nothing can."""
    low, high = change["bar"] or (None, None)
    return {"predicted": change["predicted"], "low": low, "high": high, "verdict": change["verdict"]}


def summary(question: str, data: dict[str, Any]) -> Row:
    """The whole answer as one row: what is outside of lists, and the sums of each kernel of a replay or an experiment."""
    row = flat(data)
    if question == "replay":
        for kernel in data["kernels"]:
            parts = {name: kernel[name] for name in ("totals", "accuracy") if kernel[name]}
            row |= flat(parts, f"{kernel['kernel']}.")
            what_if = kernel.get("what_if") or {"changes": []}
            if kernel.get("broke_down"):
                row[f"{kernel['kernel']}.broke_down"] = kernel["broke_down"]
            bars = {change["name"]: _bar(change) for change in what_if["changes"]}
            row |= flat({"what_if": bars}, f"{kernel['kernel']}.")
    if question == "experiment":
        for result in data["results"]:
            of = [result[name] for name in ("kernel", "machine", "variant") if result.get(name)]
            row |= flat(result["metrics"], ".".join(of) + ".")
    return row

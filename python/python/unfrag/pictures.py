"""Pictures of answers, with matplotlib."""

from __future__ import annotations

from collections import Counter
from typing import Any

from . import tables
from .optional import library

# Over what a column of the rows is drawn, and what a line is for, by question: (x, its label, by).
_CURVES = {
    "replay": ("seconds", "time, s", "kernel"),
    "simulate": ("at_ns", "virtual time, s", None),
    "inspect": ("name", "snapshot", "zone"),
}
# What is drawn where nobody chooses.
_USUAL = {
    "replay": "free_huge_blocks",
    "simulate": "memory.free",
    "inspect": "free_huge_blocks",
    "doctor": "huge_pages",
    "explain": "count",
    "summary": "pages",
    "blame": "spoilt_blocks",
    "wakes": "share",
    "account": "frames",
    "frames": "present",
    "forecast": "last",
    "profile": "high_water_pages",
    "slab": "pages",
}
# What the bars of an answer are called, a part after the other.
_BARS = {
    "summary": ("process",),
    "blame": ("program", "purpose"),
    "wakes": ("module", "order"),
    "account": ("use",),
    "frames": ("process", "name"),
    "forecast": ("blocks",),
    "profile": ("name",),
    "slab": ("allocator", "name"),
}
# Bars of a picture, the longest first.
_MOST = 15
_LABELS = {"free_huge_blocks": "free huge blocks", "memory.free": "free pages"}
# Huge pages that a host can have, from what it has to what it could have at most.
_HUGE_PAGES = {
    "now": "now",
    "after_compaction": "after compaction",
    "after_reclaim": "after reclaim",
    "at_most": "at most",
}


def axes(ax: Any) -> Any:
    """The axes that are given, or new ones."""
    if ax is not None:
        return ax
    return library("matplotlib.pyplot").figure(figsize=(8, 4)).add_subplot()


def plot(question: str, data: dict[str, Any], ax: Any, metric: str | None) -> Any:
    """Draws an answer into axes; returns those."""
    ax = axes(ax)
    if question == "experiment":
        _experiment(data, ax, metric)
        return ax
    metric = metric or _USUAL[question]
    if question in _CURVES:
        _curves(question, data, ax, metric)
    elif question in _BARS:
        _bars(question, data, ax, metric)
    elif metric != _USUAL[question]:
        raise ValueError(f"metric={metric!r}: an answer of {question} has one picture alone")
    elif question == "doctor":
        _huge_pages(data, ax)
    else:
        _failures(data, ax)
    return ax


def _known(metric: str | None, names: list[str]) -> None:
    if metric not in names:
        raise ValueError(f"metric={metric!r}: choose one of {', '.join(names)}")


def _curves(question: str, data: dict[str, Any], ax: Any, metric: str) -> None:
    """A column of the rows over time or snapshots, a line for each kernel or zone."""
    rows = tables.rows(question, data)
    x, x_label, by = _CURVES[question]
    numbers = {n: None for row in rows for n, v in row.items() if isinstance(v, (int, float)) and n != x}
    _known(metric, list(numbers))
    curves: dict[Any, dict[Any, float]] = {}
    for row in rows:
        if row.get(metric) is not None and row.get(x) is not None:
            at = row[x] / 1e9 if x == "at_ns" else row[x]
            curve = curves.setdefault(row[by] if by else None, {})
            # Of several zones at a moment the sum is shown.
            curve[at] = curve.get(at, 0) + row[metric]
    for name, curve in curves.items():
        ax.plot(list(curve), list(curve.values()), label=name)
    ax.set_xlabel(x_label)
    ax.set_ylabel(_LABELS.get(metric, metric))
    ax.set_ylim(bottom=min(0, ax.get_ylim()[0]))
    if by and curves:
        ax.legend()


def _bars(question: str, data: dict[str, Any], ax: Any, metric: str) -> None:
    """The rows that have most of a metric, a bar each."""
    rows = tables.rows(question, data)
    _known(metric, list({n: None for row in rows for n, v in row.items() if isinstance(v, (int, float))}))
    largest = sorted((r for r in rows if r.get(metric) is not None), key=lambda r: -r[metric])[:_MOST]
    labels = [" ".join(str(r[name]) for name in _BARS[question] if r.get(name)) for r in largest]
    at = range(len(largest))
    ax.barh(at, [r[metric] for r in largest])
    ax.set_yticks(at, labels)
    ax.invert_yaxis()
    ax.set_xlabel(metric)


def _experiment(data: dict[str, Any], ax: Any, metric: str | None) -> None:
    """Bars of a metric by kernel: the median, from the least to the largest, and what the source has."""
    results = data["results"]
    names = list({n: None for r in results for n in r["metrics"]})
    quoted = [n for n in names if any(n in r["source"] for r in results)]
    metric = metric or next(iter(quoted + names), None)
    _known(metric, names)
    shown = [r for r in results if metric in r["metrics"]]
    labels = [" ".join(filter(None, (r["kernel"], r["variant"], r["machine"]))) for r in shown]
    of = [r["metrics"][metric] for r in shown]
    errors = [[m["median"] - m["min"] for m in of], [m["max"] - m["median"] for m in of]]
    at = range(len(shown))
    ax.barh(at, [m["median"] for m in of], xerr=errors, label="ours")
    known = [(r["source"][metric], y) for r, y in zip(shown, at) if metric in r["source"]]
    if known:
        ax.plot(*zip(*known), "D", color="black", label="source")
        ax.legend()
    ax.set_yticks(at, labels)
    ax.invert_yaxis()
    ax.set_xlabel(metric)
    ax.set_title(data["experiment"])


def _huge_pages(data: dict[str, Any], ax: Any) -> None:
    """Huge pages of each zone: now, and by what is done."""
    zones = [z for z in data["zones"] if z.get("huge_pages")]
    width = 0.8 / len(_HUGE_PAGES)
    for i, (name, label) in enumerate(_HUGE_PAGES.items()):
        bars = [(at + i * width, z["huge_pages"].get(name)) for at, z in enumerate(zones)]
        known = [(at, n) for at, n in bars if n is not None]
        if known:
            ax.bar(*zip(*known), width, label=label)
    middle = (len(_HUGE_PAGES) - 1) * width / 2
    ax.set_xticks([at + middle for at in range(len(zones))], [f"node {z['node']}, {z['zone']}" for z in zones])
    ax.set_ylabel("huge pages")
    ax.legend()


def _failures(data: dict[str, Any], ax: Any) -> None:
    """How often which allocation failed, and why."""
    counts: Counter[str] = Counter()
    for report in data["reports"]:
        order = "" if report.get("order") is None else f"order {report['order']}: "
        counts[order + (report.get("verdict") or report["kind"])] += report["count"]
    ax.barh(list(counts), list(counts.values()))
    ax.invert_yaxis()
    ax.set_xlabel("reports")

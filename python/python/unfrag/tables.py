"""The rows of an answer: what of its JSON makes a table; and what is said of it in a few words."""

from __future__ import annotations

from collections.abc import Callable, Iterable, Iterator
from typing import Any

Row = dict[str, Any]


def flat(value: dict[str, Any], prefix: str = "") -> Row:
    """Numbers, texts and truth values of a part, those of parts within it with dotted names; lists are left out."""
    row: Row = {}
    for name, v in value.items():
        if isinstance(v, dict):
            row |= flat(v, f"{prefix}{name}.")
        elif not isinstance(v, (list, tuple)):
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


#: The list of an answer whose parts are its rows.
_LISTS = {
    "simulate": "samples",
    "experiment": "results",
    "doctor": "zones",
    "blame": "holders",
    "explain": "reports",
    "wakes": "callers",
    "account": "uses",
}


def rows(question: str, data: dict[str, Any]) -> list[Row]:
    """The rows of the answer to a question."""
    if question == "replay":
        found = list(_zones(data["recorded"], kernel="recorded"))
        for kernel in data["kernels"]:
            found += _zones(kernel["samples"], kernel=kernel["kernel"])
        return found
    if question == "inspect":
        return list(_zones(data["snapshots"]))
    if question == "summary":
        return [flat(process) for process in (data["requests"] or {"processes": []})["processes"]]
    if question == "profile":
        return [flat(of) for of in data.get("program") or [data["all"]]]
    if question == "frames":
        of = [({"pid": p["pid"], "process": p["name"]}, p["mappings"]) for p in data["processes"]]
        return [kept | flat(mapping) for kept, mappings in of for mapping in mappings]
    if question == "forecast":
        return [{"blocks": name} | flat(data[name]) for name in ("free", "at_best")]
    if question == "slab":
        return [{"allocator": a["allocator"]} | flat(cache) for a in data["allocators"] for cache in a["caches"]]
    return [flat(part) for part in data[_LISTS[question]]]


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
    if question == "slab":
        for allocator in data["allocators"]:
            row |= flat(allocator, f"{allocator['allocator']}.")
    return row


def _count(n: int, one: str) -> str:
    return f"{n} {one}{'' if n == 1 else 's'}"


def about(question: str, data: dict[str, Any]) -> str:
    """What an answer is about, in a few words."""
    words: dict[str, Callable[[dict[str, Any]], str]] = {
        "replay": lambda d: f"{d['recording']['file']}: {', '.join(k['kernel'] for k in d['kernels']) or d['mode']}, "
        f"{_count(len(d['recorded']), 'snapshot')}",
        "simulate": lambda d: f"{d['scenario']}: {d['kernel']} on {d['machine']}, seed {d['seed']}, {d['ended']}",
        "experiment": lambda d: f"{d['experiment']}: {_count(len(d['results']), 'result')}",
        "doctor": lambda d: f"{d['source']}: {_count(len(d['zones']), 'zone')}, {len(d['advice'])} advised"
        + (f", needs: {d['needs']['verdict']}" if d.get("needs") else ""),
        "inspect": lambda d: f"{d['source']}: {_count(len(d['snapshots']), 'snapshot')}",
        "explain": lambda d: _count(len(d["reports"]), "different failure") if d["is_log"] else "no line of a kernel: nothing is known",
        "summary": lambda d: f"{d['source']}: {_count(d['events'], 'event')} in {d['seconds']:.1f} s",
        "blame": lambda d: f"{d['source']}: {_count(len(d['holders']), 'holder')}",
        "wakes": lambda d: f"{d['source']}: {_count(len(d['callers']), 'caller')}",
        "account": lambda d: f"{d['source']}: {_count(d['exist'], 'frame')} of {d['page_size']} bytes",
        "frames": lambda d: f"{d['of']}: {_count(d['present'], 'page')}",
        "forecast": lambda d: f"{d['source']}: {d['need']}, {_count(d['looks'], 'look')}, {d['free']['when']['answer']}",
        "profile": lambda d: f"{d['recording']['file']}: {_count(len(d.get('program') or []), 'program')}",
        "slab": lambda d: f"{d['source']}: {', '.join(a['allocator'] for a in d['allocators'])}",
    }
    said = words[question](data)
    return said if len(said) <= 160 else said[:159] + "…"

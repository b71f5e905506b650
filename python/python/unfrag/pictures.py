"""Pictures of answers, with matplotlib."""

from __future__ import annotations

from typing import Any

# What is drawn over what, by question: (x, its label, y, its label, what a line is for).
_CURVES = {
    "replay": ("seconds", "time, s", "free_huge_blocks", "free huge blocks", "kernel"),
    "simulate": ("at_ns", "virtual time, s", "memory.free", "free pages", None),
    "inspect": ("name", "snapshot", "free_huge_blocks", "free huge blocks", "zone"),
}


def plot(question: str, rows: list[dict[str, Any]], ax: Any) -> Any:
    """Draws the rows of an answer into axes; returns those."""
    if question not in _CURVES:
        raise TypeError(f"an answer of {question} has no picture; see its text or html")
    if ax is None:
        import matplotlib.pyplot

        ax = matplotlib.pyplot.figure(figsize=(8, 4)).add_subplot()
    x, x_label, y, y_label, by = _CURVES[question]
    curves: dict[Any, dict[Any, float]] = {}
    for row in rows:
        if row.get(y) is not None and row.get(x) is not None:
            at = row[x] / 1e9 if x == "at_ns" else row[x]
            curve = curves.setdefault(row[by] if by else None, {})
            # Of several zones at a moment the sum is shown.
            curve[at] = curve.get(at, 0) + row[y]
    for name, curve in curves.items():
        ax.plot(list(curve), list(curve.values()), label=name)
    ax.set_xlabel(x_label)
    ax.set_ylabel(y_label)
    ax.set_ylim(bottom=0)
    if by:
        ax.legend()
    return ax

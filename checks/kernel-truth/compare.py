#!/usr/bin/env python3
"""Compares each recording's what-ifs with what the kernels that were asked for did; see ./run.

compare.py OUT UNFRAG [--fitted FILE] [--shipped FILE] [--measured FILE] reads OUT/runs and OUT/recordings, and writes OUT/rows.tsv, OUT/rows.json, OUT/table.txt,
OUT/table.md and OUT/unanswered.tsv. The exit status is 0 whatever the predictions are worth: it is 1 if nothing could be compared.
"""

import argparse
import json
import os
import sys

sys.path.insert(0, os.path.dirname(os.path.abspath(__file__)))
from matrix import table  # noqa: E402
from matrix.asking import Asking  # noqa: E402
from matrix.rows import COLUMNS, compare  # noqa: E402
from matrix.runs import all_runs, shipped  # noqa: E402


def fitted_by(path):
    """Whether a question's recordings served to fit something: by lines of load, kernel, settings; `*` is any."""
    lines = []
    if path and os.path.exists(path):
        with open(path) as file:
            lines = [l.split()[:3] for l in file if l.strip() and not l.startswith("#")]

    def matches(line, load, kernel, settings):
        return all(a in ("*", b) for a, b in zip(line, (load, kernel, settings)))

    return lambda q: any(matches(l, *q[0:3]) or matches(l, q[0], *q[3:5]) for l in lines)


def loads_of(path):
    """The loads that a table of measured errors holds."""
    if not path or not os.path.exists(path):
        return set()
    with open(path) as file:
        return {line.split("\t")[0].strip() for line in file if line.strip() and not line.startswith("#")}


def plain(value):
    if value is None:
        return "-"
    return "%.4g" % value if isinstance(value, float) and abs(value) < 1 else "%.6g" % value if isinstance(value, float) else str(value)


def main():
    parser = argparse.ArgumentParser()
    parser.add_argument("out")
    parser.add_argument("unfrag")
    parser.add_argument("--fitted")
    parser.add_argument("--shipped")
    parser.add_argument("--measured", help="the errors that bars are made of: loads that are in it are shown apart")
    options = parser.parse_args()
    asking = Asking(options.unfrag, options.out)
    fitted = fitted_by(options.fitted)
    loads, rows, unanswered = {}, [], []
    for run in all_runs(options.out):
        loads.setdefault(run.load, []).append(run)

    def say(question, flags):
        print("  %s: %s %s asked for %s %s" % question, " ".join(flags), file=sys.stderr, flush=True)

    project = os.path.join(os.path.dirname(os.path.abspath(__file__)), "..", "..")
    ships = shipped(options.shipped, project)
    for load, runs in loads.items():
        found, not_answered = compare(runs, asking, fitted, say, [s for s in ships if s.load == load])
        rows += found
        unanswered += not_answered
    known = loads_of(options.measured)
    for row in rows:
        row["bar_known"] = row["load"] in known
    skipped = []
    if os.path.exists(os.path.join(options.out, "skipped.tsv")):
        with open(os.path.join(options.out, "skipped.tsv")) as file:
            skipped = [line.rstrip("\n").split("\t") for line in file]
    write = lambda name, text: open(os.path.join(options.out, name), "w").write(text)
    lines = ["\t".join(COLUMNS)] + ["\t".join(plain(row[c]) for c in COLUMNS) for row in rows]
    write("rows.tsv", "\n".join(lines) + "\n")
    write("rows.json", json.dumps({"rows": rows, "unanswered": unanswered, "skipped": skipped, "shares": table.shares(rows)}, indent=1))
    write("unanswered.tsv", "".join("\t".join(u) + "\n" for u in unanswered))
    write("table.txt", table.text(rows, unanswered, skipped))
    write("table.md", table.page(rows, unanswered, skipped))
    print(table.text(rows, unanswered, skipped))
    return 0 if rows else 1


if __name__ == "__main__":
    sys.exit(main())

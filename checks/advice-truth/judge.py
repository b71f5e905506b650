"""Judges the rows that a guest printed: whether each number moved by what its advice said."""

import re
import sys

UNITS = {"B": 1, "KiB": 1 << 10, "MiB": 1 << 20, "GiB": 1 << 30}


def number(text):
    """A number as the doctor prints it: `1,234`, `5 MiB`."""
    value, _, unit = text.strip().partition(" ")
    return float(value.replace(",", "")) * UNITS.get(unit, 1)


def judge(row):
    """The cells of a table's line, and whether the row is as it should be."""
    name, *rest = row.split("|")
    if len(rest) == 1:
        return [name, rest[0], "", "", ""], False
    changes, before, after = rest[0], float(rest[1]), float(rest[2])
    found = re.search(r": from (.+?) to (about |at best )?(.+)$", changes)
    start, sure, end = number(found[1]), (found[2] or "").strip(), number(found[3])
    said, moved = end - start, after - before
    if sure == "at best":
        good = moved * said > 0 and abs(moved) <= abs(said) * 1.05
    else:
        good = said != 0 and 0.8 <= moved / said <= 1.2
    share = f"{100 * moved / said:.0f} %" if said else "-"
    return [name, changes, f"{said:,.0f}", f"{moved:,.0f}", share], good


def main():
    rows = [line[4:].rstrip("\n") for line in open(sys.argv[1]) if line.startswith("ROW|")]
    judged = [judge(row) for row in rows]
    for (name, changes, said, moved, share), good in judged:
        verdict = "" if good else "   NOT AS IT SAID"
        print(f"{name}: {changes}\n    said {said or '-'}, moved {moved or '-'} ({share or '-'}){verdict}")
    sys.exit(0 if judged and all(good for _, good in judged) else 1)


if __name__ == "__main__":
    main()

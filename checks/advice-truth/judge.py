"""Judges what a guest printed: whether the number of each advice that was followed moved by what the advice said.

The guest prints, of each state, the doctor's answer between `ANSWER NAME` and `ANSWERED`, and `ROW|NAME|COMMAND|BEFORE|AFTER`; where its
command was not advised, `ROW|NAME|`.
"""

import json
import sys


def read(lines):
    """Rows, and the answers by state."""
    rows, answers, name, text = [], {}, None, []
    for line in lines:
        if line.startswith("ROW|"):
            rows.append(line.rstrip("\n").split("|")[1:])
        elif line.startswith("ANSWER "):
            name, text = line.split()[1], []
        elif line.startswith("ANSWERED"):
            answers[name], name = json.loads("".join(text))["diagnosis"], None
        elif name:
            text.append(line)
    return rows, answers


def in_words(change):
    """A change as the doctor prints it, but for units."""
    sure = {"exact": "", "about": "about ", "at_best": "at best "}[change["sure"]]
    return f"{change['what']}: from {change['from']:,} to {sure}{change['to']:,}"


def judge(change, before, after):
    """What was said, what moved, and whether that is as it should be."""
    said, moved = change["to"] - change["from"], after - before
    if change["sure"] == "at_best":
        return said, moved, moved * said > 0 and abs(moved) <= abs(said) * 1.05
    return said, moved, said != 0 and 0.8 <= moved / said <= 1.2


def show(row, answer):
    """Prints a row; whether it is as it should be."""
    name, command, *counts = row
    if not counts:
        print(f"{name}: NOT ADVISED")
        for kind in ("advice", "candidates", "withdrawn"):
            for advice in answer[kind]:
                print(f"    {kind}: {advice['command']}; {advice['reason']}; {advice.get('why_not', 'given')}")
        return False
    advice = next(a for a in answer["advice"] if a["command"] == command)
    print(f"{name}: {command}\n    {advice['reason']}")
    if advice["change"] is None:
        print("    NAMES NO NUMBER")
        return False
    said, moved, good = judge(advice["change"], *map(int, counts))
    share = f" ({100 * moved / said:.0f} %)" if said else ""
    verdict = "" if good else "   NOT AS IT SAID"
    print(f"    {in_words(advice['change'])}\n    said {said:,}, moved {moved:,}{share}: from {counts[0]} to {counts[1]}{verdict}")
    return good


def main():
    with open(sys.argv[1], encoding="utf-8") as serial:
        rows, answers = read(serial)
    good = [show(row, answers[row[0]]) for row in rows]
    sys.exit(0 if good and all(good) else 1)


if __name__ == "__main__":
    main()

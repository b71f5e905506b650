"""The matrix as text: for a terminal, and for the book."""

from .quantities import SCALE, WORDS


def shares(rows):
    """How often predictions were right; recordings that served to fit something, and the recorded kernel itself, aside."""
    counted = [r for r in rows if not r["fitted"]]
    asked = [r for r in counted if not r["own"]]
    signs = [r for r in asked if r["sign"]]
    bars = [r for r in counted if r["in_bar"] is not None and not r.get("bar_known")]
    known = [r for r in counted if r["in_bar"] is not None and r.get("bar_known")]
    return {
        "comparisons": len(asked),
        "differences": len(signs),
        "right": sum(r["sign"] == "right" for r in signs),
        "wrong": sum(r["sign"] == "wrong" for r in signs),
        "cannot_say": sum(r["sign"] == "cannot say" for r in signs),
        "bars": len(bars),
        "in_bar": sum(r["in_bar"] for r in bars),
        "known_bars": len(known),
        "in_known_bar": sum(r["in_bar"] for r in known),
        "fitted": len(rows) - len(counted),
    }


PRESSURES = {"none": "little reclaimed or moved", "compaction": "pages moved", "reclaim": "much reclaimed"}


def kind(row):
    """What was asked: the recorded kernel itself, another setting of it, or another kernel."""
    if row["own"]:
        return "the recorded kernel itself"
    return "another setting" if row["kernel_recorded"] == row["kernel_asked"] else "another kernel"


def by_kind(rows):
    """Shares by what was asked, and by how hard memory was pressed."""
    groups = {}
    for row in rows:
        groups.setdefault((kind(row), PRESSURES[row["pressure"]]), []).append(row)
    return [(key, shares(group)) for key, group in sorted(groups.items())]


def percent(part, whole):
    return "none" if not whole else "%d of %d (%.0f %%)" % (part, whole, 100 * part / whole)


def number(value):
    if value is None:
        return "-"
    if isinstance(value, float) and abs(value) < 1.5 and value != int(value):
        return "%.3f" % value
    return "{:,.0f}".format(value)


def span(low, high):
    return number(low) if number(low) == number(high) else "%s to %s" % (number(low), number(high))


def bar(row):
    return "-" if row["predicted_low"] is None else span(row["predicted_low"], row["predicted_high"])


def error(row):
    if SCALE[row["quantity"]] == "index":
        return "%+.3f" % row["error"]
    return "%+.0f %%" % (100 * row["error"]) if abs(row["error"]) < 10 else "%+.0f times" % row["error"]


def named(kernel, settings):
    return kernel if settings == "-" else "%s with %s" % (kernel, settings.replace("vm.", ""))


def question(row):
    return (row["load"], row["kernel_recorded"], row["settings_recorded"], row["kernel_asked"], row["settings_asked"])


def title(key):
    load, kernel, settings, other, others = key
    if (kernel, settings) == (other, others):
        return "%s: %s as it was" % (load, named(kernel, settings))
    return "%s: recorded with %s, asked for %s" % (load, named(kernel, settings), named(other, others))


def grouped(rows):
    groups = {}
    for row in rows:
        groups.setdefault(question(row), []).append(row)
    return groups


def verdict(row):
    if row["own"]:
        return "own"
    return row["sign"] or "same"


def summary(rows, unanswered):
    s = shares(rows)
    said = s["right"] + s["wrong"]
    lines = [
        "Signs right of real differences above 10 %%, where it says one: %s." % percent(s["right"], said),
        "It says one for %s; for the others it cannot say." % percent(said, s["differences"]),
        "Truth inside the bar: %s of loads that bars were not made with, %s of those whose errors are in them."
        % (percent(s["in_bar"], s["bars"]), percent(s["in_known_bar"], s["known_bars"])),
        "Questions without an answer: %d. Comparisons that are not counted, since something was fitted on their recordings: %d."
        % (len(unanswered), s["fitted"]),
    ]
    return "\n".join(lines)


def text(rows, unanswered, skipped=()):
    out = []
    head = "%-40s %14s %12s %22s %20s %-10s %10s %s" % (
        "", "recorded", "predicted", "bar", "real", "sign", "error", "in the bar")
    for key, group in grouped(rows).items():
        out += ["", title(key) + (" (fitted, not counted)" if group[0]["fitted"] else ""), head]
        for row in group:
            inside = {None: "-", True: "yes", False: "NO"}[row["in_bar"]]
            out.append("  %-38s %14s %12s %22s %20s %-10s %10s %s" % (
                WORDS[row["quantity"]], number(row["recorded_real"]), number(row["predicted"]), bar(row),
                span(row["real_low"], row["real_high"]), verdict(row), error(row), inside))
    if unanswered:
        out += ["", "Without an answer:"]
        out += ["  %s: %s" % (title(u[:5]), u[5]) for u in unanswered]
    if skipped:
        out += ["", "Not run:"] + ["  %s: %s" % tuple(s[:2]) for s in skipped]
    failures = [r for r in rows if r["sign"] == "wrong" or r["in_bar"] is False]
    out += ["", "Failures:"] + (["  " + failure(r) for r in failures] or ["  none"])
    return "\n".join(out + ["", summary(rows, unanswered), ""])


def failure(row):
    what = " and ".join(w for w, is_so in (
        ("wrong sign", row["sign"] == "wrong"), ("outside its bar", row["in_bar"] is False)) if is_so)
    return "%s; %s: %s instead of %s, where %s were real: %s" % (
        title(question(row)), WORDS[row["quantity"]], number(row["predicted"]), number(row["recorded_real"]),
        span(row["real_low"], row["real_high"]), what)


def page(rows, unanswered, skipped=()):
    """Tables for the book: the shares, a line for each question, and every failure."""
    out = ["| asked for | memory | signs right, where it says one | cannot say | inside the bar |", "|---|---|---|---|---|"]
    for (asked, pressure), s in by_kind(rows):
        own = asked == "the recorded kernel itself"
        out.append("| %s | %s | %s | %s | %s |" % (
            asked, pressure, "" if own else percent(s["right"], s["right"] + s["wrong"]), "" if own else s["cannot_say"],
            percent(s["in_bar"] + s["in_known_bar"], s["bars"] + s["known_bars"])))
    out += ["", "| load | recorded with | asked for | signs right | cannot say | inside the bar |", "|---|---|---|---|---|---|"]
    for key, group in grouped(rows).items():
        load, kernel, settings, other, others = key
        signs = [r for r in group if r["sign"]]
        bars = [r for r in group if r["in_bar"] is not None]
        own = group[0]["own"]
        out.append("| %s%s | %s | %s | %s | %s | %s |" % (
            load, " (fitted)" if group[0]["fitted"] else " (in the bars)" if group[0].get("bar_known") else "", named(kernel, settings),
            "itself" if own else named(other, others),
            "" if own else "%d of %d" % (sum(r["sign"] == "right" for r in signs), sum(r["sign"] != "cannot say" for r in signs)),
            "" if own else sum(r["sign"] == "cannot say" for r in signs),
            "%d of %d" % (sum(r["in_bar"] for r in bars), len(bars)) if bars else "no bars"))
    wrong = [r for r in rows if r["sign"] == "wrong"]
    out += ["", "Wrong signs:", "", "| load | recorded with | asked for | number | recorded | predicted | real |", "|---|---|---|---|---|---|---|"]
    for r in wrong:
        out.append("| %s | %s | %s | %s | %s | %s | %s |" % (
            r["load"], named(r["kernel_recorded"], r["settings_recorded"]), named(r["kernel_asked"], r["settings_asked"]),
            WORDS[r["quantity"]], number(r["recorded_real"]), number(r["predicted"]), span(r["real_low"], r["real_high"])))
    outside = grouped(r for r in rows if r["in_bar"] is False)
    out += ["", "Outside the bar:", "", "| load | recorded with | asked for | numbers: bar, and what was real |", "|---|---|---|---|"]
    for (load, kernel, settings, other, others), group in outside.items():
        out.append("| %s | %s | %s | %s |" % (
            load, named(kernel, settings), "itself" if group[0]["own"] else named(other, others),
            "; ".join("%s: %s, %s" % (WORDS[r["quantity"]], bar(r), span(r["real_low"], r["real_high"])) for r in group)))
    if unanswered:
        out += ["", "Without an answer:", "", "| load | recorded with | asked for | why |", "|---|---|---|---|"]
        out += ["| %s | %s | %s | %s |" % (u[0], named(u[1], u[2]), named(u[3], u[4]), u[5].replace("|", "\\|")) for u in unanswered]
    if skipped:
        out += ["", "Not run:", "", "| what | why |", "|---|---|"] + ["| %s | %s |" % tuple(s[:2]) for s in skipped]
    return "\n".join(out + ["", summary(rows, unanswered).replace("\n", "\n\n"), ""])

"""Rows of the matrix: a recording, a question to it, a number: what was predicted, and what was real."""

from .asking import Refused, flags_for
from .quantities import LEAST, NAMES, SCALE, counters, levels

COLUMNS = (
    "load kernel_recorded settings_recorded kernel_asked settings_asked quantity recorded_real "
    "predicted_low predicted predicted_high real_low real_high start pressure"
).split()


class Real:
    """What a run did: from its recording as it was, and from the kernel's counters."""

    def __init__(self, run, asking):
        self.run = run
        self.own = asking.answer(run.recording, [])
        totals = self.own["kernels"][0]["totals"]
        # What a recording shows of itself; the kernel's own counters, where they were copied, know more.
        self.values = {n: totals[n + "_recorded"] for n in NAMES if totals.get(n + "_recorded") is not None}
        if run.has_phase("begin"):
            self.values.update(counters(run.vmstat("begin"), run.vmstat("end")))
        self.values.update(levels(self.own["recorded"]))

    def pressure(self):
        """How hard memory was pressed, in the words of a report's class; little is a twentieth of memory."""
        pages = (self.own.get("recording") or {}).get("managed_bytes", 0) / 4096
        if self.values.get("pgsteal_kswapd", 0) + self.values.get("pgsteal_direct", 0) > pages / 20:
            return "reclaim"
        return "compaction" if self.values.get("pgmigrate_success", 0) > pages / 20 else "none"


def predicted(answer):
    """What a replay says of each number: (least, middle, most, verdict); without a bar least and most are None."""
    kernel = answer["kernels"][0]
    middle = levels(kernel["samples"])
    middle.update({n: v for n, v in kernel["totals"].items() if n in NAMES and v is not None})
    said = {}
    for change in ((kernel.get("what_if") or {}).get("changes") or []):
        said[change["name"]] = change
    found = {}
    for name in NAMES:
        if middle.get(name) is None:
            continue
        change = said.get(name, {})
        low, high = change.get("bar") or (None, None)
        value = change["predicted"] if change.get("predicted") is not None else middle[name]
        found[name] = (low, value, high, change.get("verdict", "no bar"))
    return found


def compare(load_runs, asking, fitted, say, shipped=()):
    """Rows of all questions among the runs of one load, and the questions that were not answered.

    Recordings that ship are asked for other kernels alone: how they began is not how the runs of their own kernel did.
    """
    by_question, rows, unanswered = {}, [], []
    for run in load_runs:
        by_question.setdefault((run.kernel, run.settings), []).append(run)
    real = {}
    for key, runs in by_question.items():
        for run in runs:
            try:
                done = Real(run, asking)
            except Refused as why:
                unanswered.append((run.load,) + key + key + (str(why),))
                continue
            real.setdefault(key, []).append(done)
    usual = [key for key in real if key[1] == load_runs[0].usual]
    for key in real:
        for other in real:
            kernel_alone = key[0] != other[0] and key in usual and other in usual
            setting_alone = key[0] == other[0] and key != other
            if not (key == other or kernel_alone or setting_alone):
                continue
            recording = real[key][0]
            flags = [] if key == other else flags_for(recording.run, real[other][0].run)
            question = (recording.run.load,) + key + other
            say(question, flags)
            try:
                answer = ask(asking, recording.run.recording, flags)
            except Refused as why:
                unanswered.append(question + (str(why),))
                continue
            rows += rows_of(question, recording, real[key], real[other], answer, fitted)
    for run in shipped:
        for other in (k for k in real if k[0] != run.kernel and k[1] == run.settings):
            question = (run.load + "-sample", run.kernel, run.settings) + other
            flags = flags_for(run, real[other][0].run)
            say(question, flags)
            try:
                recording, answer = Real(run, asking), ask(asking, run.recording, flags)
            except Refused as why:
                unanswered.append(question + (str(why),))
                continue
            rows += rows_of(question, recording, [recording], real[other], answer, fitted)
    return rows, unanswered


def ask(asking, recording, flags):
    """Asks, and once more without what this program does not know of a distribution's own settings."""
    try:
        return asking.replay(recording, flags)
    except Refused as why:
        at = next((i for i, flag in enumerate(flags) if flag.startswith("lru_gen/")), None)
        if at is None or "lru_gen" not in str(why) or "--kernel" not in flags:
            raise
        return asking.replay(recording, flags[: at - 1] + flags[at + 1:])


def rows_of(question, recording, alike, others, answer, fitted):
    rows = []
    said = predicted(answer)
    for name in NAMES:
        values = [o.values[name] for o in others if o.values.get(name) is not None]
        before = recording.values.get(name)
        if name not in said or not values or before is None:
            continue
        low, middle, high, verdict = said[name]
        again = [a.values[name] for a in alike if a.values.get(name) is not None]
        row = dict(zip(COLUMNS, question + (name, before, low, middle, high, min(values), max(values))))
        kind = (answer["kernels"][0].get("what_if") or {}).get("class") or {}
        row["start"] = kind.get("start") or answer.get("start") or "-"
        row["pressure"] = kind.get("pressure") or recording.pressure()
        row["recorded_low"], row["recorded_high"] = min(again), max(again)
        row["runs"] = len(values)
        row["own"] = question[1:3] == question[3:5]
        row["fitted"] = fitted(question)
        judge(row, sum(values) / len(values), verdict)
        rows.append(row)
    return rows


def judge(row, truth, verdict):
    """Adds what the prediction was worth.

    A difference counts if it is above a tenth of the larger value, and if the runs of the one kernel and of the other do
    not overlap: else it is no difference between kernels. Whether the prediction's change has the same sign is asked of
    what a reader is shown, the recorded value and the predicted one.
    """
    name, before, said = row["quantity"], row["recorded_real"], row["predicted"]
    least = LEAST[name]
    apart = row["recorded_high"] < row["real_low"] or row["real_high"] < row["recorded_low"]
    large = abs(truth - before) > max(0.1 * max(abs(truth), abs(before)), least)
    row["real"] = truth
    row["differs"] = bool(apart and large and not row["own"])
    row["sign"] = None
    if row["differs"]:
        if verdict is None:
            row["sign"] = "cannot say"
        else:
            row["sign"] = "right" if (said - before) * (truth - before) > 0 else "wrong"
    if SCALE[name] == "index":
        row["error"] = said - truth
    else:
        row["error"] = (said - truth) / max(abs(truth), least)
    row["in_bar"] = None if row["predicted_low"] is None else row["predicted_low"] <= truth <= row["predicted_high"]

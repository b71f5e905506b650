"""Holds `unfrag blame --wakes` against a trace of the scheduler alone: who woke kswapd and kcompactd, and how long they ran for it.

The trace has `sched_waking` of the daemons, in the task that wakes, and `sched_switch` to and from them. What a timer's interrupt wakes goes
on with what it did (kswapd's nap), or is nobody's (kcompactd's own timer). What kswapd wakes is that of whoever woke kswapd.
"""

import collections
import json
import re
import sys

LINE = re.compile(r"\s*(.*)-(\d+)\s+\[(\d+)\]\s+(\S+)\s+([\d.]+): (sched_\w+): (.*)")
NOBODY = "(nobody)"
# The recorder's own tasks, as the answer calls them.
RECORDER = {name: "(the recorder)" for name in ("unfrag", "spooler", "starter", "signals")}


def truth(lines):
    """Seconds of both daemons by the program that woke them."""
    owner, since = {}, {}
    by = {"kswapd": collections.Counter(), "kcompactd": collections.Counter()}
    for line in lines:
        found = LINE.match(line)
        if not found:
            continue
        comm, _, _, flags, at, event, rest = found.groups()
        comm = RECORDER.get(comm, comm)
        at = float(at)
        fields = dict(re.findall(r"(\w+)=(.*?)(?= \w+=| ==>|$)", rest))
        if event == "sched_waking":
            daemon = fields["comm"]
            is_interrupt = flags[2] in "hsHzZ"
            if daemon.startswith("kcompactd"):
                owner[daemon] = NOBODY if is_interrupt else owner.get("kswapd0", NOBODY) if comm.startswith("kswapd") else comm
            elif not is_interrupt:
                owner[daemon] = comm
            continue
        for end, name in (("prev", fields["prev_comm"]), ("next", fields["next_comm"])):
            kind = next((k for k in by if name.startswith(k)), None)
            if kind is None:
                continue
            if end == "next":
                since[name] = at
            elif name in since:
                by[kind][owner.get(name, NOBODY)] += at - since.pop(name)
    return by


def main(directory):
    with open(f"{directory}/trace", errors="replace") as trace:
        by = truth(trace)
    with open(f"{directory}/wakes.json") as answer:
        said = json.load(answer)
    good = True
    for kind in ("kswapd", "kcompactd"):
        real, told = sum(by[kind].values()), said[kind]["seconds"]
        print(f"{kind}: {told:.3f} s on a CPU said ({said[kind]['measure']}), {real:.3f} s by the scheduler")
        good &= said[kind]["measure"] == "on_cpu" and abs(told - real) <= 0.1 * real
    both = by["kswapd"] + by["kcompactd"]
    whole = sum(both.values())
    shares = collections.Counter()
    for row in said["callers"]:
        for program in row["programs"]:
            shares[program["name"]] += row["daemon_share"] * program["share"]
    for program, seconds in both.most_common(8):
        real = seconds / whole
        print(f"  {program:16} {100 * shares[program]:6.2f} % said, {100 * real:6.2f} % by the scheduler")
    first = said["callers"][0]
    rings = sum(row["daemon_share"] for row in said["callers"] if "packet_set_ring" in " ".join(row["functions"] or []) or "alloc_pg_vec" in " ".join(row["functions"] or []))
    real = both["ringer"] / whole
    print(f"first: {first['programs'][0]['name']} by {first['functions']}, order {first['order']}, may fail {first['may_fail']}")
    print(f"rings of packets: {100 * rings:.2f} % said, {100 * real:.2f} % of ringer by the scheduler")
    good &= first["programs"][0]["name"] == "ringer" and first["order"] == 10 and abs(rings - real) <= 0.1 * real
    print("AS IT SHOULD BE" if good else "NOT AS IT SHOULD BE")
    return 0 if good else 1


sys.exit(main(sys.argv[1]))

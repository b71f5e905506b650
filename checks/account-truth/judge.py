"""Judges what a guest printed: sums, leaks within 1 %, and the forecast of MADV_COLLAPSE within 2 %."""

import json
import sys

answers, facts, name, lines = {}, {}, None, []
for line in open(sys.argv[1], errors="replace"):
    line = line.rstrip("\r\n")
    if line.startswith("ANSWER "):
        name, lines = line[7:], []
    elif line == "ANSWERED":
        answers[name] = json.loads("\n".join(lines))
        name = None
    elif name:
        lines.append(line)
    elif line.split(" ")[0] in ("PRESENT", "HUGE", "KERNEL", "NOTHELD"):
        word, _, value = line.partition(" ")
        facts[word] = value

mib, bad = int(sys.argv[2]), []
print(f"Linux {facts['KERNEL']}")


def uses(answer):
    return {u["use"]: u["frames"] for u in answer["uses"]}


for name, answer in answers.items():
    if "uses" not in answer:
        continue
    total = sum(uses(answer).values())
    print(f"{name}: {total} frames of {facts['PRESENT']}, in no counter {answer['in_no_counter']['likely']}")
    if not total == answer["exist"] == int(facts["PRESENT"]):
        bad.append(f"{name}: the uses add up to {total}")
if "NOTHELD" in facts:
    bad.append(f"not held: {facts['NOTHELD']}")
for kind in ("pipe", "packet", "memfd", "mapped"):
    before, after = answers[f"{kind} before"], answers[f"{kind} after"]
    if kind in ("pipe", "packet"):
        grown = after["in_no_counter"]["likely"] - before["in_no_counter"]["likely"]
    else:
        grown = uses(after)["shmem"] - uses(before)["shmem"]
    held = mib << 8
    print(f"{kind}: {grown} frames found of {held} ({100 * grown / held:.2f} %)")
    if abs(grown - held) * 100 > held:
        bad.append(f"{kind}: {grown} of {held}")
# Ranges of one touched page and more: five of six.
forecast = sum(
    m["collapse"]["huge_after"] or 0
    for m in answers["place before"]["processes"][0]["mappings"]
    if m["bytes"] >= 96 << 20
)
huge = int(facts["HUGE"])
print(f"place: {forecast} huge pages forecast, {huge} in smaps afterwards")
if abs(forecast - huge) * 50 > forecast or not forecast:
    bad.append(f"place: {forecast} forecast, {huge} made")
for what in bad:
    print(f"WRONG {what}")
sys.exit(bool(bad))

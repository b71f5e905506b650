"""Asks `unfrag replay`, and keeps each answer until the program changes."""

import hashlib
import json
import os
import subprocess


class Refused(Exception):
    """A question that was not answered, and why."""


class Asking:
    def __init__(self, unfrag, out):
        self.unfrag = unfrag
        with open(unfrag, "rb") as file:
            self.version = hashlib.sha256(file.read()).hexdigest()[:12]
        self.directory = os.path.join(out, "answers")
        os.makedirs(self.directory, exist_ok=True)

    def replay(self, recording, flags):
        """The answer, as JSON; raises Refused where there is none, and where the model broke down."""
        answer = self.answer(recording, flags)
        broke = answer["kernels"][0].get("broke_down")
        if broke:
            raise Refused("the model broke down: " + str(broke))
        return answer

    def answer(self, recording, flags):
        """The answer, even that of a model that broke down: what it says of the recorded host holds."""
        key = hashlib.sha256("\0".join([self.version, os.path.basename(recording)] + flags).encode()).hexdigest()[:20]
        path = os.path.join(self.directory, key + ".json")
        if not os.path.exists(path):
            done = subprocess.run([self.unfrag, "replay", recording, "--json"] + flags, capture_output=True, text=True)
            kept = {"flags": flags, "recording": os.path.basename(recording)}
            if not done.stdout.startswith("{"):
                kept["refused"] = " ".join(done.stderr.split())[:400]
            else:
                kept["answer"] = slim(json.loads(done.stdout))
            with open(path + ".part", "w") as file:
                json.dump(kept, file)
            os.rename(path + ".part", path)
        with open(path) as file:
            kept = json.load(file)
        if "refused" in kept:
            raise Refused(kept["refused"])
        return kept["answer"]


def slim(answer):
    """What is compared of an answer: its map and its errors by snapshot are most of the bytes."""
    for kernel in answer["kernels"]:
        kernel.pop("block_map", None)
        if kernel.get("accuracy"):
            kernel["accuracy"].pop("by_snapshot", None)
        if kernel.get("accuracy_from_counts"):
            kernel["accuracy_from_counts"].pop("by_snapshot", None)
    return answer


def flags_for(recorded, asked):
    """The flags that ask a recording for what another run had.

    A value that a load sets in the middle of its work is asked for from then on: where the recorded host did not change
    it, its time says so.
    """
    flags = []
    if recorded.kernel != asked.kernel:
        flags += ["--kernel", asked.kernel]
    names = sorted(set(recorded.asked) | set(asked.asked))
    # What distributions set otherwise for each kernel belongs to the question.
    names += [n for n in ("lru_gen/enabled",) if n not in names and recorded.kernel != asked.kernel]
    for name in names:
        before, value = recorded.setting(name), asked.setting(name)
        if value is None or before == value:
            continue
        at = ""
        in_its_midst = asked.setting(name, "settings") != value and recorded.setting(name, "settings") == before
        if in_its_midst and recorded.has_phase("fragmented"):
            at = "@%.1f" % recorded.since_first_event("fragmented")
        flags += ["--set", "%s=%s%s" % (name.replace("thp/", "transparent_hugepage/"), value, at)]
    return flags

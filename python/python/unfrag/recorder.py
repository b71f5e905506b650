"""The recorder's process: ``python -m unfrag.recorder`` records, ``python -m unfrag.recorder --guard`` stands by it.

Invariant: whatever becomes of the caller, the recorder and its guardian remove the tracer's instance and make the file.
"""

from __future__ import annotations

import json
import os
import signal
import subprocess
import sys
import tempfile
import warnings
from typing import Any

from . import _unfrag
from .errors import ForbiddenError, MissingFileError, UnfragError

_ERRORS = {e.__name__: e for e in (UnfragError, ForbiddenError, MissingFileError)}


def run(wanted: dict[str, Any]) -> None:
    """Records in a process of its own.

    Raises:
        UnfragError: what that process says.
    """
    if not hasattr(_unfrag, "record"):
        raise UnfragError("only a Linux host can be recorded")
    with tempfile.TemporaryDirectory(prefix="unfrag-") as folder:
        said = os.path.join(folder, "said.json")
        words = [sys.executable, "-m", "unfrag.recorder", json.dumps(wanted), said]
        child = subprocess.Popen(words, stdin=subprocess.DEVNULL)
        while True:
            try:
                child.wait()
                break
            except KeyboardInterrupt:
                # A terminal tells both; a notebook this process alone. It ends with the recording made.
                child.send_signal(signal.SIGINT)
        if not os.path.exists(said):
            raise UnfragError(f"the recorder ended with status {child.returncode} and said nothing")
        with open(said, encoding="utf-8") as file:
            answer = json.load(file)
    if "error" in answer:
        raise _ERRORS[answer["kind"]](answer["error"])
    if answer["cut_short"]:
        warnings.warn(f"the recording ended early: {answer['cut_short']}", stacklevel=3)
    if answer["lost_events"]:
        warnings.warn(f"{answer['lost_events']} events were lost: give a larger buffer=", stacklevel=3)


def _record(wanted: str, said: str) -> None:
    # The recorder has signals of its own; Python's would come beside them.
    signal.signal(signal.SIGINT, signal.SIG_DFL)
    answer: dict[str, Any]
    try:
        guardian = [sys.executable, "-m", "unfrag.recorder", "--guard"]
        status, lost, cut_short, untaken = _unfrag.record(json.loads(wanted), guardian)
        answer = {"status": status, "lost_events": lost, "cut_short": cut_short, "not_taken": untaken}
    except UnfragError as e:
        answer = {"error": str(e), "kind": type(e).__name__}
    with open(said, "w", encoding="utf-8") as file:
        json.dump(answer, file)


def main(words: list[str]) -> None:
    """Does what the words say."""
    if words[:1] == ["--guard"]:
        _unfrag.guard(*words[-3:])
    else:
        _record(*words)


if __name__ == "__main__":
    main(sys.argv[1:])

"""The questions, each a function."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import Any

from . import _unfrag
from .answers import Answer
from .progress import Progress, teller

Path = str | os.PathLike[str]


def _settings(settings: Mapping[str, object] | None) -> list[tuple[str, str]]:
    """Sysctls as the command takes them: truth values as 1 and 0."""
    def text(value: object) -> str:
        if isinstance(value, bool):
            return str(int(value))
        if isinstance(value, (list, tuple)):
            return " ".join(map(str, value))
        return str(value)

    return [(name, text(value)) for name, value in (settings or {}).items()]


def replay(
    recording: Path,
    *,
    kernels: Sequence[str] = (),
    settings: Mapping[str, object] | None = None,
    recorded: Mapping[str, object] | None = None,
    memory: int | None = None,
    mode: str = "predict",
    start: str = "auto",
    reclaim: str = "modelled",
    compaction: str | None = None,
    members: int | None = None,
    snapshots: Sequence[Path] = (),
    release: str | None = None,
    any_share: bool = False,
    memory_budget: int = 128 << 20,
    progress: Progress | None = None,
) -> Answer:
    """What would memory have looked like under another kernel or setting?

    Args:
        recording: an .unfrag file, a directory of segments, or a trace with ``snapshots`` beside it.
        kernels: eras such as ``"6.18"``; the recorded one if none is given.
        settings: sysctls to ask for, such as ``{"vm.min_free_kbytes": 65536}``; a value ``"20@61.5"`` holds from 61.5
            seconds after the first event on.
        recorded: sysctls that the recorded host had, where the recording does not show them, in the same form.
        memory: size of memory in bytes, if another than the recorded one.
        mode: ``"predict"``, or ``"observe"`` to check the recording.
        start: ``"auto"``, ``"exact"``, ``"occupancy"``, ``"counts"`` or ``"boot"``.
        reclaim: ``"modelled"`` or ``"given"``.
        compaction: ``"modelled"``, ``"given"`` or ``"none"``; as ``reclaim`` if not given.
        members: replays whose median is the answer, an odd number.
        snapshots: directories or archives of procfs copies, where ``recording`` is a trace.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.
        any_share: replay, too, where little of what the host allocated was recorded.
        memory_budget: bytes for what is made of the events; what exceeds it goes to a temporary file.
        progress: called with operations that are done, and all of them; or a bar such as ``tqdm.tqdm()``.

    Returns:
        The answer: ``recorded`` and, for each of ``kernels``, ``samples`` (a list of moments of zones; pages and blocks
        are counts, indexes are 0 to 1), ``accuracy`` where the recorded kernel is replayed, ``totals``, and ``what_if``:
        what would change, number by number, each with its bar and a ``verdict``, which is ``None`` where nothing can be said.

    Raises:
        UnfragError: the recording cannot be read or replayed.
        ValueError: a choice is none of those named above.
    """
    answer = _unfrag.replay(
        recording, list(kernels), _settings(settings), _settings(recorded), memory, mode, start, reclaim,
        compaction, members, list(snapshots), release, any_share, memory_budget, teller(progress),
    )
    return Answer("replay", answer)


def simulate(
    scenario: Path,
    *,
    kernel: str | None = None,
    settings: Mapping[str, object] | None = None,
    machine: str | None = None,
    seed: int = 1,
    oom_killer: bool = True,
    costs: Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """What would a kernel do under this load? Same scenario, kernel, settings and seed: same answer.

    Args:
        scenario: a scenario file (TOML).
        kernel: an era; that of the scenario if not given, else 6.18.
        settings: sysctls by name.
        machine: a machine of the scenario; its first if not given.
        seed: the seed of every choice, from 0 on.
        oom_killer: whether a process is ended when memory runs out.
        costs: a calibration of the kernel's work; that of a desktop of 2009 if not given.
        progress: called with virtual milliseconds that have passed, and the limit; or a bar.

    Returns:
        The answer: ``tasks``, ``counters`` (names of /proc/vmstat), ``samples`` over virtual time (``at_ns`` in
        nanoseconds, memory in pages), and more.

    Raises:
        UnfragError: the scenario is wrong, or the kernel has no such setting.
    """
    answer = _unfrag.simulate(
        scenario, kernel, _settings(settings), machine, seed, oom_killer, costs, teller(progress)
    )
    return Answer("simulate", answer)


def experiment(
    name: str,
    *,
    kernels: Sequence[str] = (),
    machines: Sequence[str] = (),
    runs: int | None = None,
    seed: int = 1,
    costs: Path | None = None,
    progress: Progress | None = None,
) -> Answer:
    """Runs a published experiment again on the simulated machine, on all CPUs.

    Args:
        name: such as ``"highorder"`` or ``"thp-burst"``; a wrong one is answered with all names.
        kernels, machines: those of the experiment, or all.
        runs: runs for each kernel and machine.
        seed: the first seed.
        costs: a calibration of the kernel's work.
        progress: called with runs that are done, and all of them; or a bar.

    Raises:
        UnfragError: the experiment has no such kernel or machine.
    """
    answer = _unfrag.experiment(name, list(kernels), list(machines), runs, seed, costs, teller(progress))
    return Answer("experiment", answer)


def doctor(path: Path = "/proc", *, snapshot: str | None = None, seconds: float = 1.0) -> Answer:
    """What is wrong with a host's memory, and what to change?

    Args:
        path: this host's ``/proc``, a copy of procfs, an archive of such, or a recording.
        snapshot: of several snapshots, this one instead of the last.
        seconds: between two readings of this host's counters, for the rates; 0 for one reading.

    Returns:
        The diagnosis: ``zones``, ``huge_pages``, ``atomic``, ``advice`` and more.

    Raises:
        UnfragError: there is nothing to examine, or it is not what a kernel writes.
    """
    return Answer("doctor", _unfrag.doctor(path, snapshot, seconds))


def inspect(path: Path = "/proc", *, snapshot: str | None = None) -> Answer:
    """How fragmented is memory, at one moment or at each snapshot?

    Returns:
        The answer: ``snapshots``, each with ``zones``: free blocks by order (counts), ``unusable_index`` (0 to 1) and
        ``fragmentation_index`` (-1 or 0 to 1) by order, pageblocks by type.

    Raises:
        UnfragError: there is nothing to inspect.
    """
    return Answer("inspect", _unfrag.inspect(path, snapshot))


def explain(log: str | os.PathLike[str]) -> Answer:
    """Why did allocations of a kernel log fail?

    Args:
        log: the text of a log, or a path object that leads to one.

    Returns:
        The answer: ``reports`` (none where the log has no failure), each with a ``verdict``, ``zones`` and ``advice``.

    Raises:
        UnfragError: the log cannot be read.
        ValueError: the text is the name of a file.
    """
    if isinstance(log, str) and "\n" not in log and os.path.isfile(log):
        raise ValueError(f"{log!r} is a file, not the text of a log: give pathlib.Path({log!r})")
    return Answer("explain", _unfrag.explain(os.fspath(log), not isinstance(log, str)))

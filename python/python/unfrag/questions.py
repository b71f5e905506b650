"""The questions, each a function. A recording is a path, or an :class:`unfrag.Recording`."""

from __future__ import annotations

import os
from collections.abc import Mapping, Sequence
from typing import IO, Literal, TypeAlias

from . import _unfrag, given
from .given import Path, When
from .progress import Progress, teller
from .results import (
    Account,
    Blame,
    Diagnosis,
    Experiment,
    Explanation,
    Forecast,
    Frames,
    Inspection,
    Profile,
    Replay,
    Simulation,
    SlabReport,
    Summary,
    Wakes,
)

#: Settings by name; ``None`` is what the kernel computes by itself.
Settings: TypeAlias = Mapping[str, object]
Mode: TypeAlias = Literal["predict", "observe"]
Start: TypeAlias = Literal["auto", "exact", "occupancy", "counts", "boot"]
Reclaim: TypeAlias = Literal["modelled", "given"]
Compaction: TypeAlias = Literal["modelled", "given", "none"]
Means: TypeAlias = Literal["drop", "compact"]
Allocator: TypeAlias = Literal["slab", "slub", "slqb"]
SlabRules: TypeAlias = Literal["modern", "2.6.28"]
FirstAttempt: TypeAlias = Literal["historic", "if-plenty-free", "no-wait", "no-wake", "first-pass-only"]


def replay(
    recording: Path,
    *,
    kernels: str | Sequence[str] = (),
    settings: Settings | None = None,
    recorded: Settings | None = None,
    memory: int | None = None,
    mode: Mode = "predict",
    start: Start = "auto",
    reclaim: Reclaim = "modelled",
    compaction: Compaction | None = None,
    members: int | None = None,
    snapshots: Path | Sequence[Path] = (),
    release: str | None = None,
    any_share: bool = False,
    memory_budget: int = 128 << 20,
    since: When | None = None,
    until: When | None = None,
    progress: Progress | None = None,
) -> Replay:
    """What would memory have looked like under another kernel or setting?

    Args:
        recording: an .unfrag file, a directory of segments, a trace with ``snapshots`` beside it, or a ``Recording``.
        kernels: eras such as ``"6.18"``, one or several; the recorded one if none is given.
        settings: sysctls to ask for, such as ``{"vm.min_free_kbytes": 65536}``; a value ``"20@61.5"`` holds from 61.5
            seconds after the first event on; ``None`` is what the kernel computes.
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
        since, until: the window that is asked about: dates, or times after the recording's beginning (a ``timedelta``, or
            seconds).
        progress: called with operations that are done, and all of them; or a bar such as ``tqdm.tqdm()``.

    Returns:
        The answer: ``answer`` and ``trust`` in sentences, ``recorded`` and, for each of ``kernels``, ``samples`` (a list of
        moments of zones; pages and blocks are counts, indexes are 0 to 1), ``accuracy`` where the recorded kernel is
        replayed, ``totals``, and ``what_if``: what would change, number by number, each with its bar and a ``verdict``,
        which is ``None`` where nothing can be said.

    Raises:
        UnfragError: the recording cannot be read or replayed; a ``FileNotFoundError`` too where it is not there.
        ValueError: a choice is none of those named above.
    """
    where, beside, of = given.recording(recording, snapshots, release)
    answer = _unfrag.replay(
        where,
        given.words("kernels", kernels),
        given.settings("settings", settings),
        given.settings("recorded", recorded),
        given.whole_or_none("memory", memory),
        mode,
        start,
        reclaim,
        compaction,
        given.whole_or_none("members", members, most=given.U32),
        beside,
        of,
        any_share,
        given.whole("memory_budget", memory_budget),
        given.window(since, until),
        teller(progress),
    )
    return Replay._of(answer)


def simulate(
    scenario: Path,
    *,
    kernel: str | None = None,
    settings: Settings | None = None,
    machine: str | None = None,
    seed: int = 1,
    oom_killer: bool = True,
    costs: Path | None = None,
    progress: Progress | None = None,
) -> Simulation:
    """What would a kernel do under this load? Same scenario, kernel, settings and seed: same answer.

    Args:
        scenario: a scenario file (TOML).
        kernel: an era; that of the scenario if not given, else 6.18.
        settings: sysctls by name; ``None`` is what the kernel computes.
        machine: a machine of the scenario; its first if not given.
        seed: the seed of every choice, from 0 on.
        oom_killer: whether a process is ended when memory runs out.
        costs: a calibration of the kernel's work; that of a desktop of 2009 if not given.
        progress: called with virtual milliseconds that have passed, and the limit, and at the end with the limit twice; or
            a bar.

    Returns:
        The answer: ``tasks``, ``counters`` (names of /proc/vmstat), ``samples`` over virtual time (``at_ns`` in
        nanoseconds, memory in pages), and more.

    Raises:
        UnfragError: the scenario is wrong, or the kernel has no such setting; a ``FileNotFoundError`` too where it is not
            there.
    """
    answer = _unfrag.simulate(
        given.path("scenario", scenario),
        given.text_or_none("kernel", kernel),
        given.settings("settings", settings),
        given.text_or_none("machine", machine),
        given.whole("seed", seed),
        oom_killer,
        None if costs is None else given.path("costs", costs),
        teller(progress),
    )
    return Simulation._of(answer)


def experiment(
    name: str,
    *,
    kernels: str | Sequence[str] = (),
    machines: str | Sequence[str] = (),
    runs: int | None = None,
    seed: int = 1,
    costs: Path | None = None,
    progress: Progress | None = None,
) -> Experiment:
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
    answer = _unfrag.experiment(
        name,
        given.words("kernels", kernels),
        given.words("machines", machines),
        given.whole_or_none("runs", runs, least=1, most=given.U32),
        given.whole("seed", seed),
        None if costs is None else given.path("costs", costs),
        teller(progress),
    )
    return Experiment._of(answer)


def doctor(
    path: Path = "/proc",
    *,
    snapshot: str | None = None,
    seconds: float = 1.0,
    need: str | Sequence[str] = (),
    huge: int | None = None,
    after: Means | Sequence[Means] = (),
    since: When | None = None,
    until: When | None = None,
) -> Diagnosis:
    """What is wrong with a host's memory, and what to change? Can it give what is needed?

    Args:
        path: this host's ``/proc``, a copy of procfs, an archive of such, a recording, or a ``Recording``.
        snapshot: of several snapshots, this one instead of the last.
        seconds: between two readings of this host's counters, for the rates; 0 for one reading.
        need: pieces of memory, such as ``"200x32M"`` or ``["512x2M@node1", "20x1G"]``; several are judged together.
        huge: so many huge pages, as a need as well.
        after: what you are willing to do before you take it: ``"drop"`` caches, ``"compact"`` memory, or both.
        since, until: the window of a recording whose last moment is examined; as of :func:`replay`.

    Returns:
        The diagnosis: ``zones``, ``huge_pages``, ``atomic``, ``advice`` and more; ``needs`` says whether what is needed can
        be had: ``needs.verdict`` is ``"yes"``, ``"no"`` or ``"unknown"``.

    Raises:
        UnfragError: there is nothing to examine, or it is not what a kernel writes.
        ValueError: a need is none.
    """
    answer = _unfrag.doctor(
        given.path("path", path),
        given.text_or_none("snapshot", snapshot),
        seconds,
        given.words("need", need),
        given.whole_or_none("huge", huge, least=1, most=1 << 40),
        given.sequence("after", after, ("drop", "compact")),
        given.window(since, until),
    )
    return Diagnosis._of(answer)


def account(
    path: Path = "/proc",
    later: Path | None = None,
    *,
    snapshots: str | Sequence[str] = (),
    every: float | None = None,
    page_size: int | None = None,
    since: When | None = None,
    until: When | None = None,
) -> Account:
    """Where is the memory? Every frame that exists, once, by what it is used for, and what no counter of the kernel has.

    Args:
        path: this host's ``/proc`` (page flags need root), a copy of procfs, an archive of such, a recording, or a ``Recording``.
        later: a later look at the same host, to say what grew.
        snapshots: of several snapshots, this one instead of the last with page flags; of two, what grew from the first to
            the second.
        every: look at this host again after so many seconds, and say what grew.
        page_size: bytes in a page, where no file tells it.
        since, until: the window of a recording; as of :func:`replay`.

    Returns:
        The account: ``uses`` adds up to ``exist``, exactly; ``in_no_counter`` is known by its bounds; ``growth`` is there of two
        looks. Amounts are frames of ``page_size`` bytes. ``svg`` is a treemap.

    Raises:
        UnfragError: the input cannot be read, does not tell what memory is used for, or the two are not of one host.
        ValueError: ``every`` or ``page_size`` is none that makes sense.
    """
    answer = _unfrag.account(
        given.path("path", path),
        None if later is None else given.path("later", later),
        given.words("snapshots", snapshots),
        given.seconds_or_none("every", every),
        given.whole_or_none("page_size", page_size),
        given.window(since, until),
    )
    return Account._of(answer)


def frames(of: int | Path, *, proc: Path = "/proc") -> Frames:
    """In how many frames does the memory of a process or a cgroup lie, and what huge pages could be made of it?

    Args:
        of: the number of a process, or a cgroup: its path, or its name below ``/sys/fs/cgroup``.
        proc: where procfs is.

    Returns:
        The answer: ``frames`` of 2 MiB and 1 GiB and how few they could be (``None`` where root is needed), ``runs`` and
        ``folios`` by order, ``collapse``: what ``MADV_COLLAPSE`` would make and copy, and ``resume``: what faults where
        the memory is mapped anew.

    Raises:
        UnfragError: there is no such process or cgroup, or it may not be read.
    """
    is_path = isinstance(of, (str, os.PathLike))
    whose = given.path("of", of) if is_path else given.whole("of", of, least=1, most=given.U32)
    return Frames._of(_unfrag.frames(whose, given.path("proc", proc)))


def forecast(
    path: Path,
    *,
    need: str,
    page_size: int | None = None,
    seed: int = 1,
    since: When | None = None,
    until: When | None = None,
) -> Forecast:
    """How long until a need of large blocks fails, from looks of days?

    Args:
        path: a directory of copies of procfs, each in a directory that is named by its date, an archive of these, a
            directory of segments, a recording, a ``Recording``, or a file of what Prometheus answers to a range query.
        need: so many blocks of one size, such as ``"500x2M"`` or ``"64x2M@node0"``.
        page_size: bytes in a page, where no file tells it.
        seed: the seed of the futures that are made.
        since, until: the window that is looked at; as of :func:`replay`.

    Returns:
        The forecast: ``free`` blocks, and blocks that reclaim and compaction could make ``at_best``, each with ``when``: an
        interval of 80 % in days from the last look, or why it is not known.

    Raises:
        UnfragError: the input cannot be read or has no dates, or its host does not make blocks of that size.
        ValueError: the need is none.
    """
    wanted = given.text_or_none("need", need)
    if wanted is None:
        given.wrong("need", need, "a str")
    answer = _unfrag.forecast(
        given.path("path", path),
        wanted,
        given.whole_or_none("page_size", page_size),
        given.whole("seed", seed),
        given.window(since, until),
    )
    return Forecast._of(answer)


def inspect(
    path: Path = "/proc",
    *,
    snapshot: str | None = None,
    since: When | None = None,
    until: When | None = None,
) -> Inspection:
    """How fragmented is memory, at one moment or at each snapshot?

    Args:
        path: this host's ``/proc``, a copy of procfs, an archive of such, a recording, or a ``Recording``.
        snapshot: of several snapshots, this one alone.
        since, until: the window of a recording; as of :func:`replay`.

    Returns:
        The answer: ``snapshots``, each with ``zones``: free blocks by order (counts), ``unusable_index`` (0 to 1) and
        ``fragmentation_index`` (-1 or 0 to 1) by order, pageblocks by type.

    Raises:
        UnfragError: there is nothing to inspect.
    """
    answer = _unfrag.inspect(
        given.path("path", path), given.text_or_none("snapshot", snapshot), given.window(since, until)
    )
    return Inspection._of(answer)


def explain(log: str | bytes | os.PathLike[str] | IO[str] | IO[bytes]) -> Explanation:
    """Why did allocations of a kernel log fail?

    Args:
        log: the text of a log (``str`` or ``bytes``), an open file, or a path object (``pathlib.Path``) that leads to one.

    Returns:
        The answer: ``reports`` (none where the log has no failure), each with a ``verdict``, ``zones`` and ``advice``.

    Raises:
        UnfragError: the log cannot be read; a ``FileNotFoundError`` too where it is not there.
        ValueError: a ``str`` that is no text of a log, but the name of a file.
    """
    answer = Explanation._of(_unfrag.explain(given.log(log)))
    if not answer.reports and given.could_be_a_path(log):
        raise ValueError(f"{log!r:.200} is one line without a failure: for a file of this name give pathlib.Path of it")
    return answer


def summary(
    recording: Path, *, release: str | None = None, since: When | None = None, until: When | None = None
) -> Summary:
    """What does a trace alone tell, without snapshots: who asks for what, what failed, what was done about it?

    Args:
        recording: an .unfrag file, a directory of segments, a trace, or a ``Recording``.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.
        since, until: the window that is asked about; as of :func:`replay`.

    Returns:
        The answer: ``requests`` by process, order and kind, ``fallbacks``, ``compaction``, ``kswapd``, ``direct_reclaim``;
        ``None`` where the trace does not hold what tells it, and ``not_recorded`` says what that is.

    Raises:
        UnfragError: the trace cannot be read.
    """
    where, _, of = given.recording(recording, release=release)
    return Summary._of(_unfrag.summary(where, of, given.window(since, until)))


def blame(
    recording: Path, *, release: str | None = None, since: When | None = None, until: When | None = None
) -> Blame:
    """Who holds the kernel memory that breaks up huge pages, by program and purpose, over time?

    Args:
        recording: an .unfrag file, a directory of segments, a trace, or a ``Recording``.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.
        since, until: the window that is asked about; as of :func:`replay`.

    Returns:
        The answer: ``answer`` in a sentence, ``holders`` with their share of ``spoilt_blocks``, and ``intervals`` over time.

    Raises:
        UnfragError: the recording cannot be read, or has no events of pages.
    """
    where, _, of = given.recording(recording, release=release)
    return Blame._of(_unfrag.blame(where, of, given.window(since, until)))


def wakes(
    recording: Path, *, release: str | None = None, since: When | None = None, until: When | None = None
) -> Wakes:
    """Who wakes kswapd and kcompactd, who compacts, and how long does that take?

    Args:
        recording: an .unfrag file, a directory of segments, a trace, or a ``Recording``; with kernel stacks
            (``unfrag record --stacks``) callers are drivers and subsystems, else programs.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.
        since, until: the window that is asked about; as of :func:`replay`.

    Returns:
        The answer: ``answer`` in a sentence, ``callers`` with their ``share`` of the time, and what ``kswapd``, ``kcompactd``
        and ``direct`` compaction did: ``None`` where the recording does not tell. ``svg`` is a flame graph.

    Raises:
        UnfragError: the recording cannot be read, or has no events that tell it.
    """
    where, _, of = given.recording(recording, release=release)
    return Wakes._of(_unfrag.wakes(where, of, given.window(since, until)))


def profile(
    recording: Path, *, release: str | None = None, since: When | None = None, until: When | None = None
) -> Profile:
    """What does a recorded command do to memory: pages by use and life, files, slab objects, program by program?

    Args:
        recording: what ``unfrag.record(command, processes=True)`` made: an .unfrag file, or a ``Recording``.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.
        since, until: the window that is asked about; as of :func:`replay`.

    Returns:
        The profile; ``to_toml()`` is a file that scenarios of the simulated machine take programs from.

    Raises:
        UnfragError: the recording cannot be read, or has no events of pages.
    """
    where, _, of = given.recording(recording, release=release)
    return Profile._of(_unfrag.profile(where, of, given.window(since, until)))


def slab(
    recording: Path,
    *,
    allocators: Allocator | Sequence[Allocator] = ("slab", "slub", "slqb"),
    rules: SlabRules = "modern",
    first_attempt: FirstAttempt | None = None,
    slub_max_order: int | None = None,
    slub_min_order: int | None = None,
    slub_min_objects: int | None = None,
    cpus: int | None = None,
    memory: int = 1 << 30,
    release: str | None = None,
    since: When | None = None,
    until: When | None = None,
) -> SlabReport:
    """What would SLAB, SLUB and SLQB have held for the allocations of a trace: pages, waste and orders side by side?

    Args:
        recording: a recording with slab events: an .unfrag file, a directory of segments, a trace, or a ``Recording``.
        allocators: which of them, one or several.
        rules: those of 6.x, or those of 2.6.28.
        first_attempt: how SLUB asks for more than the least order, if not as the rules say.
        slub_max_order, slub_min_order, slub_min_objects: as SLUB's parameters; by its rules if not given.
        cpus: CPUs by which orders and limits are chosen; the recorded ones if not given.
        memory: size of memory in bytes.
        release: ``uname -r`` of the recorded kernel, where the recording does not say.
        since, until: the window that is asked about; as of :func:`replay`.

    Returns:
        The answer: ``allocators``, each with what it held at its ``peak`` and at the ``end``, and its ``caches``.

    Raises:
        UnfragError: the trace has no slab events, or cannot be read.
        ValueError: a choice is none of those named above.
    """
    where, _, of = given.recording(recording, release=release)
    answer = _unfrag.slab(
        where,
        given.sequence("allocators", allocators, ("slab", "slub", "slqb"), least=1),
        rules,
        first_attempt,
        given.whole_or_none("slub_max_order", slub_max_order, most=10),
        given.whole_or_none("slub_min_order", slub_min_order, most=10),
        given.whole_or_none("slub_min_objects", slub_min_objects, most=given.U32),
        given.whole_or_none("cpus", cpus, least=1, most=1024),
        given.whole("memory", memory),
        of,
        given.window(since, until),
    )
    return SlabReport._of(answer)

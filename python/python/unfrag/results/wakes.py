"""What wakes answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Part
from .window import Window

#: What is known of who asked: stacks with names of functions, stacks of bare addresses, or programs alone.
Stacks = Literal["none", "names", "addresses"]

#: How a time is measured: on a CPU, by switches of tasks; awake, or from the beginning of a run to its end, what was waited for
#: included.
Measure = Literal["on_cpu", "awake", "begin_to_end"]

#: When a request may fail: ``no`` (it is tried until it succeeds), ``after_all`` attempts, ``soon``, or ``at_once``, as it
#: only wakes the daemons.
MayFail = Literal["no", "after_all", "soon", "at_once"]


class Worked(Part):
    """What was done of a work."""

    __slots__ = ()
    measure: Measure
    """How it is measured."""
    seconds: float
    """Seconds in all."""
    not_recorded_seconds: float
    """Of these, those of which the wake-up was not recorded."""
    own_timer_seconds: float
    """Of these, those of a daemon's own timer."""
    unsure_seconds: float
    """Seconds at the beginning in which it may have been at work as well: nothing tells."""
    at_work_at_end: bool
    """Whether it is still at work at the end."""
    count: int
    """How often it was caused."""


class Program(Part):
    """A program that asked."""

    __slots__ = ()
    name: str
    """Its name."""
    share: float
    """Its share of the row, from 0 to 1: of its time or, where that is none, of its wake-ups and requests."""


class Caller(Part):
    """Who asked."""

    __slots__ = ()
    functions: list[str] | None
    """Functions that asked, the innermost first; ``None`` without a stack."""
    module: str | None
    """The innermost module in the stack."""
    programs: list[Program]
    """Programs on whose behalf, the largest share first."""
    order: int | None
    """Order that was asked for; -1 for compaction of all memory, ``None`` where the event does not say."""
    flags: str | None
    """Flags of the request; ``None`` where the event does not say."""
    may_fail: MayFail | None
    """Whether the request may fail; ``None`` where that is not known, and where it is no request."""
    is_no_request: bool
    """Whether it is no request, but the kernel's own affair."""
    share: float | None
    """Share of all time that is known, from 0 to 1; ``None`` where none is."""
    wakes_share: float | None
    """Share of all wake-ups of kswapd and kcompactd, from 0 to 1; ``None`` where there are none."""
    daemon_share: float | None
    """Share of kswapd's and kcompactd's time, from 0 to 1; ``None`` where that is not known."""
    kswapd_seconds: float | None
    """Seconds of kswapd."""
    kcompactd_seconds: float | None
    """Seconds of kcompactd."""
    direct_seconds: float | None
    """Seconds of its own compaction."""
    kswapd_wakes: int | None
    """Wake-ups of kswapd; ``None`` where they were not recorded."""
    kcompactd_wakes: int | None
    """Wake-ups of kcompactd, those through kswapd included."""
    direct_runs: int | None
    """Runs of compaction of its own."""
    requests: int | None
    """Requests of order 3 and more."""
    failed: int | None
    """Those of them that failed."""


class Wakes(Answer):
    """Who caused what kswapd, kcompactd and compaction did."""

    __slots__ = ()
    _question = "wakes"
    _absent = {"window": None}
    window: Window | None
    """The part of the recording that it is about, where one was chosen."""
    source: str
    """Name of the recording."""
    kernel_release: str
    """Release of the recorded kernel."""
    events: int
    """Events."""
    lost_events: int
    """Events that the recorder lost, at least."""
    seconds: float
    """Seconds of the window, or from the first event to the last."""
    of_command: bool
    """Whether only a command was recorded: wake-ups by others are not in it."""
    stacks: Stacks
    """What is known of who asked."""
    kswapd: Worked | None
    """What kswapd did; ``None`` where the recording does not tell."""
    kcompactd: Worked | None
    """What kcompactd did."""
    direct: Worked | None
    """What tasks compacted themselves."""
    kswapd_wakes: int | None
    """Wake-ups of kswapd, also where it is not told what it did; ``None`` where they were not recorded."""
    kcompactd_wakes: int | None
    """Wake-ups of kcompactd."""
    answer: str
    """Who it was, in a sentence."""
    callers: list[Caller]
    """Who asked, by time; who took none stands last, by requests."""

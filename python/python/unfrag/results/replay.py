"""What a replay answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Named, Part, Setting
from .window import Window


class Sizes(Part):
    """Sizes of a host's pages and blocks."""

    __slots__ = ()
    page_bytes: int
    """Bytes in a page."""
    orders: int
    """Number of orders."""
    pageblock_order: int
    """Order of a pageblock."""
    huge_order: int | None
    """Order of a huge page; ``None`` where no block is as large."""


class Course(Part):
    """A number over time."""

    __slots__ = ()
    begin: int
    """At the first snapshot."""
    end: int
    """At the last snapshot."""
    change: int
    """``end - begin``."""
    mean: int
    """Mean of all snapshots."""


class Free(Part):
    """Whose course it is, and of what."""

    __slots__ = ()
    pages: Course
    """Free pages."""
    huge_pages: Course
    """Free blocks of the size of a huge page (a larger block counts as several)."""


#: A grade.
Grade = Literal["none", "low", "fair", "high"]

#: What can be said under one kernel.
Says = Literal[
    "follows", "does_not_follow", "not_measured", "differs", "same", "cannot_say", "not_comparable", "no_answer"
]


class KernelAnswer(Part):
    """The answer under one kernel."""

    __slots__ = ()
    kernel: str
    """Preset name, such as ``6.1``."""
    says: Says
    """What can be said."""
    sentences: list[str]
    """In sentences; the first is the answer."""
    rest: list[str]
    """What else is about the same, and of what nothing can be said."""
    free: Free | None
    """Free memory over the whole replay; ``None`` where there are no samples."""
    failed: int
    """Allocations that found no page."""


class WhatIsSaid(Part):
    """The answer."""

    __slots__ = ()
    recorded: Free | None
    """Free memory of the recorded host over the whole time; ``None`` if no snapshot shows it."""
    cannot_say: str | None
    """Why this recording cannot say what another kernel or setting would do to free memory; ``None`` where it can, and
    where that was not asked."""
    kernels: list[KernelAnswer]
    """For each kernel; those asked for beside the recorded one come first."""
    between: list[str]
    """Where several were asked for beside the recorded one: how they differ from each other."""


#: A kind of question.
Question = Literal["free_memory", "fragmentation", "waits"]


class Trusted(Part):
    """How far a kind of question can be trusted."""

    __slots__ = ()
    question: Question
    """Which."""
    grade: Grade | None
    """The grade; ``None`` if nothing was measured."""
    decided_by: str | None
    """What decided it, such as ``the amount of free memory``; ``None`` if nothing was measured."""
    error: float | None
    """The error that decided it, a share; ``None`` if that is no error."""
    skill: float | None
    """How much of the error of a forecaster who only counts pages the model avoids, where that is known."""
    because: str
    """Why it has this grade, or none."""


class Trust(Part):
    """How far the answer can be trusted."""

    __slots__ = ()
    model: Grade | None
    """How well the recorded kernel's model follows the host in free memory and huge pages, whatever else was asked;
    ``None`` if that was not measured."""
    questions: list[Trusted]
    """For each kind of question."""
    sentences: list[str]
    """What holds for all, a sentence each."""


#: How hard memory was pressed, on the recorded host or in the model.
Pressure = Literal["none", "compaction", "reclaim"]

#: What is asked.
Asked = Literal["own", "setting", "kernel"]

#: Where the replay begins.
Begins = Literal["exact", "occupancy", "counts", "anew"]


class Class(Part):
    """A class of questions."""

    __slots__ = ()
    pressure: Pressure
    """How hard memory was pressed."""
    asked: Asked
    """What is asked."""
    start: Begins
    """Where the replay begins."""


#: What can be said of a change.
Verdict = Literal["more", "less", "same"]


class Change(Part):
    """A number of a what-if."""

    __slots__ = ()
    name: str
    """Its name, such as ``allocstall`` or ``free_pages_end``."""
    recorded: float | None
    """What the recorded host had; ``None`` if it does not show it."""
    own: float | None
    """What the recorded kernel's model makes of it; ``None`` where that has no answer."""
    asked: float
    """What the model of the kernel that is asked for makes of it."""
    predicted: float
    """The prediction for a real host: what the recorded one had, changed as the model changes."""
    bar: tuple[float, float] | None
    """In four of five cases the real number lies between these; ``None`` where nothing was measured."""
    instead_of: float | None
    """What it is compared with: what the recorded host had, else what its model makes of it; ``None`` without
    either."""
    verdict: Verdict | None
    """What can be said; ``None`` where nothing can."""
    reason: str | None
    """Why nothing can be said."""


class WhatIf(Part):
    """What another kernel or setting would change."""

    __slots__ = ()
    class_: Class
    """Which questions this one is like."""
    comparisons: int
    """Comparisons of that class with real kernels; 0: not measured, and the bars are those of wider classes."""
    loads: list[str]
    """Loads of these comparisons."""
    changes: list[Change]
    """Number by number."""


class ListOrder(Part):
    """The free blocks of a start, and those of them whose place on the lists the trace shows."""

    __slots__ = ()
    blocks: int
    """Free blocks on buddy lists."""
    pages: int
    """Their pages."""
    blocks_shown: int
    """Blocks in the order in which the trace first touches them; the others follow by address."""
    pages_shown: int
    """Their pages."""
    refilled_pages: int
    """Pages that refills before the start had moved to per-CPU lists, as the changes of CPU show."""


class Spread(Part):
    """The least and the largest that any replay of an ensemble came to."""

    __slots__ = ()
    free_pages: tuple[int, int]
    """Pages on the buddy lists."""
    free_huge_blocks: tuple[int, int]
    """Free blocks of the size of a huge page."""
    unusable_index: Named[tuple[float, float]]
    """Unusable free space index at the same orders as of a sample."""


class ZoneSample(Part):
    """State of one zone at one moment."""

    __slots__ = ()
    node: int
    """Node id."""
    zone: str
    """Zone name, such as ``DMA32``."""
    managed_pages: int
    """Pages that the zone manages."""
    free_pages: int
    """Pages on the buddy lists."""
    pcp_pages: int | None
    """Pages on per-CPU lists; ``None`` where the source does not show them."""
    free_blocks: list[int]
    """Free blocks of each order of the host."""
    unusable_index: Named[float]
    """Unusable free space index, 0 to 1, at order "3" and at that of a huge page ("9" where a page has 4 KiB). The
    kernel, ``inspect`` and the doctor cut the same number off after thousandths."""
    free_huge_blocks: int
    """Free blocks of the size of a huge page, 2 MiB where a page has 4 KiB (a larger block counts as several)."""
    pageblocks: Named[int]
    """Pageblocks of each type, by name."""
    mixed_pageblocks: int | None
    """Pageblocks that hold frames of another type than their own; ``None`` where it is not known."""
    spread: Spread | None
    """How far the replays of an ensemble are apart; ``None`` for a single replay and for the recording."""


class Sample(Part):
    """State of memory at one moment."""

    __slots__ = ()
    name: str
    """Name of the snapshot, such as ``s0004``."""
    seconds: float
    """Seconds since the first event."""
    zones: list[ZoneSample]
    """One for each populated zone."""


class Measure(Part):
    """One error measure over all snapshots."""

    __slots__ = ()
    median: float
    """Median over snapshots."""
    p90: float
    """90th percentile."""
    max: float
    """Largest."""
    skill: float | None
    """1 - sum of errors / sum of the forecaster's errors; ``None`` if the forecaster has none."""


class FrameMatch(Part):
    """Allocations put on the kernel's own frame."""

    __slots__ = ()
    allocations: int
    """Allocations compared."""
    matched: int
    """Those on the kernel's own frame."""


class HugeWait(Part):
    """The time from a fault's request to its huge page in the model, without zeroing: the looks and moves of its
    own compaction by the costs of a server of today (``calibration-modern.toml``). No recording has its twin."""

    __slots__ = ()
    at_once_percent: float
    """Faults that were served without compaction of their own."""
    p50_us: float
    """Median."""
    p90_us: float
    """90th percentile."""
    p99_us: float
    """99th percentile."""
    p90_over_p50: float
    """``p90_us / p50_us``."""


class HugeFaults(Part):
    """Faults that asked for a huge page: which got one."""

    __slots__ = ()
    faults: int
    """Faults that asked for one."""
    predicted: int
    """Those that got one in the model. In an ensemble, as all of these counts, in the replay at the recorded
    pace."""
    recorded: int
    """Those that got one on the recorded host."""
    both: int
    """Those that got one on both."""
    precision: float | None
    """``both / predicted``; ``None`` if none got one in the model."""
    recall: float | None
    """``both / recorded``; ``None`` if none got one on the recorded host."""
    wait: HugeWait | None
    """How long they took in the model; ``None`` if none got one there."""


class SnapshotError(Part):
    """Errors at one snapshot, of the model and of the forecaster who only counts."""

    __slots__ = ()
    name: str
    """Name of the snapshot."""
    zone: str
    """Zone."""
    seconds: float
    """Seconds since the first event."""
    order_distribution: tuple[float, float]
    """``model, forecaster`` order-distribution error."""
    free_pages: tuple[float, float]
    """``model, forecaster`` free-pages error."""
    unusable_3: tuple[float, float]
    """``model, forecaster`` unusable-index error at order 3."""
    unusable_9: tuple[float, float]
    """``model, forecaster`` unusable-index error at the order of a huge page (9 where a page has 4 KiB)."""
    pageblock_type: tuple[float, float] | None
    """``model, forecaster`` pageblock-type error; ``None`` where the snapshot shows no types."""


class Accuracy(Part):
    """The error of a replay, measured against the recorded kernel."""

    __slots__ = ()
    order_distribution_error: Measure
    """Half the sum over orders of the absolute differences of shares of free pages."""
    free_pages_error: Measure
    """|predicted - recorded| / recorded free pages; 1 where none was free and some were predicted."""
    unusable_index_error: Named[Measure]
    """Absolute error of the unusable index, at the same orders as of a sample."""
    pageblock_type_error: Measure | None
    """Half the sum over types of the absolute differences of shares of pageblocks; ``None`` where no snapshot shows
    types."""
    frame_match: FrameMatch | None
    """From an exact start: the share of allocations that the model put on the kernel's own frame."""
    huge_faults: HugeFaults | None
    """Which faults got a huge page, in the model and on the recorded host; ``None`` if no fault asked for one."""
    snapshots: int
    """Snapshots that were compared."""
    lost_events: int
    """Events lost by the recorder: the more, the less these numbers say."""
    by_snapshot: list[SnapshotError]
    """These measures by snapshot, for charts."""


class Ensemble(Part):
    """Replays that differ in how fast kswapd is."""

    __slots__ = ()
    members: int
    """How many."""
    pace: tuple[float, float]
    """The least and the largest time for a page that kswapd looks at, of the recorded one."""
    free_pages_skill: tuple[float, float, float] | None
    """Skill of free pages of the members by themselves: least, median, largest; ``None`` where there is no
    accuracy."""


class Failure(Part):
    """Allocations that failed, by order and mask."""

    __slots__ = ()
    order: int
    """Order of the request."""
    gfp: str
    """Its gfp mask as text, such as ``GFP_HIGHUSER_MOVABLE|__GFP_COMP``."""
    count: int
    """How many."""


class BlockMap(Part):
    """Every pageblock at every sample: what a map of memory over time is drawn from."""

    __slots__ = ()
    first_pfn: int
    """First frame of the first block."""
    block_pages: int
    """Frames in a block."""
    type_names: list[str]
    """Type names that the digits in ``types`` stand for."""
    seconds: list[float]
    """Seconds since the first event, one for each row."""
    types: list[str]
    """For each row, one digit a block: index into ``type_names``; ``.`` where no memory is."""
    fullness: list[str]
    """For each row and block, how full it is: ``0`` empty to ``9`` full, ``.`` where no memory is."""


class Kernel(Part):
    """The result of one kernel."""

    __slots__ = ()
    kernel: str
    """Preset name, such as ``6.1``."""
    recorded_era: bool
    """Whether this is the era that was recorded."""
    broke_down: str | None
    """Why the replay says nothing: the model broke down; ``None`` where it did not. Then there are no numbers of
    this kernel but its failures: they would be those of a host that no longer did its work."""
    what_if: WhatIf | None
    """What it would change against the recorded kernel as it was, with bars; ``None`` where it broke down."""
    guessed_settings: list[str]
    """Settings of the recorded host that nobody recorded, and that were guessed, by name."""
    settings: Named[Setting]
    """Every sysctl and switch in force, by name."""
    accuracy: Accuracy | None
    """Against the recorded snapshots; ``None`` unless this is the recorded era."""
    accuracy_from_counts: Accuracy | None
    """The accuracy from a start by counts, where ``accuracy`` is from the kernel's exact state: of one replay, at the
    recorded pace. The difference from that of such a replay from the exact state, which a note names, is the error of
    the start."""
    ensemble: Ensemble | None
    """The replays whose medians these numbers are; ``None`` for a single replay."""
    samples: list[Sample]
    """State at each snapshot's moment."""
    totals: Named[int | None]
    """Totals of the whole replay, by name (allocations, frees, fallbacks …); ``None`` for what the recording does
    not show."""
    failures: list[Failure]
    """Allocations that found no page."""
    block_map: BlockMap | None
    """Every pageblock over time."""
    notes: list[str]
    """What a reader must know of this result (what was applied as given, what is missing)."""


class ClassCheck(Part):
    """A class of events and the kernel's own count of it."""

    __slots__ = ()
    class_: str
    """What."""
    pages: int
    """Pages (or huge pages) in the trace."""
    counter: str
    """The counter in vmstat."""
    counted: int | None
    """By how much it rose; ``None`` if the kernel has no such counter."""
    difference: float | None
    """(trace - counter) / counter."""


class LayoutCheck(Part):
    """The frames that the events say are free, against the kernel's free lists."""

    __slots__ = ()
    name: str
    """Name of the mark."""
    free_pages: int
    """Free pages there."""
    wrongly_free: int
    """Free by the events, in use there."""
    wrongly_used: int
    """In use by the events, free there."""


class Observed(Part):
    """Whether a recording is whole."""

    __slots__ = ()
    events: int
    """Allocations and frees between the first and the last snapshot."""
    classes: list[ClassCheck]
    """Classes of events against the kernel's counters."""
    unclassified: int
    """Events that no rule explains."""
    unclassified_share: float
    """Their share of all events."""
    layouts: list[LayoutCheck]
    """The layout at each mark that holds the kernel's free lists."""


class Recorded(Part):
    """What is known of the recording."""

    __slots__ = ()
    _absent = {"sizes": None}
    file: str
    """File name without its directory."""
    kernel_release: str
    """``uname -r`` of the recorded kernel."""
    cpus: int
    """CPUs of the recorded host."""
    events: int
    """Events in the trace."""
    lost_events: int
    """Events that the recorder lost."""
    share_of_allocations: float | None
    """Share of the pages that the host allocated between the first and the last snapshot of which the trace has the
    events; ``None`` if the snapshots do not tell it."""
    seconds: float
    """Length of the trace in seconds."""
    managed_bytes: int
    """Memory that the page allocator manages, in bytes."""
    snapshots: int
    """Snapshots within the trace."""
    sizes: Sizes | None
    """Sizes of the host's pages and blocks; left out of JSON where they are the usual ones (pages of 4 KiB, 11
    orders, pageblocks and huge pages of order 9)."""


class Replay(Answer):
    """Everything that one ``unfrag replay`` prints."""

    __slots__ = ()
    _question = "replay"
    _absent = {"window": None}
    answer: WhatIsSaid
    """What is said of it in sentences, and by which numbers."""
    trust: Trust
    """How far it can be trusted."""
    recording: Recorded
    """The recording that was replayed."""
    mode: str
    """``predict`` or ``observe``."""
    start: str
    """``exact`` (began at the kernel's own free lists), ``occupancy``, ``counts``, or ``boot`` (each kernel placed
    anew what was in use)."""
    asked_settings: list[str]
    """Settings that were asked for, as ``NAME=VALUE`` or ``NAME=VALUE@SECONDS``."""
    start_lists: ListOrder | None
    """How far the first touches of the trace show the order of the start's lists; ``None`` from an exact start."""
    recorded: list[Sample]
    """What the recorded kernel itself showed, at each snapshot."""
    kernels: list[Kernel]
    """One for each kernel asked for, in that order."""
    observe: Observed | None
    """What ``--mode observe`` found; ``None`` otherwise."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""

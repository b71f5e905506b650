"""What a summary of a trace answers with."""

from __future__ import annotations

from ..answers import Answer, Named, Part
from .window import Window


class KindCount(Part):
    """Events of a kind."""

    __slots__ = ()
    event: str
    """``system:name``, or the name where the trace has no system."""
    count: int
    """How many."""


class NotRecorded(Part):
    """A question without events."""

    __slots__ = ()
    question: str
    """What is not known."""
    events: str
    """Events that would tell it."""


class Who(Part):
    """Who did something."""

    __slots__ = ()
    process: str | None
    """Name of the process, all of that name together; ``None`` for those whose names are not in the trace."""
    interrupt: bool
    """Whether an interrupt did it while that process ran."""


class ProcessRequests(Who):
    """Requests of a process."""

    __slots__ = ()
    count: int
    """Requests."""
    failed: int
    """Those that got nothing."""
    pages: int
    """Pages asked for."""
    orders: Named[int]
    """Requests of each order."""


class RequestKind(Part):
    """Requests of one order, flags and type."""

    __slots__ = ()
    order: int
    """Order."""
    flags: str | None
    """Names of the flags."""
    type: str | None
    """Migrate type."""
    count: int
    """Requests."""
    failed: int
    """Those that got nothing."""
    pages: int
    """Pages asked for."""


class Failure(Who):
    """Failed requests of one process, order, flags and type."""

    __slots__ = ()
    order: int
    """Order."""
    flags: str | None
    """Names of the flags."""
    type: str | None
    """Migrate type."""
    count: int
    """How many."""


class Requests(Part):
    """Requests for pages."""

    __slots__ = ()
    count: int
    """All."""
    failed: int
    """Those that got nothing."""
    orders: Named[int]
    """Requests of each order."""
    processes: list[ProcessRequests]
    """By process, with most pages asked for first."""
    kinds: list[RequestKind]
    """By order, flags and type, with most pages asked for first."""
    failures: list[Failure]
    """Failed ones, by process, order, flags and type, most first."""


class Fallback(Who):
    """Fallbacks of one process, orders and types."""

    __slots__ = ()
    order: int | None
    """Order of the request."""
    fallback_order: int | None
    """Order of the block that was taken."""
    wanted: str | None
    """Type asked for."""
    taken_from: str | None
    """Type of the block."""
    change_ownership: bool | None
    """Whether the event says that ownership changed."""
    count: int
    """How many."""


class Fallbacks(Part):
    """Requests served from blocks of another type."""

    __slots__ = ()
    count: int
    """All."""
    fragmenting: int | None
    """Those that took less than a pageblock, where the trace has the pageblocks' order."""
    kinds: list[Fallback]
    """By process, orders, types and what became of the pageblock, most first."""


class Asked(Who):
    """Requests of a process for blocks of an order."""

    __slots__ = ()
    order: int | None
    """Order; absent where the event does not have it."""
    count: int
    """How many."""


class Result(Part):
    """An answer about a zone."""

    __slots__ = ()
    order: int | None
    """Order that was wanted; negative for a run without one."""
    result: str | None
    """The answer."""
    count: int
    """How often."""


class Times(Part):
    """How long something took."""

    __slots__ = ()
    timed: int
    """How many were timed."""
    seconds: float
    """Seconds of all."""
    longest_seconds: float
    """Seconds of the longest."""


class RunResult(Times):
    """Runs with one result."""

    __slots__ = ()
    result: str | None
    """The result; absent where the event does not have it."""
    count: int
    """Runs."""


class Runs(Part):
    """Runs of compaction over a zone."""

    __slots__ = ()
    begun: int
    """Begun."""
    open: int
    """Begun, but not ended in the trace."""
    results: list[RunResult]
    """Ended ones by result, most first."""


class Scanner(Part):
    """What a scanner did."""

    __slots__ = ()
    ranges: int
    """Ranges."""
    scanned: int
    """Pages looked at."""
    taken: int
    """Pages taken."""


class Moved(Part):
    """Pages of migration."""

    __slots__ = ()
    batches: int
    """Batches."""
    migrated: int
    """Moved."""
    failed: int
    """Could not be moved."""


class Compaction(Part):
    """Compaction."""

    __slots__ = ()
    direct: list[Asked] | None
    """Requests that compacted for themselves, by process and order, most first."""
    runs: Runs | None
    """Runs over a zone."""
    suitable: list[Result] | None
    """Answers to whether a zone is worth it, by order."""
    finished: list[Result] | None
    """Answers to whether a run is done, by order."""
    migrate_scanner: Scanner | None
    """What the scanner for pages to move saw and took."""
    free_scanner: Scanner | None
    """What the scanner for free pages saw and took."""
    moved: Moved | None
    """Pages moved, and those that could not be."""
    deferred: Named[int] | None
    """Runs left out because earlier ones were in vain, by order."""
    kcompactd: Named[int] | None
    """Wake-ups of kcompactd by order."""


class Wake(Part):
    """Wake-ups of a node's daemon for an order."""

    __slots__ = ()
    node: int | None
    """Node."""
    order: int | None
    """Order."""
    count: int
    """How often."""


class Kswapd(Times):
    """The daemons that reclaim."""

    __slots__ = ()
    asked: list[Asked] | None
    """Who woke them for which order, most first."""
    wakes: list[Wake] | None
    """Times they woke, by node and order."""
    sleeps: int | None
    """Times they went to sleep."""


class Stall(Who, Times):
    """Stalls of a process for an order."""

    __slots__ = ()
    order: int | None
    """Order; absent where the event does not have it."""
    count: int
    """How many."""
    reclaimed: int | None
    """Pages reclaimed in them."""


class DirectReclaim(Part):
    """Processes that had to reclaim themselves."""

    __slots__ = ()
    stalls: int
    """Times that one had to."""
    open: int
    """Begun, but not ended in the trace."""
    begun_before: int
    """Ended, but not begun in the trace."""
    reclaimed: int | None
    """Pages reclaimed by all that ended."""
    kinds: list[Stall]
    """By process and order, those that waited longest first."""


class Lost(Part):
    """What is missing from the trace."""

    __slots__ = ()
    gaps: int
    """Gaps that the tracer reports."""
    events: int
    """Events lost in those with a number."""
    gaps_of_unknown_size: int
    """Gaps without a number."""
    overwritten: int | None
    """Events that later ones overwrote before the trace was read."""
    lines_not_understood: str | None
    """What is wrong with the lines of a text, a sentence."""
    first_lines: list[str]
    """The first lines that were not understood."""


class Summary(Answer):
    """What a trace tells."""

    __slots__ = ()
    _question = "summary"
    _absent = {"did_not_happen": [], "window": None}
    source: str
    """Where the trace came from."""
    format: str
    """Its format."""
    kernel: str | None
    """Release of its kernel, where it is known."""
    cpus: int
    """CPUs of the recorded host."""
    first_seconds: float
    """Time of the first event, in seconds of the trace's clock."""
    seconds: float
    """Seconds from the first event to the last."""
    events: int
    """Events."""
    kinds: list[KindCount]
    """Events by kind."""
    requests: Requests | None
    """Requests for pages."""
    fallbacks: Fallbacks | None
    """Requests served from blocks of another type."""
    compaction: Compaction | None
    """Compaction."""
    kswapd: Kswapd | None
    """The daemons that reclaim."""
    direct_reclaim: DirectReclaim | None
    """Processes that had to reclaim themselves."""
    share_of_allocations: float | None
    """Share of the pages that the host allocated between the first and the last snapshot of which the trace has the
    events; ``None`` if no snapshots tell it."""
    lost: Lost
    """What is missing from the trace."""
    assumed: list[str]
    """What was assumed, a sentence each."""
    not_recorded: list[NotRecorded]
    """Questions that stay open for want of events."""
    did_not_happen: list[NotRecorded]
    """What was recorded, and did not happen."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""

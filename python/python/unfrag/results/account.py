"""What an account answers with. Amounts are frames, unless they say bytes."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Named, Part
from .window import Window

#: How the page size is known: it was given, the host's files tell it, or nothing tells it and that of most hosts is taken.
PageSizeFrom = Literal["asked", "derived", "assumed"]

#: What a frame is used for. ``kernel``: no flag says what for (vmalloc, stacks, per-CPU areas, buffers of drivers, leaks);
#: ``reserved``: never given to the allocator.
Use = Literal[
    "free",
    "per_cpu",
    "clean_cache",
    "dirty_cache",
    "writeback",
    "shmem",
    "anon",
    "anon_large",
    "anon_huge",
    "hugetlb",
    "slab",
    "page_tables",
    "zero_pages",
    "offline",
    "broken",
    "kernel",
    "reserved",
]


class UseFrames(Part):
    """Frames of a use."""

    __slots__ = ()
    use: Use
    """The use."""
    frames: int
    """Its frames."""


class KernelPart(Part):
    """A part of the kernel's memory that has no flag, as one of its counters has it."""

    __slots__ = ()
    part: str
    """Which."""
    frames: int
    """Its frames."""


class Bounds(Part):
    """A number that is known by its bounds."""

    __slots__ = ()
    at_least: int
    """At least so much."""
    likely: int
    """What is left if each counter has what it says, and nothing twice."""
    at_most: int
    """At most so much."""


class Compared(Part):
    """Frames by page flags, and what counters say of the same."""

    __slots__ = ()
    what: str
    """What is compared."""
    frames: int
    """By page flags."""
    counter: str
    """The counters."""
    counted: int
    """What they say."""
    difference: int
    """Frames that the counters have and page flags have not; negative the other way round."""


class Across(Part):
    """What lies across uses; ``None`` where nothing tells."""

    __slots__ = ()
    unevictable: int | None
    """Frames that may not be reclaimed."""
    mlocked: int | None
    """Frames that processes locked."""
    cma: int | None
    """Frames in contiguous memory areas (CMA)."""
    cma_free: int | None
    """Those of them that are free."""


class ZoneFrames(Part):
    """Frames of a zone, or of a node."""

    __slots__ = ()
    node: int
    """Its node."""
    zone: str
    """Its name."""
    spanned: int
    """All that it spans."""
    holes: int
    """Those that do not exist."""
    exist: int
    """Those that exist."""
    uses: list[UseFrames]
    """By use; only those that are there."""
    in_no_counter: Bounds
    """The kernel's frames that no counter has. Most counters are the host's, so that the bounds of a zone are wide."""


class Drift(Part):
    """What changed while the flags were read."""

    __slots__ = ()
    seconds: float
    """Seconds that it took."""
    allocated: int | None
    """Frames that were allocated meanwhile; ``None`` without vmstat."""
    freed: int | None
    """Frames that were freed meanwhile."""


class CallSite(Part):
    """A place of the kernel's source that allocates."""

    __slots__ = ()
    place: str
    """As allocinfo writes it, such as ``mm/slub.c:2480 func:alloc_slab_page``."""
    bytes: int
    """Bytes that it holds."""
    calls: int
    """Allocations that it holds."""


class Unread(Part):
    """A file that could not be read."""

    __slots__ = ()
    file: str
    """Its name."""
    why: str
    """Why, and what is missing for it."""


class UseGrowth(Part):
    """Frames of a use more than before; negative if there are fewer."""

    __slots__ = ()
    use: Use
    """The use."""
    frames: int
    """Frames."""


class ZoneGrowth(Part):
    """What grew in a zone."""

    __slots__ = ()
    node: int
    """Its node."""
    zone: str
    """Its name."""
    uses: list[UseGrowth]
    """By use; only those that changed."""


class SiteGrowth(Part):
    """A place that holds more than before, or less."""

    __slots__ = ()
    place: str
    """As allocinfo writes it."""
    bytes: int
    """Bytes that it holds."""
    grown: int
    """Bytes that it holds more."""


class Growth(Part):
    """What grew between two looks."""

    __slots__ = ()
    since: str
    """The earlier look."""
    seconds: float | None
    """Seconds between the two; ``None`` where their clocks do not tell."""
    uses: list[UseGrowth]
    """Frames of each use."""
    in_no_counter: int
    """Frames that no counter has: the difference of what is likely."""
    give_or_take: int | None
    """Frames by which that may be off; ``None`` where it is not known."""
    zones: list[ZoneGrowth]
    """By zone; empty without page flags."""
    call_sites: list[SiteGrowth] | None
    """Places of the kernel's source; ``None`` without allocinfo."""


class Account(Answer):
    """Where the memory is: every frame that exists, once."""

    __slots__ = ()
    _question = "account"
    _absent = {"window": None}
    window: Window | None
    """The part of the input that it is about, where one was chosen."""
    source: str
    """What it is of."""
    kernel_release: str | None
    """The kernel's release."""
    page_size: int
    """Bytes in a frame."""
    page_size_from: PageSizeFrom
    """How that is known."""
    basis: Literal["page_flags", "counters"]
    """What uses are known by: the flags of each frame, or counters alone."""
    extent: Literal["all", "listed_zones", "mem_total"]
    """What ``exist`` is the sum of: all frames, those of the zones that zoneinfo lists, or those of MemTotal, which has not
    what was reserved at boot."""
    spanned: int | None
    """Frames that all zones span; ``None`` without zoneinfo."""
    holes: int | None
    """Frames of them that do not exist."""
    exist: int
    """Frames that exist."""
    uses: list[UseFrames]
    """Frames of each use: the sum is ``exist``. A use that nothing tells is not there, and its frames are the kernel's."""
    kernel: list[KernelPart]
    """What the kernel's counters say of its frames without flags."""
    in_no_counter: Bounds
    """The rest of them."""
    off_by: int | None
    """Frames by which that may be off, since not all was read at one moment; ``None`` where that is not known."""
    compared: list[Compared]
    """Page flags beside counters; empty without page flags."""
    anon_by_order: Named[int]
    """Anonymous frames by the order of their block; empty without page flags."""
    shmem_by_order: Named[int]
    """Shared memory likewise."""
    cache_by_order: Named[int]
    """Page cache likewise."""
    across: Across
    """What lies across uses."""
    zones: list[ZoneFrames]
    """Frames of each zone; empty without page flags."""
    nodes: list[ZoneFrames]
    """The nodes, with the same; empty with one node."""
    counters: Named[int]
    """The counters of the host, in frames."""
    drift: Drift | None
    """What changed while page flags were read; ``None`` of a copy."""
    call_sites: list[CallSite] | None
    """Places of the kernel's source that hold most; ``None`` without allocinfo."""
    unread: list[Unread]
    """What could not be read."""
    notes: list[str]
    """What contradicts itself, and what was not understood."""
    growth: Growth | None
    """What grew; ``None`` of one look."""

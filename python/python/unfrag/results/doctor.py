"""What the doctor answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Named, Part
from .host import Amounts
from .window import Window

#: How the page size is known.
PageSizeFrom = Literal["asked", "derived", "assumed"]


class Unread(Part):
    """A file that could not be read."""

    __slots__ = ()
    file: str
    """Its name."""
    why: str
    """Why, and what is missing for it."""


#: What a page frame is used for.
FrameUse = Literal[
    "free",
    "per_cpu",
    "clean_cache",
    "user",
    "unevictable",
    "thp",
    "hugetlb",
    "slab",
    "page_tables",
    "kernel",
    "reserved",
    "absent",
]


class StuckFolio(Part):
    """A folio for which there was no free block, and which cannot be split."""

    __slots__ = ()
    pfn: int
    """Its first frame."""
    order: int
    """Its order."""


class Forecast(Part):
    """Huge pages of a zone, a node or a host. All counts are of huge pages of the size that the diagnosis names."""

    __slots__ = ()
    now: int | None
    """Available at once; ``None`` where no file tells free blocks, or not all is known that keeps them back:
    watermarks and protection (zoneinfo), and the high-order atomic reserve (pagetypeinfo)."""
    now_at_most: int | None
    """What ``now`` is at most, by what is known of free blocks, free pages and of what is kept back; ``None`` where
    ``now`` is known, or no file tells them."""
    perhaps_now: int
    """Of these, free blocks in zones that may keep them from such requests: only zoneinfo tells."""
    after_compaction: int | None
    """After emptying per-CPU lists (6.7 and later), ``sync`` and one write to ``vm.compact_memory``; ``None``
    without page flags, as the next two."""
    after_reclaim: int | None
    """After emptying per-CPU lists (6.7 and later), ``sync``, dropping caches, then ``vm.compact_memory``."""
    by_asking_again: int | None
    """By writing ``vm.nr_hugepages`` until it grows no more (100 writes in a row)."""
    compaction_unhindered: bool | None
    """Whether no large folio waits to be written that would end a run of ``vm.compact_memory`` early: only then are
    ``after_compaction`` and ``after_reclaim`` sure. ``None`` without page flags."""
    at_most: int | None
    """No action gives more; ``None`` if the files that were read set no bound."""


#: How long advice holds.
Lasts = Literal["once", "setting", "look"]

#: What the numbers of a change are.
Unit = Literal["bytes", "number"]

#: How sure the number is that a change leads to.
Sure = Literal["exact", "about", "at_best"]


class Change(Part):
    """A number that a command changes."""

    __slots__ = ()
    what: str
    """What is counted."""
    unit: Unit
    """In what."""
    from_: int
    """Now."""
    to: int
    """Afterwards."""
    sure: Sure
    """How sure that is."""


class Predicted(Part):
    """The state at the end of a replay, with the current value and with the value advised."""

    __slots__ = ()
    from_: str
    """The current value."""
    to: str
    """The value advised."""
    free_huge_blocks: tuple[int, int]
    """Free 2 MiB blocks at the end: current, advised."""
    failures: tuple[int, int]
    """Requests that found no page: current, advised."""
    stalls: tuple[int, int]
    """Requests that had to reclaim or compact first (``allocstall``, ``compact_stall``): current, advised."""
    free_pages: tuple[int, int]
    """Free pages at the end: current, advised."""
    thp_fault_alloc: tuple[int, int]
    """Faults that got a huge page (``thp_fault_alloc``): current, advised."""
    pgmigrate_success: tuple[int, int]
    """Pages that compaction moved (``pgmigrate_success``): current, advised."""
    cannot_say: tuple[float, float] | None
    """Where it cannot be said whether a real host would have more or fewer free 2 MiB blocks: between how many it
    would have in four of five cases."""


class MadeHugePages(Part):
    """Huge pages that a command makes beside the number that it changes, and what makes more."""

    __slots__ = ()
    at_least: int
    """For certain."""
    at_most: int | None
    """By itself; ``None`` where no file tells."""
    at_most_with_compaction: int | None
    """With compaction after it; ``None`` where no file tells."""
    more: str
    """What helps if that is not enough, as a clause."""


class Advice(Part):
    """Something to do."""

    __slots__ = ()
    command: str
    """The command."""
    lasts: Lasts
    """How long it holds."""
    setting: str | None
    """The sysctl that it sets, such as ``vm.min_free_kbytes``; ``None`` if it sets none."""
    current: str | None
    """Its value now; ``None`` if not known."""
    value: str | None
    """The value advised."""
    reason: str
    """Why."""
    change: Change | None
    """The number that it changes; ``None`` where no file tells it, and for a command that only looks."""
    cost: str
    """What it costs."""
    prediction: str | None
    """What a replay of a recording predicts for it, as a sentence."""
    predicted: Predicted | None
    """The prediction as numbers."""
    huge_pages: MadeHugePages | None
    """Huge pages that the command makes, where it changes another number than theirs."""


class NotGiven(Advice):
    """Advice that is not given."""

    __slots__ = ()
    why_not: str
    """Of a candidate: what is needed before it is advice. Of one that was withdrawn: what speaks against it."""


#: What becomes of a setting: nothing speaks for another value (``leave``), or something does and more is needed before it is
#: advised (``not_yet``), or another value is advised (``change``), or the files do not tell what it would be judged by.
SettingVerdict = Literal["leave", "not_yet", "change", "not_judged"]


class JudgedSetting(Part):
    """A setting, and what becomes of it."""

    __slots__ = ()
    setting: str
    """Its name, such as ``vm.min_free_kbytes`` or ``transparent_hugepage/defrag``."""
    current: str | None
    """Its value; ``None`` if not known."""
    verdict: SettingVerdict
    """What becomes of it."""
    advised: str | None
    """The other value that something speaks for; ``None`` if nothing does."""
    why: str
    """Why, as a clause; empty where nothing is to be said."""


class AtomicRisk(Part):
    """The risk of a request of an order."""

    __slots__ = ()
    node: int
    """Node id."""
    order: int
    """Order of the request."""
    verdict: str
    """``fails``, ``at risk`` or ``safe``; ``unknown`` where what no file tells decides: watermarks and protection
    (zoneinfo), the free blocks of a zone, or which of them are those of contiguous memory areas (pagetypeinfo)."""
    in_a_row: int | None
    """Requests that succeed in a row before the first failure, if nothing is freed meanwhile; counted to 100,000.
    ``None`` where the next two differ."""
    in_a_row_at_least: int
    """The same at least: in zones of which all is told, if contiguous memory areas have the largest free blocks."""
    in_a_row_at_most: int | None
    """The same at most: if nothing is kept back but what is told, and contiguous memory areas have the smallest
    free blocks. ``None`` where the free blocks of a zone are not told."""
    verdict_to_4_3: str | None
    """The verdict of kernels to 4.3, where the release is not known and their rule gives another."""
    not_for_them_pages: int
    """Free pages of the node that such requests cannot use: those of contiguous memory areas, of high memory, and
    isolated ones."""


class Features(Part):
    """Settings outside ``vm``, as their files state them."""

    __slots__ = ()
    lru_gen: str | None
    """``/sys/kernel/mm/lru_gen/enabled``: the multi-generational LRU, as a mask."""
    damon_reclaim: str | None
    """``/sys/module/damon_reclaim/parameters/enabled``: reclaim ahead of demand by DAMON."""
    ksm: str | None
    """``/sys/kernel/mm/ksm/run``: merging of equal pages."""


class Past(Part):
    """Something that happened since boot."""

    __slots__ = ()
    counter: str
    """The counter that tells it."""
    since_boot: int
    """How often since boot."""
    while_watched: int | None
    """How often while the host was watched; ``None`` if it was not."""
    text: str
    """As a sentence."""
    next: str | None
    """The command that tells more."""


class Pool(Part):
    """A pool of huge pages of one size."""

    __slots__ = ()
    size: int
    """Bytes in one."""
    total: int
    """Huge pages in it, surplus ones among them."""
    free: int
    """Of these, not in use."""
    reserved: int
    """Of the free ones, promised to mappings."""
    surplus: int
    """Beyond what was set: given back when they are free."""
    nodes: list[tuple[int, int, int]]
    """Of each node, by number: total and free."""


class MemoryBlock(Part):
    """A block in which memory is unplugged."""

    __slots__ = ()
    number: int
    """Its number: that of its directory in ``/sys/devices/system/memory``."""
    to_move: int
    """Pages that would have to be moved, or dropped, before it is unplugged."""
    free: int
    """Pages that are free."""
    kept_by: list[tuple[FrameUse, int]]
    """What keeps it, with the pages of each use, most first; empty if it can go."""


class Unpluggable(Part):
    """What was found of them."""

    __slots__ = ()
    block_bytes: int
    """Bytes in a block."""
    online: int
    """Blocks that are online and whose page flags were read."""
    can_go: int
    """Of these, blocks in which nothing is that cannot be moved or dropped."""
    kept_by: list[tuple[FrameUse, int]]
    """What keeps the others: a use, and the blocks that it is in; most first."""
    least: tuple[int, int, FrameUse] | None
    """The block with the least that keeps it: its number, pages and their use."""
    blocks: list[MemoryBlock]
    """Each of them, in the order of their addresses."""


class SlabCache(Part):
    """A slab cache."""

    __slots__ = ()
    name: str
    """Name."""
    pages: int
    """Pages of its slabs."""
    used: float
    """Share of its object slots in use, 0 to 1."""
    grown_pages: int | None
    """Pages by which it grew since the earlier reading, negative if it shrank; ``None`` with only one."""
    over_seconds: float | None
    """Seconds between the two readings."""


class Place(Part):
    """A place of the kernel's source that allocates."""

    __slots__ = ()
    place: str
    """As allocinfo writes it, such as ``mm/slub.c:2480 func:alloc_slab_page``."""
    bytes: int
    """Bytes that it holds."""
    calls: int
    """Allocations that it holds."""
    grown_bytes: int | None
    """Bytes by which that grew since the earlier reading, negative if it shrank; ``None`` with only one."""
    over_seconds: float | None
    """Seconds between the two readings."""


class Watched(Part):
    """How long the host was watched."""

    __slots__ = ()
    readings: int
    """Readings of its counters."""
    seconds: float | None
    """Seconds from the first to the last; ``None`` with only one."""


class Withheld(Part):
    """Memory that is withheld."""

    __slots__ = ()
    name: str
    """A name for programs: ``long_term_pins``, ``kexec_handover``, ``highatomic``, ``hugetlb_idle``,
    ``hugetlb_reserved``, ``page_cache``, ``memory_blocks``; with the size for pools, and the place for zones."""
    bytes: int
    """How much."""
    text: str
    """What, from whom, and why, as a sentence."""
    command: str | None
    """What gives it back; ``None`` where no command does."""


class Pins(Part):
    """How much can be pinned for long: by RDMA, VFIO, ``io_uring``, CUDA."""

    __slots__ = ()
    free_bytes: int | None
    """Free memory outside contiguous areas and zone Movable; ``None`` where a zone does not tell."""
    closed_bytes: int | None
    """Free memory in them, closed to such pins; ``None`` where a zone does not tell."""
    at_most_bytes: int | None
    """All memory outside zone Movable and contiguous areas, which no such pin can exceed; ``None`` where it is not
    told."""


class Work(Part):
    """A counter of stalls, failures or work, and its rates."""

    __slots__ = ()
    counter: str
    """Its name in vmstat; without the zone where it is split by zone."""
    what: str
    """In words."""
    total: int
    """Since boot."""
    per_second: float | None
    """A second, over the time that the host was watched; ``None`` with only one reading."""
    per_second_since_boot: float | None
    """A second, over the time since boot; ``None`` if that is not known."""


#: What comes before memory is taken.
Means = Literal["now", "compact", "drop", "drop_compact"]


class After(Part):
    """What a caller is willing to do before it takes memory."""

    __slots__ = ()
    drop: bool
    """Drop caches."""
    compact: bool
    """Compact memory."""


class Need(Part):
    """Pieces of memory of one size."""

    __slots__ = ()
    count: int
    """How many."""
    bytes: int
    """Bytes in each; a power of two."""
    node: int | None
    """The node that they have to be on; any if ``None``."""


#: Whether needs can be met.
Verdict = Literal["yes", "no", "unknown"]


class ByMeans(Part):
    """The verdict on a means."""

    __slots__ = ()
    means: Means
    """The means."""
    is_allowed: bool
    """Whether the caller is willing to."""
    verdict: Verdict
    """Whether it gives all needs."""


#: What a need is a need of.
Kind = Literal["huge_pages", "blocks", "runs"]


class Room(Part):
    """Pieces that can be had."""

    __slots__ = ()
    at_least: int
    """For certain."""
    expected: int | None
    """By the model; ``None`` where there is none."""
    at_most: int | None
    """No more; ``None`` where no file sets a bound."""


class AskedNeed(Need):
    """A need, and how much of it there is."""

    __slots__ = ()
    name: str
    """As it was asked for."""
    order: int
    """Order of a piece."""
    kind: Kind
    """What it is a need of."""
    rooms: tuple[Room, Room, Room, Room]
    """How many pieces there are after each means, those before it taken; in the order of ``by_means``."""


class Needs(Part):
    """The answer to several needs, judged together."""

    __slots__ = ()
    verdict: Verdict
    """Whether all can be had by what the caller is willing to do."""
    means: Means | None
    """The cheapest means of these that gives all; ``None`` unless the verdict is ``yes``."""
    after: After
    """What the caller is willing to do."""
    by_means: list[ByMeans]
    """The verdict on each means, the cheapest first."""
    each: list[AskedNeed]
    """Each need, the largest first: so they are taken."""
    line: str
    """The answer in one line of at most 80 signs."""
    answer: str
    """The answer as a sentence."""
    notes: list[str]
    """What a reader must know of it."""
    commands: list[str]
    """Commands that prepare memory by the cheapest means that gives all, and take what a pool takes; where none
    does for certain, by the dearest that may, as a try. None where none may."""


class Obstacle(Part):
    """A use of memory that stands in the way of huge pages."""

    __slots__ = ()
    kind: FrameUse
    """The use."""
    pages: int
    """Pages in this use."""
    blocks: int
    """Blocks that hold at least one of them."""
    blocks_alone: int
    """Blocks that hold no other obstacle."""


class Node(Part):
    """A node."""

    __slots__ = ()
    node: int
    """Node id."""
    score: int | None
    """Score of proactive compaction, 0 to 100; ``None`` if free blocks or the size of one of its zones are not
    known."""
    proactive_low_high: tuple[int, int] | None
    """Scores at which proactive compaction ends and begins; ``None`` where the kernel has none or it is off."""
    huge_pages: Forecast
    """Huge pages that can be had."""


class Zone(Part):
    """A zone."""

    __slots__ = ()
    node: int
    """Node id."""
    zone: str
    """Zone name."""
    managed_pages: int | None
    """Pages that the allocator manages; ``None`` without zoneinfo."""
    free_pages: int | None
    """Pages on the buddy lists; ``None`` if no file tells them."""
    pcp_pages: int | None
    """Pages on per-CPU lists; ``None`` where zoneinfo is missing, or does not tell them to their end."""
    watermarks: tuple[int, int, int] | None
    """min, low and high, with the boost; ``None`` without zoneinfo."""
    below: str | None
    """The lowest watermark that free memory is below: ``min`` or ``low``; ``None`` for none, or without
    zoneinfo."""
    protection_pages: int | None
    """Pages kept from requests that could use any zone; ``None`` without zoneinfo."""
    filled_by_slab_pages: int | None
    """Pages of slab that cannot be reclaimed, where they fill most of a zone that is short of memory."""
    free_huge_blocks: int | None
    """Free blocks of a huge page's size; ``None`` if no file tells them."""
    highatomic_huge_blocks: int | None
    """Huge pages in free blocks of the high-order atomic reserve; ``None`` without pagetypeinfo."""
    largest_free_order: int | None
    """The largest order with a free block; ``None`` if none is free, or no file tells."""
    extfrag_for_order_9: int | None
    """Percent of free memory outside blocks of a huge page's size (of order ``huge_order``); ``None`` if no file
    tells."""
    unusable_index: Named[float]
    """Share of free memory that orders 3, 4 and that of a huge page cannot use, 0 to 1."""
    fragmentation_index: Named[float]
    """Why a request of order 3, 4 or that of a huge page would fail: near 0 for lack of memory, near 1 for
    fragmentation; -1 if it would not."""
    verdict: str
    """How fragmented it is and why, as a sentence."""
    huge_pages: Forecast
    """Huge pages that can be had."""
    compaction_stops: StuckFolio | None
    """The folio at which ``vm.compact_memory`` would end early."""
    obstacles: list[Obstacle] | None
    """What stands in the way; ``None`` without page flags."""
    blocks: int | None
    """Pageblocks: as many as the kernel counts by their types, or those with memory of the allocator by page
    flags."""


class Diagnosis(Answer):
    """The result of an examination. Pages, blocks and huge pages have the sizes that it names."""

    __slots__ = ()
    _question = "doctor"
    _absent = {"window": None}
    source: str
    """Where the evidence came from."""
    kernel_release: str | None
    """``uname -r``; ``None`` if not known."""
    kernel_rules: str
    """The era whose rules were taken."""
    kernel_rules_assumed: bool
    """Whether that is an assumption, as no file tells the release."""
    page_size: int
    """Bytes in a page."""
    page_size_from: PageSizeFrom
    """How that is known."""
    huge_page_bytes: int
    """Bytes in a huge page."""
    huge_order: int
    """Order of a huge page."""
    default_huge_page_bytes: int | None
    """Bytes in a page of the default hugetlb pool, which ``vm.nr_hugepages`` sets; ``None`` without meminfo."""
    reclaimable_bytes: int | None
    """Bytes of page cache and reclaimable slab by meminfo; ``None`` without it, or if it lacks a part of them."""
    memory: Amounts
    """How large the host is."""
    reclaimable_slab_bytes: int | None
    """Bytes of slab that can be reclaimed, by meminfo: at best, as an object in use keeps its slab. ``None`` without
    it."""
    uptime_seconds: float | None
    """Seconds since boot."""
    nodes: list[Node]
    """One for each node."""
    zones: list[Zone]
    """One for each populated zone."""
    huge_pages: Forecast
    """Huge pages that can be had, on all nodes together."""
    empties_pcp_lists: bool
    """Whether per-CPU lists have to be emptied before compaction (6.7 and later, by ``kernel_rules``)."""
    pcp_fraction: int | None
    """``vm.percpu_pagelist_high_fraction``; ``None`` where no file tells it, and where compaction does not need it
    (before 6.7)."""
    huge_pages_in_pool: int | None
    """Huge pages in the default hugetlb pool by now; ``None`` without meminfo."""
    obstacles: list[Obstacle] | None
    """What stands in the way, over all zones; ``None`` without page flags."""
    pinned_pages: int | None
    """Pages of processes that are pinned, by the kernel's count; page flags do not show where."""
    atomic: list[AtomicRisk]
    """Requests that may not wait."""
    slabs: list[SlabCache]
    """Slab caches: those that grew most, then the largest."""
    call_sites: list[Place] | None
    """Places of the kernel's source that allocate: those that grew most, then the largest; ``None`` without allocinfo."""
    work: list[Work]
    """Stalls, failures and compaction."""
    watched: Watched
    """How long the host was watched: what happened in that time is now, all else is history."""
    history: list[Past]
    """What happened since boot, which is no reason to act now."""
    advice: list[Advice]
    """What to do."""
    candidates: list[NotGiven]
    """What may be worth doing, and what is needed to say so."""
    withdrawn: list[NotGiven]
    """What would be advised, had evidence not spoken against it."""
    if_more_is_needed: list[Advice]
    """What helps against what stands in the way, should more huge pages be needed."""
    withheld: list[Withheld]
    """Memory that is not for everybody."""
    pins: Pins
    """How much can be pinned for long."""
    pools: list[Pool]
    """Pools of huge pages, by sysfs."""
    memory_blocks: Unpluggable | None
    """The blocks in which memory is unplugged; ``None`` without sysfs or page flags."""
    features: Features
    """What reclaims or merges memory beside the page allocator; each ``None`` where it could not be read."""
    settings: Named[str]
    """Settings that were read: sysctls by their names below ``vm``, ``thp_enabled`` and ``thp_defrag``."""
    judged_settings: list[JudgedSetting]
    """The settings that decide most, those that are advised and those that may be: whether to change them."""
    advice_lacks: list[str]
    """What was not seen, so that advice may be missing: sysctls, counters."""
    notes: list[str]
    """What a reader must know."""
    unread: list[Unread]
    """Files that would have told more, and why they did not."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""
    needs: Needs | None
    """Whether what ``need=`` asks for can be had; ``None`` where nothing was asked for."""

"""What a simulation answers with."""

from __future__ import annotations

from ..answers import Answer, Named, Part


class Memory(Part):
    """Memory by use, in pages."""

    __slots__ = ()
    free: int
    """Free, on buddy and per-CPU lists."""
    anon: int
    """Anonymous memory and tmpfs, on LRU lists."""
    file: int
    """Page cache, on LRU lists."""
    page_tables: int
    """Page tables."""
    stacks: int
    """Kernel stacks."""
    slab: int
    """Slabs."""
    network: int
    """Network buffers."""
    pinned: int
    """Held by a module."""
    other: int
    """Everything else."""
    dirty: int
    """Dirty pages of files (part of ``file``)."""
    writeback: int
    """Pages being written to files (part of ``file``)."""
    swap_writeback: int
    """Pages being written to swap (part of ``anon``)."""
    swap_used: int
    """Used slots of swap."""


class CpuUse(Part):
    """Time of CPUs by what it was spent on, in nanoseconds."""

    __slots__ = ()
    user_ns: int
    system_ns: int
    irq_ns: int
    switching_ns: int
    iowait_ns: int
    idle_ns: int


class Sample(Part):
    """The machine at a time."""

    __slots__ = ()
    at_ns: int
    """Time."""
    memory: Memory
    """Memory by use."""
    free_blocks: list[list[int]]
    """Free blocks by order, for each zone in order."""
    tasks: int
    """Tasks that have not ended, threads of the kernel among them."""
    cpu: CpuUse
    """All CPUs' time."""
    kswapd_cpu_ns: int
    """CPU time of kswapd."""
    direct_reclaim_ns: int
    """Time that tasks spent in direct reclaim, waits included."""
    allocstall: int
    """Direct reclaims."""
    congestion_wait_ns: int
    """Time that tasks waited for congestion to end."""
    pgfault: int
    """Page faults."""
    pgmajfault: int
    """Page faults that had to read."""
    pswpin: int
    """Pages read from swap."""
    pswpout: int
    """Pages written to swap."""
    pgpgin: int
    """KiB read from files."""
    pgpgout: int
    """KiB written to files."""
    alloc_failed: int
    """Allocations that failed."""


class ZoneSize(Part):
    """A zone of the machine."""

    __slots__ = ()
    name: str
    """Its name."""
    managed: int
    """Pages that it manages."""


class CacheStat(Part):
    """Counts of a cache since the start. ``spec: 6.4``"""

    __slots__ = ()
    alloc_fast: int
    """Allocations from the CPU's own objects."""
    alloc_slow: int
    """Other allocations."""
    free_fast: int
    """Frees to the CPU's own objects."""
    free_slow: int
    """Other frees."""
    grown: int
    """Slabs that were made."""
    fallbacks: int
    """Slabs of the least order, made because the preferred order failed."""
    shrunk: int
    """Slabs given back."""


class Cache(Part):
    """Size and counters of a cache."""

    __slots__ = ()
    name: str
    """Its name."""
    size: int
    """Bytes of an object."""
    order: int
    """Order of its slabs."""
    slabs: int
    """Slabs."""
    pages: int
    """Their pages."""
    in_use: int
    """Objects in use."""
    stat: CacheStat
    """Counts."""


class Zone(Part):
    """A zone at that time; amounts in pages."""

    __slots__ = ()
    node: int
    name: str
    free: int
    """As watermark checks see it."""
    min: int
    low: int
    high: int
    active_anon: int
    inactive_anon: int
    active_file: int
    inactive_file: int
    present: int
    managed: int
    all_unreclaimable: bool
    free_blocks: Named[list[int]]
    """Free blocks by order, for each migratetype that has any."""


class AllocFailure(Part):
    """An allocation that failed."""

    __slots__ = ()
    at_ns: int
    """Time."""
    task: str | None
    """The task that ran or was interrupted; none on an idle CPU."""
    cpu: int
    """The CPU."""
    in_interrupt: bool
    """Whether the request came from an interrupt."""
    order: int
    """Order of the request."""
    gfp: int
    """Its flags, with the bits of Linux 6.1."""
    zones: list[Zone]
    """The zones at that time."""


class AllocFailures(Part):
    """The failed allocations of a run."""

    __slots__ = ()
    reported: int
    """Number of reports."""
    first: list[AllocFailure]
    """The first reports."""


class Held(Part):
    """What one use of memory holds in a zone."""

    __slots__ = ()
    pages: int
    """Pages."""
    blocks: int
    """Blocks of the largest order with such a page."""
    alone: int
    """Blocks that hold, beside this use, only page cache, anonymous memory and free pages."""


class Obstacles(Part):
    """What prevents large blocks in a zone."""

    __slots__ = ()
    zone: str
    """Name of the zone."""
    blocks: int
    """Blocks of the largest order, including those that begin or end outside of the zone."""
    free: int
    """Free blocks."""
    easy: int
    """Blocks that hold only page cache, anonymous memory and free pages."""
    held: Named[Held]
    """By what holds them: ``file``, ``anon``, ``per-CPU lists``, the kernel's uses, and slabs by cache."""


class Line(Part):
    """A line that a program printed."""

    __slots__ = ()
    task: str
    """Task."""
    number: int
    """Its number."""
    text: str
    """Its text."""
    at_ns: int
    """Time."""
    latency_ns: int
    """Time since the task's last line, or since its start."""


class Attempt(Part):
    """An attempt to allocate a large block."""

    __slots__ = ()
    at_ns: int
    """Start."""
    took_ns: int
    """Duration."""
    zone: str | None
    """The zone that served it; none if it failed."""


class HighOrder(Part):
    """The attempts of a step ``high-order``."""

    __slots__ = ()
    name: str
    """Name."""
    order: int
    """Order."""
    attempts: list[Attempt]
    """Attempts, in their order."""


class Mark(Part):
    """Counters at a point of a program."""

    __slots__ = ()
    name: str
    """Name."""
    task: str
    """Task."""
    number: int
    """Its number."""
    at_ns: int
    """Time."""
    counters: Named[int]
    """Counters since the start of the run."""
    obstacles: list[Obstacles]
    """What prevents large blocks, by zone."""


class Programs(Part):
    """The report of all programs of a run."""

    __slots__ = ()
    lines: list[Line]
    """Lines that were printed."""
    high_order: list[HighOrder]
    """Attempts at large blocks."""
    marks: list[Mark]
    """Marks."""
    failures: Named[int]
    """Failures and how often: processes that ended by them, names that did not exist."""
    processes: int
    """Processes that ran."""


class Task(Part):
    """The outcome of a task."""

    __slots__ = ()
    name: str
    """Its name."""
    number: int
    """Its number among those of its name."""
    started_ns: int | None
    """Time of its start; none if it has not started."""
    ended_ns: int | None
    """Time of its end; none if it has not ended."""
    failed: str | None
    """Why it ended early, if it did."""
    user_ns: int
    """CPU time of its own work."""
    system_ns: int
    """CPU time of the kernel's work for it."""
    iowait_ns: int
    """Time that it waited for I/O."""


class Simulation(Answer):
    """The outcome of a run."""

    __slots__ = ()
    _question = "simulate"
    scenario: str
    """The scenario."""
    machine: str
    """The machine."""
    kernel: str
    """The kernel."""
    kernel_changes: list[str]
    """Changes of the kernel by the scenario or its user, each as ``KEY = VALUE``."""
    seed: int
    """The seed."""
    calibration: str
    """Hash of the calibration, in hexadecimal."""
    ended: str
    """Why the run ended: ``finished``, ``time-limit``, ``stopped`` or ``stuck``."""
    elapsed_ns: int
    """Virtual time at its end."""
    zones: list[ZoneSize]
    """The zones of its memory."""
    tasks: list[Task]
    """The tasks, in the order of the scenario. What they forked is in theirs."""
    memory: Memory
    """Memory at the end."""
    cpu: CpuUse
    """All CPUs' time."""
    kswapd_cpu_ns: int
    """CPU time of kswapd."""
    counters: Named[int]
    """Events since the start, with the names of ``/proc/vmstat`` where there is one."""
    devices: Named[Named[int]]
    """Counters of the devices."""
    slabs: list[Cache]
    """Slab caches at the end."""
    alloc_failures: AllocFailures
    """Allocations that failed, as the kernel reports them."""
    programs: Programs
    """The report of the programs."""
    samples: list[Sample]
    """Samples."""
    trace_hash: str
    """A digest of which task ran when and where, and of the counters: equal runs have equal digests."""

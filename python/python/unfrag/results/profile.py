"""What a profile answers with."""

from __future__ import annotations

from ..answers import Answer, Named, Part
from .window import Window


class Spread(Part):
    """Quantiles."""

    __slots__ = ()
    p10: int
    """The tenth percentile."""
    median: int
    """The fiftieth percentile."""
    p90: int
    """The ninetieth percentile."""
    max: int
    """The largest."""


class Objects(Part):
    """Objects of a cache."""

    __slots__ = ()
    _absent = {"held": 0}
    cache: str
    """Name of the cache; ``kmalloc-`` and a size for memory by size, ``?-`` and a size where the kernel does not
    say."""
    object_bytes: int
    """Bytes of an object."""
    taken: int
    """Allocated."""
    freed: int
    """Of these, freed."""
    held: int
    """Of these, in use at the end of the recording."""
    high_water: int
    """Most at one time."""


class Files(Part):
    """Files in page cache."""

    __slots__ = ()
    read_files: int
    """Files of which pages were read."""
    read_file_pages: Spread
    """Their sizes, by the last page read."""
    written_files: int
    """Files of which pages were written."""
    written_file_pages: Spread
    """Their sizes, by the last page written."""
    removed_pages: int
    """Pages that the program itself took out of page cache, by removing or shortening files."""


class Freed(Part):
    """Freed pages, by who freed them."""

    __slots__ = ()
    _absent = {"running": 0, "at_exit": 0, "by_others": 0, "reclaimed": 0, "unseen": 0}
    running: int
    """By the process that took them, before it ended."""
    at_exit: int
    """By the process that took them, as it ended."""
    by_others: int
    """By another process, or later by the kernel."""
    reclaimed: int
    """By the kernel's reclaim."""
    unseen: int
    """Without an event."""


class Pages(Part):
    """Pages of a class."""

    __slots__ = ()
    _absent = {"held_pages": 0, "lifetime_us": None}
    taken_pages: int
    """Allocated."""
    taken_by_order: list[int]
    """Allocations by order, up to the largest that occurred."""
    high_water_pages: int
    """Most at one time."""
    freed_pages: Freed
    """Freed, by who freed them."""
    held_pages: int
    """In use at the end of the recording."""
    lifetime_us: Spread | None
    """Time from allocation to free, of each page whose free is an event; left out if there is none."""


class PerProcess(Part):
    """Quantiles over the processes of a program."""

    __slots__ = ()
    _absent = {"cpu_us": None, "blocked_us": None}
    life_us: Spread
    """From start to end."""
    cpu_us: Spread | None
    """On a CPU, if the recording says so."""
    blocked_us: Spread | None
    """In uninterruptible sleep: waiting for a disk, mostly."""
    anonymous_taken_pages: Spread
    """Anonymous pages taken."""
    anonymous_high_water_pages: Spread
    """Anonymous pages at one time, at most."""
    page_tables_high_water_pages: Spread
    """Page tables at one time, at most."""
    file_read_pages: Spread
    """Pages read into page cache."""
    file_written_pages: Spread
    """Pages of page cache taken to write to."""
    anonymous_percent_by_tenth: list[int]
    """Anonymous pages held at the end of each tenth of a process's life, up to its end or exit, in percent of its
    most: the mean, weighted by that."""


class Use(Part):
    """What a program, or the whole command, did to memory."""

    __slots__ = ()
    _absent = {"cpu_us": None, "vforked": 0, "threads": 0, "started_by": {}, "each": None, "pages": {}, "slab": []}
    name: str
    """Name of the program, such as ``cc1``; with `` (fork)`` appended for processes that ran no program of their
    own."""
    wall_us: int
    """From the start of the first process to the end of the last."""
    cpu_us: int | None
    """Time on CPUs, if the recording says so."""
    processes: int
    """Processes; 0 if the recording does not say."""
    processes_at_most: int
    """Most of them at one time."""
    vforked: int
    """Processes that shared their parent's memory until they ran a program (vfork)."""
    threads: int
    """Threads beside the first of each process."""
    high_water_pages: int
    """Most pages at one time, without those of page cache."""
    started_by: Named[int]
    """Which program started them, and how many."""
    each: PerProcess | None
    """How its processes differ."""
    pages: Named[Pages]
    """Pages by what they are for; a class without any is left out."""
    files: Files
    """Files in page cache."""
    slab: list[Objects]
    """Slab objects by cache, those taken most first; of a program those of which it took a hundredth of its objects
    at least. Empty if they were not recorded."""


class Source(Part):
    """A recording's identity."""

    __slots__ = ()
    file: str
    """File name, without directories."""
    file_bytes: int
    """Its size."""
    sha256: str
    """SHA-256 of its bytes, in hexadecimal digits."""
    command: str
    """The recorded command line; empty if it was not kept."""
    kernel: str
    """``uname -r`` of the recorded kernel."""
    date: str
    """Day of the recording, such as ``2026-11-22``; empty if it does not say."""
    cpus: int
    """CPUs of the host."""
    memory_bytes: int
    """Memory of the host that its allocator managed."""
    page_bytes: int
    """Bytes in a page."""
    recorder: str
    """Which program recorded."""
    profiler: str
    """Which program made the profile."""
    events: int
    """Events."""
    lost_events: int
    """Events that the recorder lost: what they would say is not in the profile."""


class Profile(Answer):
    """A profile."""

    __slots__ = ()
    _question = "profile"
    _absent = {"programs_left_out": 0, "program": [], "window": None}
    profile: int
    """``VERSION``."""
    recording: Source
    """The recording that it came from."""
    programs_left_out: int
    """Programs that took less than a thousandth of all pages each, and are not listed."""
    all: Use
    """The command as a whole."""
    program: list[Use]
    """Its programs, those that took most pages first; empty if the recording does not say which there were."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""

    def to_toml(self) -> str:
        """The profile as a file of TOML that scenarios take programs from."""
        return self._view("toml") or ""

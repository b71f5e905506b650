"""What a replay of slab caches answers with."""

from __future__ import annotations

from ..answers import Answer, Part
from .window import Window


class Held(Part):
    """Memory held at one moment."""

    __slots__ = ()
    pages: int
    """Pages of slabs."""
    requested_bytes: int
    """Bytes that users asked for."""
    waste_bytes: int
    """Bytes of those pages that nobody asked for."""


class Cache(Part):
    """A cache at the end of the trace."""

    __slots__ = ()
    name: str
    """Name."""
    object_size: int
    """Bytes of an object."""
    size: int
    """Bytes with padding."""
    order: int
    """Order of its slabs."""
    objects_per_slab: int
    """Objects of a slab."""
    active_objects: int
    """Objects in use or on CPUs' lists."""
    pages: int
    """Pages of its slabs."""
    allocs: int
    """Allocations."""
    frees: int
    """Frees."""


class Allocator(Part):
    """What one allocator did."""

    __slots__ = ()
    allocator: str
    """``slab``, ``slub`` or ``slqb``."""
    peak: Held
    """When it held most pages."""
    end: Held
    """At the end of the trace."""
    pages_after_shrink: int
    """Pages of slabs after all empty ones were returned."""
    record_pages: int
    """Pages of its own records at the end."""
    slabs_of_order: list[int]
    """Slabs of each order at the end."""
    order_fallbacks: int
    """Slabs that got only the lowest order, for want of a larger block."""
    percent_fast_allocs: int
    """Percent of allocations that a CPU's own list served."""
    percent_fast_frees: int
    """Percent of frees to a CPU's own list."""
    failures: int
    """Allocations without memory."""
    caches: list[Cache]
    """Each cache at the end."""


class SlabReport(Answer):
    """The allocators side by side."""

    __slots__ = ()
    _question = "slab"
    _absent = {"window": None}
    source: str
    """Name of the recording."""
    kernel: str
    """Kernel that was recorded."""
    cpus: int
    """CPUs by which the allocators set their limits."""
    allocations: int
    """Allocations replayed."""
    frees: int
    """Frees replayed."""
    unknown_frees: int
    """Frees of objects from before the trace, left out."""
    silent_frees: int
    """Objects handed out again without a traced free: freed just before."""
    null_frees: int
    """Frees of a null pointer, left out."""
    failed_in_trace: int
    """Allocations that failed when they were recorded, left out."""
    allocators: list[Allocator]
    """What each allocator did."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""

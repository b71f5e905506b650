"""What an inspection answers with."""

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


class FreeOfType(Part):
    """What is free in pageblocks of one migrate type."""

    __slots__ = ()
    pages: int
    """Free pages."""
    blocks: list[int]
    """Free blocks of each order."""
    is_capped: bool
    """Whether the kernel stopped counting, so that more may be free."""


class Zone(Part):
    """A zone at one moment. Indexes stand at the number of their order."""

    __slots__ = ()
    _absent = {"first_free_blocks": []}
    node: int
    """Node id."""
    zone: str
    """Zone name, such as ``DMA32``."""
    managed_pages: int | None
    """Pages that the allocator manages; ``None`` without zoneinfo."""
    free_pages: int | None
    """Pages on the buddy lists; ``None`` if only indexes were read."""
    pcp_pages: int | None
    """Pages on per-CPU lists; ``None`` where zoneinfo is missing, or does not tell them to their end."""
    watermarks: Named[int]
    """min, low, high and boost, in pages, as far as the kernel has them."""
    free_blocks: list[int] | None
    """Free blocks of each order; ``None`` if only indexes were read."""
    first_free_blocks: list[int]
    """Free blocks of the first orders, where no file tells those of the others; left out where ``free_blocks`` has
    all."""
    free_by_type: Named[FreeOfType] | None
    """Free pages by migrate type; ``None`` without pagetypeinfo."""
    is_capped: bool
    """Whether the kernel stopped counting, so that more may be free."""
    free_huge_blocks: int | None
    """Free blocks of a huge page's size (a larger block counts as several)."""
    unusable_index: list[float]
    """Share of free memory that a request of the order cannot use, 0 to 1."""
    fragmentation_index: list[float]
    """Why a request of the order would fail: towards 0 for lack of memory, towards 1 for fragmentation; -1 where a
    block is free."""
    extfrag_for_order_9: int | None
    """Percent of free memory outside blocks of a huge page's size: the score of proactive compaction. Its order is
    9 on most hosts, and ``huge_order`` of the moment on all."""
    pageblocks: Named[int] | None
    """Pageblocks of each type; ``None`` without pagetypeinfo."""


class Moment(Part):
    """Memory at one moment."""

    __slots__ = ()
    name: str
    """Name of the snapshot."""
    page_size: int
    """Bytes in a page."""
    page_size_from: PageSizeFrom
    """How that is known."""
    huge_page_bytes: int
    """Bytes in a huge page."""
    huge_order: int
    """Order of a huge page."""
    memory: Amounts
    """How large the host is."""
    zones: list[Zone]
    """One for each populated zone."""
    notes: list[str]
    """Assumptions, and files that contradict each other."""
    unread: list[Unread]
    """Files that could not be read, and why."""


class Inspection(Answer):
    """What ``unfrag inspect`` prints."""

    __slots__ = ()
    _question = "inspect"
    _absent = {"not_read": [], "window": None}
    source: str
    """Where it came from: a file's or directory's name."""
    snapshots: list[Moment]
    """The moments, in order."""
    not_read: list[Unread]
    """What was there and was not read, with the reason; left out if there is none."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""

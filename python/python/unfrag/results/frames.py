"""What a question about frames of processes answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Named, Part


class PageSizes(Part):
    """Sizes that pages are counted in."""

    __slots__ = ()
    page: int
    """Bytes in a page."""
    huge_order: int
    """Order of a huge page."""
    gib_order: int
    """Order of a gibibyte."""


class FramesOf(Part):
    """Frames that memory lies in; all ``None`` where whoever asks may not see their numbers."""

    __slots__ = ()
    pages: int | None
    """Different frames of pages."""
    huge: int | None
    """Different frames of a huge page's size that they lie in."""
    huge_fewest: int | None
    """How few it could be."""
    gib: int | None
    """Different gibibytes."""
    gib_fewest: int | None
    """How few it could be."""
    moves: int | None
    """Pages that have to move, at least, before all lie in the fewest."""


class Resume(Part):
    """What faults of memory that is mapped anew: ranges of addresses of which a page is in memory."""

    __slots__ = ()
    pages: int
    """In pages."""
    huge: int
    """In ranges of a huge page."""
    gib: int
    """In ranges of a gibibyte."""


#: Why nothing is made of a mapping, or it is not known.
Reason = Literal[
    "process_refuses",
    "mapping_refuses",
    "unfit",
    "misaligned",
    "file",
    "userfault",
    "no_flags",
    "read_only",
    "only_zeroes",
]


class Collapse(Part):
    """What ``MADV_COLLAPSE`` would make of a mapping."""

    __slots__ = ()
    huge_now: int
    """Huge pages that map it already."""
    huge_after: int | None
    """Huge pages that map it then; ``None`` where that is not known."""
    copied_pages: int
    """Pages that are copied."""
    filled_pages: int
    """Pages that are filled with zeroes: memory that it takes more."""
    swapped_pages: int
    """Pages that are read from swap."""
    unknown_ranges: int
    """Ranges of which it is not known."""
    reason: Reason | None
    """Why it is nothing, or not known."""


class Mapping(Part):
    """A mapping."""

    __slots__ = ()
    begin: str
    """Its first address, in hexadecimal."""
    bytes: int
    """Bytes of addresses."""
    name: str
    """What it is of."""
    rights: str
    """Its rights."""
    kind: Literal["anonymous", "shared", "file", "hugetlb", "device"]
    """Whose memory it is."""
    present: int
    """Pages in memory."""
    swapped: int
    """Pages that are swapped out."""
    exclusive: int
    """Pages in memory that nobody else maps."""
    zeroes: int | None
    """Pages of zeroes that are shared; ``None`` without page flags."""
    frames: FramesOf
    """The frames that they lie in."""
    runs: Named[int]
    """Pages by the order of the run of pages that they are in: consecutive and aligned, in addresses and in frames."""
    folios: Named[int]
    """Pages by the order of the folio that they are in; empty without page flags."""
    huge_bytes: int
    """Bytes that huge pages map."""
    collapse: Collapse
    """What ``MADV_COLLAPSE`` would make of it."""
    resume: Resume
    """What faults if it is mapped anew."""


class Process(Part):
    """A process."""

    __slots__ = ()
    pid: int
    """Its number."""
    name: str
    """Its name."""
    mappings: list[Mapping]
    """Its mappings of which something is in memory, in the order of their addresses."""


class Collapsed(Part):
    """What ``MADV_COLLAPSE`` of all mappings would make."""

    __slots__ = ()
    huge_now: int
    """Huge pages that map memory now."""
    huge_after: int
    """Huge pages that map memory then, in mappings of which it is known."""
    made: int
    """Huge pages that would be made: exact where the rule is known, and they can be had."""
    copied_pages: int
    """Pages that are copied."""
    filled_pages: int
    """Pages that are filled with zeroes: memory that it takes more."""
    swapped_pages: int
    """Pages that are read from swap."""
    unknown_pages: int
    """Pages in mappings of which it is not known what would be made."""
    unknown_ranges: int
    """Ranges that are swapped out as a whole: not known."""


class Frames(Answer):
    """In how many frames memory lies, and what huge pages could be made of it."""

    __slots__ = ()
    _question = "frames"
    of: str
    """What it is of."""
    sizes: PageSizes
    """Sizes of pages."""
    processes: list[Process]
    """The processes."""
    present: int
    """Pages in memory; those that several processes map count for each."""
    swapped: int
    """Pages that are swapped out."""
    frames: FramesOf
    """The frames that they lie in."""
    runs: Named[int]
    """Pages by the order of the run of pages that they are in; empty where frames may not be seen."""
    folios: Named[int]
    """Pages by the order of the folio that they are in; empty without page flags."""
    huge_bytes: int
    """Bytes that huge pages map."""
    collapse: Collapsed
    """What ``MADV_COLLAPSE`` of all of it would make."""
    resume: Resume
    """What faults if all of it is mapped anew."""
    notes: list[str]
    """What could not be seen."""

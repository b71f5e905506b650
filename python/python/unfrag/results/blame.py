"""What blame answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Named, Part
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


#: What is known of the frames in use at the beginning.
Start = Literal["page_flags", "unknown"]


class Blocks(Part):
    """Blocks with kernel memory at a moment."""

    __slots__ = ()
    spoilt: int
    """Those with little of it: fewer than half of their frames."""
    filled: int
    """Those that it fills: half of their frames or more. A spoilt block that fills up is no longer spoilt."""


class Cache(Part):
    """A slab cache."""

    __slots__ = ()
    name: str
    """Its name."""
    bytes: int
    """Bytes of its slabs at the end."""
    grown_bytes: int | None
    """By how much it grew; ``None`` with one copy of slabinfo."""


#: What to ask next.
Next = Literal["doctor", "record_slab", "record_longer", "summary"]


class WhatIsSaid(Part):
    """What it comes to."""

    __slots__ = ()
    sentence: str
    """In a sentence."""
    before_share: float | None
    """Share of the spoilt blocks at the end that was not added in the window, from 0 to 1; ``None`` without page
    flags, which tell it."""
    caches: list[Cache]
    """The largest slab caches at the end; empty without slabinfo."""
    advice: str | None
    """What to do about the program that has most of it; ``None`` where nobody has, and where it is none that can be
    told to."""
    next: Next
    """What to ask next."""


class Holder(Part):
    """Who held frames, and what for."""

    __slots__ = ()
    program: str | None
    """Name of the program; all processes of that name together, and the kernel's workers. ``None`` for those whose
    names are not in the recording, which stand last."""
    purpose: str
    """What the frames were for."""
    spoilt_blocks: float
    """Spoilt pageblocks that it answers for, on average."""
    at_end: float
    """Spoilt pageblocks that it answers for at the end."""
    added: float
    """Of these, those that it got in the window: what it has more than at the beginning."""
    share: float
    """Its share of all spoilt blocks, from 0 to 1."""
    taken: int
    """Frames that it took in the recording."""
    held_at_end: int
    """Frames of these that it held at the end."""


class Interval(Part):
    """An interval."""

    __slots__ = ()
    seconds: float
    """When it begins, in seconds from the first event."""
    date: str | None
    """When it begins, in UTC, where the recording says it."""
    spoilt_blocks: float
    """Spoilt pageblocks, on average."""
    by_holder: Named[float]
    """What each holder answers for, by its number among the holders."""


class Blame(Answer):
    """Who held the kernel memory that spoilt pageblocks."""

    __slots__ = ()
    _question = "blame"
    _absent = {"sizes": None, "window": None}
    source: str
    """Name of the recording."""
    kernel_release: str
    """Release of the recorded kernel."""
    events: int
    """Events."""
    lost_events: int
    """Events that the recorder lost, at least."""
    seconds: float
    """Seconds from the first event to the last."""
    began: str | None
    """When it begins, in UTC, where the recording says it."""
    start: Start
    """What is known of the frames in use at the beginning."""
    sizes: Sizes | None
    """Sizes of the host's pages and blocks; left out of JSON where they are the usual ones."""
    all_known_after_seconds: float | None
    """Seconds from the first event to the first moment that is counted, from which on all frames are known: those
    in use before the recording, too. ``None`` if they never are: then all moments count."""
    spoilt_blocks: float
    """Spoilt pageblocks, on average."""
    at_start: Blocks
    """Blocks with kernel memory at the first moment that is counted, and at the last."""
    at_end: Blocks
    """The same at the last moment."""
    answer: WhatIsSaid
    """What it comes to."""
    holders: list[Holder]
    """Who held frames in them, the largest share first."""
    interval_seconds: int
    """Seconds of an interval."""
    intervals: list[Interval]
    """The intervals, in order."""
    days: list[Interval]
    """The days, in order, where there are several."""
    window: Window | None
    """The part of the recording that this is about; ``None`` where all of it is."""

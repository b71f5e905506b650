"""What a forecast answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Part
from .account import PageSizeFrom
from .window import Window


class NotRead(Part):
    """Looks that could not be read whole."""

    __slots__ = ()
    looks: int
    """How many."""
    of: int
    """Of so many."""
    newest: str
    """The newest of them."""
    why: str
    """Why that one could not be read."""
    newest_days_after_last: float | None
    """Days by which it is newer than the last look that was read; ``None`` where it is older, or nothing says when it was
    taken."""


#: Why nothing is foretold: no look has the number, there are fewer than twenty, most of the time has no look, or the trend
#: may as well be none.
Why = Literal["not_in_looks", "too_few_looks", "gaps", "no_trend"]


class When(Part):
    """When a need fails. Days are counted from the last look."""

    __slots__ = ()
    _absent = {name: None for name in ("why", "from_days", "median_days", "to_days", "per_day", "beyond_days")}
    answer: Literal["not_known", "now", "never", "in", "later"]
    """``not_known``; ``now``, as there were too few at the last look; ``never``, as they become more; ``in`` an interval;
    ``later`` than is looked ahead."""
    why: Why | None
    """Why it is not known."""
    from_days: float | None
    """One in ten futures is before this."""
    median_days: float | None
    """The middle; ``None`` beyond ten times of what was looked at."""
    to_days: float | None
    """One in ten futures is after this; ``None`` as above."""
    per_day: float | None
    """Change a day."""
    beyond_days: float | None
    """Where it is ``later``: than so many days."""


class BlocksOverTime(Part):
    """A number of blocks over time."""

    __slots__ = ()
    looks: int
    """Looks that tell it."""
    last: int | None
    """At the last of them."""
    below: int
    """Looks at which they were fewer than needed."""
    last_below_days_before: float | None
    """Days from the last of these to the last look."""
    when: When
    """When the need fails."""


class Forecast(Answer):
    """How long until a need fails."""

    __slots__ = ()
    _question = "forecast"
    _absent = {"window": None}
    window: Window | None
    """The part of the input that it is about, where one was chosen."""
    source: str
    """Name of the input."""
    need: str
    """The need, such as ``64x2M``."""
    count: int
    """Blocks that are needed."""
    block_bytes: int
    """Bytes in each."""
    page_size: int
    """Bytes in a page."""
    page_size_from: PageSizeFrom
    """How that is known."""
    looks: int
    """Looks."""
    undated: int
    """Looks that do not say when they were taken, and count nowhere."""
    dated_by: Literal["names", "recorded", "uptime", "series"]
    """What tells when they were taken: names of directories, what recorded them, how long their host ran, or a range of
    Prometheus."""
    not_read: NotRead | None
    """Looks that could not be read, and count nowhere."""
    seconds: float
    """Seconds from the first look to the last."""
    free: BlocksOverTime
    """Blocks that are free."""
    at_best: BlocksOverTime
    """Blocks that reclaim and compaction could make at best."""

"""The part of a recording that an answer is about."""

from __future__ import annotations

from ..answers import Part


class Window(Part):
    """The same as data."""

    __slots__ = ()
    from_: str | None
    """When it begins, where the recording says at what date it was made."""
    to: str | None
    """When it ends."""
    from_seconds: float
    """When it begins, in seconds after the recording's beginning."""
    to_seconds: float
    """When it ends."""
    recorded_from: str | None
    """When the recording begins and ends, where it says at what date it was made."""
    recorded_to: str | None
    """When the recording ends."""
    recorded_seconds: float
    """Seconds of the recording."""
    read_seconds_before: float
    """Seconds before the window at which reading begins, where page flags tell the state of memory; 0 if with
    it."""
    boots_left_out: int
    """Earlier boots in the window that are not in the answer."""

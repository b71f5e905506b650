"""What is said of a host at any moment."""

from __future__ import annotations

from ..answers import Part


class Amounts(Part):
    """How large a host is."""

    __slots__ = ()
    total_bytes: int | None
    """All, as MemTotal has it; ``None`` without meminfo."""
    in_zones_bytes: int | None
    """Memory that its zones manage; ``None`` where MemTotal does not agree that these are all."""
    free_in_zones_bytes: int | None
    """What of that is free; ``None`` where a zone does not tell."""
    unmanaged_bytes: int | None
    """Memory that MemTotal counts and no zone manages yet: the kernel adds it when it is asked for. ``None`` where it
    is not known to be free: then a zone may be missing as well."""
    unmanaged_free_bytes: int | None
    """What of that is free; ``None`` where that is not known."""

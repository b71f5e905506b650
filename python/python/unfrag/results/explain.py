"""What an explanation of a kernel log answers with."""

from __future__ import annotations

from typing import Literal

from ..answers import Answer, Part


class Zone(Part):
    """A zone at the moment of a failure; amounts in KiB. What the text does not say is ``None``."""

    __slots__ = ()
    node: int
    """NUMA node."""
    zone: str
    """Zone."""
    allowed: bool | None
    """Whether the request may use the zone; ``None`` without flags."""
    free_kib: int | None
    """Free memory."""
    usable_kib: int | None
    """Free memory that counts for the request."""
    mark_kib: int | None
    """The min mark, as that kernel lowers it for the request."""
    boost_kib: int | None
    """What of the printed marks is a boost."""
    protection_kib: int | None
    """What the zone keeps from requests that could use a higher one."""
    largest_usable_order: int | None
    """Order of the largest free block that the request may use; ``None`` if there is none."""
    largest_order: int | None
    """Order of the largest free block."""
    blocks_whole: bool
    """Whether the line of its free blocks is there to its end; without it the two orders are not known."""
    why: str | None
    """Why it did not serve the request; ``None`` where its numbers do not tell, and without a request."""


class Held(Part):
    """Something that holds memory."""

    __slots__ = ()
    kind: str
    """``counter``, ``task``, ``cache`` (a slab cache) or ``code`` (a place in the kernel's code)."""
    name: str
    """Its name."""
    bytes: int
    """How much."""
    count: int | None
    """How many tasks have the name, or how many allocations it is; ``None`` for counters and caches."""
    per_mille: int | None
    """Thousandths of the memory of all zones; ``None`` where that is not in the text."""


#: When to do something: what is done once at once (``now``), what stays, such as a setting, ``later``, what may help ``perhaps``.
When = Literal["now", "later", "perhaps"]


class Advice(Part):
    """Something that would have helped."""

    __slots__ = ()
    action: str
    """What to do, as a sentence."""
    command: str | None
    """The command, where there is one."""
    setting: str | None
    """The sysctl that it sets."""
    value: int | None
    """The value, computed from the report."""
    when: When
    """When to do it."""
    look_first: str | None
    """What to look at for longer before a setting is made, as a log shows one moment: a command."""
    cost: str
    """What it costs."""
    sure: str
    """``certain``, ``likely`` or ``possible``."""


class Report(Part):
    """A failure, with all that are equal to it."""

    __slots__ = ()
    kind: str
    """``allocation-failure``, ``oom``, ``slab``, ``vmalloc``, ``cma``, ``stall`` or ``show-memory``."""
    line: int
    """Line of the first."""
    task: str | None
    """The task that asked; of the first."""
    order: int | None
    """Order of the request; -1 where the OOM killer was run by hand."""
    bytes: int | None
    """Bytes of the request; ``None`` where the page size is not in the text."""
    gfp: list[str]
    """Names of its flags."""
    may_wait: bool | None
    """Whether it could wait for memory; ``None`` without flags."""
    is_fault: bool
    """Whether no page was asked for: a page fault's handler called the OOM killer."""
    how: str
    """How it was allowed to act, in words."""
    kernel: str | None
    """The kernel's release, as far as the text says."""
    rules: str
    """Whose rules were used, and why these."""
    page_bytes: int | None
    """Bytes of a page; ``None`` where the text does not tell."""
    count: int
    """Failures that are equal to this one, itself included."""
    suppressed: int
    """Reports that the kernel kept back beside them."""
    first: str | None
    """Time of the first, as the log writes it."""
    last: str | None
    """Time of the last."""
    verdict: str | None
    """The verdict, a word; ``None`` where there was no failure to judge."""
    answer: str
    """What happened, in one sentence for everybody."""
    summary: str
    """The verdict and what to do, in one sentence."""
    meaning: str
    """The verdict as a sentence."""
    sure: str
    """How sure it is, and what could change it."""
    zones: list[Zone]
    """The zones of the first, in order."""
    held: list[Held]
    """What holds memory, the largest first; empty where the text does not tell."""
    calls: list[str]
    """Functions of the call trace, the innermost first."""
    cgroup: str | None
    """The control group whose limit was reached."""
    cache: str | None
    """The slab cache that got no pages."""
    killed: str | None
    """The task that was killed."""
    stall_ms: int | None
    """Milliseconds that a stall lasted."""
    advice: list[Advice]
    """What would have helped, the most effective first."""
    notes: list[str]
    """What else the text shows."""


class Skipped(Part):
    """A line that was not understood."""

    __slots__ = ()
    line: int
    """Its number, from 1."""
    why: str
    """Why."""


class Explanation(Answer):
    """What a log says."""

    __slots__ = ()
    _question = "explain"
    reports: list[Report]
    """The failures, equal ones once, the most frequent first among those of a kind's first appearance."""
    skipped: list[Skipped]
    """Lines that look like part of a report and were not understood."""
    notes: list[str]
    """What the log cannot say."""
    is_log: bool
    """Whether the text holds a kernel's log at all; of a text that does not nothing is known."""

"""What an experiment answers with."""

from __future__ import annotations

from ..answers import Answer, Named, Part, Setting


class Statistics(Part):
    """Statistics of a metric over the runs of an experiment."""

    __slots__ = ()
    median: float
    """The middle run, or the mean of the two in the middle."""
    min: float
    """The least."""
    max: float
    """The largest."""
    stderr: float | None
    """Standard error of the mean: the sample's deviation over the square root of its size; ``None`` for a single
    run, which tells nothing of it."""


class Unfinished(Part):
    """A run that did not finish."""

    __slots__ = ()
    seed: int
    """Its seed."""
    ended: str
    """Why it ended: ``time-limit``, ``stopped`` or ``stuck``."""
    after_s: float
    """Virtual time at its end."""


class Outcome(Part):
    """One kernel on one machine."""

    __slots__ = ()
    _absent = {"unfinished": []}
    kernel: str
    """Kernel."""
    machine: str
    """Machine."""
    variant: str
    """What is changed about the kernel; empty if nothing."""
    settings: Named[Setting]
    """What differs from the kernel's defaults, and what the source leaves open."""
    metrics: Named[Statistics]
    """What was measured of the runs that finished."""
    unfinished: list[Unfinished]
    """The runs that did not finish."""
    source: Named[float]
    """What the source measured of it."""


class Comparison(Part):
    """A metric of two kernels, A and B."""

    __slots__ = ()
    machine: str
    """Machine."""
    metric: str
    """The metric, with its unit where it has one."""
    a: str
    """Kernel and variant of A."""
    b: str
    """Kernel and variant of B."""
    a_median: float
    """Median of A."""
    b_median: float
    """Median of B."""
    percent: float | None
    """B - A in percent of A; none if A is 0."""
    stderr_percent: float | None
    """The standard error of that, in percent; none of single runs."""
    source_percent: float | None
    """B - A in percent of A as the source measured it."""


class Experiment(Answer):
    """The result of an experiment."""

    __slots__ = ()
    _question = "experiment"
    experiment: str
    """Its name."""
    seed: int
    """Seed of the first run; the others follow."""
    runs: int
    """Runs of each kernel on each machine."""
    calibration: str
    """Hash of the costs of which simulated time is the sum."""
    results: list[Outcome]
    """One for each kernel, machine and variant."""
    comparisons: list[Comparison]
    """One kernel against another, where both ran."""

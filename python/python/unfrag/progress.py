"""Who is told how far long work is: a function, or a bar such as tqdm's."""

from __future__ import annotations

from collections.abc import Callable
from typing import Any, Protocol, TypeAlias, runtime_checkable

from .given import wrong


@runtime_checkable
class Bar(Protocol):
    """A bar that moves by steps, such as ``tqdm.tqdm()``."""

    n: Any
    total: Any

    def update(self, n: Any) -> Any:
        """Moves it by so much."""


#: A function that is called with what is done and all of it, or a bar.
Progress: TypeAlias = Callable[[int, int], Any] | Bar


def teller(progress: Progress | None) -> Callable[[int, int], Any] | None:
    """Progress as a function of what is done and all of it."""
    if not isinstance(progress, Bar):
        if progress is not None and not callable(progress):
            wrong("progress", progress, "a function of what is done and of how much, or a bar such as tqdm.tqdm(),")
        return progress
    bar = progress

    def tell(done: int, total: int) -> None:
        bar.total = total
        bar.update(done - bar.n)

    return tell

"""The extension: what is written in Rust."""

import os
from collections.abc import Callable
from typing import Any, final

__all__ = [
    "Answer",
    "Recording",
    "Stream",
    "UnfragError",
    "__version__",
    "doctor",
    "experiment",
    "explain",
    "inspect",
    "replay",
    "simulate",
]
__version__: str

class UnfragError(ValueError):
    """Why a question cannot be answered: what is wrong, where, and the way out."""

@final
class Stream:
    """A table in Arrow's layout. ``pyarrow.table``, ``polars.from_arrow`` and others take it as it is."""

    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> Any: ...
    def __len__(self) -> int: ...

@final
class Recording:
    """A recording: events, snapshots of procfs, and what is known of the host."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        snapshots: list[str | os.PathLike[str]] = ...,
        release: str | None = None,
    ) -> Recording: ...
    @property
    def path(self) -> os.PathLike[str]: ...
    @property
    def kernel_release(self) -> str: ...
    @property
    def page_size(self) -> int: ...
    @property
    def cpus(self) -> int: ...
    @property
    def source(self) -> str: ...
    @property
    def facts(self) -> dict[str, str]: ...
    @property
    def snapshots(self) -> list[str]: ...
    @property
    def kinds(self) -> list[tuple[str, int]]: ...
    @property
    def metadata(self) -> dict[str, str]: ...
    def snapshot(self, name: str, file: str) -> bytes: ...
    def files(self, name: str | None = None) -> Stream: ...
    def events(self) -> Stream: ...
    def table(self, kind: str) -> Stream: ...
    def __len__(self) -> int: ...

@final
class Answer:
    @property
    def json(self) -> str: ...
    def text(self) -> str: ...
    def html(self) -> str | None: ...
    def svg(self) -> str | None: ...

_Path = str | os.PathLike[str]
_Progress = Callable[[int, int], Any] | None

def replay(
    path: _Path,
    kernels: list[str],
    settings: list[tuple[str, str]],
    recorded: list[tuple[str, str]],
    memory: int | None,
    mode: str,
    start: str,
    reclaim: str,
    compaction: str | None,
    members: int | None,
    snapshots: list[_Path],
    release: str | None,
    any_share: bool,
    memory_budget: int,
    progress: _Progress,
) -> Answer: ...
def simulate(
    scenario: _Path,
    kernel: str | None,
    settings: list[tuple[str, str]],
    machine: str | None,
    seed: int,
    oom_killer: bool,
    costs: _Path | None,
    progress: _Progress,
) -> Answer: ...
def experiment(
    name: str,
    kernels: list[str],
    machines: list[str],
    runs: int | None,
    seed: int,
    costs: _Path | None,
    progress: _Progress,
) -> Answer: ...
def doctor(path: _Path, snapshot: str | None, seconds: float) -> Answer: ...
def inspect(path: _Path, snapshot: str | None) -> Answer: ...
def explain(log: str, is_path: bool) -> Answer: ...

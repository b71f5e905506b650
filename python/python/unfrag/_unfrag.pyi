"""The extension: what is written in Rust."""

import os
from collections.abc import Callable, Sequence
from typing import Any, TypeAlias, TypedDict, final

__all__ = [
    "Answer",
    "Recording",
    "Stream",
    "UnfragError",
    "__version__",
    "account",
    "blame",
    "doctor",
    "experiment",
    "explain",
    "forecast",
    "frames",
    "guard",
    "import_trace",
    "inspect",
    "profile",
    "record",
    "replay",
    "simulate",
    "slab",
    "summary",
    "wakes",
]
__version__: str

class UnfragError(ValueError):
    """Why a question cannot be answered: what is wrong, where, and the way out."""

@final
class Stream:
    """A table in Arrow's layout (`__arrow_c_stream__`)."""

    @property
    def column_names(self) -> list[str]: ...
    def __arrow_c_stream__(self, requested_schema: object | None = None) -> object: ...
    def __len__(self) -> int: ...

@final
class Recording:
    """A recording: events, snapshots of procfs, and what is known of the host."""

    def __new__(
        cls,
        path: str | os.PathLike[str],
        *,
        snapshots: list[str] = ...,
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
    def files(self, name: str | None, time: str) -> Stream: ...
    def events(self, time: str) -> Stream: ...
    def table(self, kind: str, time: str) -> Stream: ...
    def __len__(self) -> int: ...

@final
class Answer:
    """An answer: its JSON, and what it looks like."""

    @property
    def json(self) -> str: ...
    def text(self) -> str: ...
    def html(self) -> str | None: ...
    def svg(self) -> str | None: ...
    def toml(self) -> str | None: ...

class _Wanted(TypedDict):
    command: Sequence[str]
    is_system: bool
    seconds: float | None
    output: str
    slab: bool
    processes: bool
    stacks: bool
    events: Sequence[str]
    anonymous: bool
    command_line: bool
    buffer: int | None

_Path: TypeAlias = str | os.PathLike[str]
_Progress: TypeAlias = Callable[[int, int], Any] | None
_Moment: TypeAlias = tuple[bool, int] | None
_Window: TypeAlias = tuple[_Moment, _Moment]

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
    snapshots: Sequence[_Path],
    release: str | None,
    any_share: bool,
    memory_budget: int,
    within: _Window,
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
def doctor(
    path: _Path,
    snapshot: str | None,
    seconds: float,
    need: list[str],
    huge: int | None,
    after: list[str],
    within: _Window,
) -> Answer: ...
def inspect(path: _Path, snapshot: str | None, within: _Window) -> Answer: ...
def explain(log: bytes | os.PathLike[str]) -> Answer: ...
def summary(path: _Path, release: str | None, within: _Window) -> Answer: ...
def blame(path: _Path, release: str | None, within: _Window) -> Answer: ...
def wakes(path: _Path, release: str | None, within: _Window) -> Answer: ...
def account(
    path: _Path,
    later: _Path | None,
    snapshots: list[str],
    every: float | None,
    page_size: int | None,
    within: _Window,
) -> Answer: ...
def frames(of: int | _Path, proc: _Path) -> Answer: ...
def forecast(path: _Path, need: str, page_size: int | None, seed: int, within: _Window) -> Answer: ...
def profile(path: _Path, release: str | None, within: _Window) -> Answer: ...
def slab(
    path: _Path,
    allocators: list[str],
    rules: str,
    first_attempt: str | None,
    slub_max_order: int | None,
    slub_min_order: int | None,
    slub_min_objects: int | None,
    cpus: int | None,
    memory: int,
    release: str | None,
    within: _Window,
) -> Answer: ...
def import_trace(
    trace: _Path,
    output: _Path,
    snapshots: Sequence[_Path],
    release: str | None,
    settings: list[tuple[str, str]],
) -> int: ...
def record(
    wanted: _Wanted, guardian: list[str]
) -> tuple[int | None, int, str | None, list[tuple[str, str]]]: ...
def guard(spool: _Path, output: _Path, instance: _Path) -> None: ...

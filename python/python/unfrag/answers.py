"""Answers as objects: :class:`Answer`, and :class:`Part`, a part of one."""

from __future__ import annotations

import html
import json
from collections.abc import Iterator
from typing import Any

from . import pictures, tables
from ._unfrag import Answer as _Answer


def _wrap(value: Any) -> Any:
    """A value of JSON as something with attributes."""
    if isinstance(value, dict):
        return Part(value)
    if isinstance(value, list):
        return [_wrap(v) for v in value]
    return value


class Part:
    """A part of an answer. Its keys are attributes: ``part.free_pages`` is ``part["free_pages"]``."""

    __slots__ = ("_data",)

    def __init__(self, data: dict[str, Any]) -> None:
        self._data = data

    def __getattr__(self, name: str) -> Any:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return _wrap(self._data[name])
        except KeyError:
            known = ", ".join(self._data)
            raise AttributeError(f"no {name!r} in this part of the answer; it has {known}") from None

    def __getitem__(self, name: str) -> Any:
        return _wrap(self._data[name])

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._data == other._data

    __hash__ = None  # type: ignore[assignment]

    def __getstate__(self) -> dict[str, Any]:
        return self._data

    def __setstate__(self, data: dict[str, Any]) -> None:
        self._data = data

    def to_dict(self) -> dict[str, Any]:
        """The values as they are in JSON."""
        return self._data

    def __repr__(self) -> str:
        shown = {k: f"[{len(v)} items]" if isinstance(v, list) else v for k, v in self._data.items()}
        return f"{type(self).__name__}({shown!r})"


class Answer(Part):
    """The answer to a question.

    Its rows, for :meth:`to_arrow` and :meth:`to_pandas`, are what one would plot: a replay has a row for each kernel,
    snapshot and zone, a simulation one for each sample, an experiment one for each result, the others one for each zone or
    report.
    """

    __slots__ = ("_question", "_views")

    def __init__(self, question: str, answer: _Answer) -> None:
        super().__init__(json.loads(answer.json))
        self._question = question
        # Drawn when somebody looks, or when the answer is sent elsewhere.
        self._views: _Answer | dict[str, str | None] = answer

    def _view(self, name: str) -> str | None:
        if isinstance(self._views, dict):
            return self._views[name]
        drawn: str | None = getattr(self._views, name)()
        return drawn

    def __getstate__(self) -> Any:
        views = {name: self._view(name) for name in ("text", "html", "svg")}
        return (self._data, self._question, views)

    def __setstate__(self, state: Any) -> None:
        self._data, self._question, self._views = state

    @property
    def text(self) -> str:
        """What the command prints."""
        return self._view("text") or ""

    @property
    def html(self) -> str | None:
        """One HTML page that needs no network, where there is one."""
        return self._view("html")

    @property
    def svg(self) -> str | None:
        """A still picture, where there is one."""
        return self._view("svg")

    def rows(self) -> list[dict[str, Any]]:
        """The rows of the answer, flat: parts of parts have names such as ``memory.free``."""
        return tables.rows(self._question, self._data)

    def summary(self) -> dict[str, Any]:
        """The whole answer as one flat row: what is outside of lists, and of a replay the totals, the accuracy and the
        bars of each kernel, as ``6.18.totals.allocstall`` and ``6.18.what_if.allocstall.low``."""
        return tables.summary(self._question, self._data)

    def to_arrow(self) -> Any:
        """The rows as a ``pyarrow.Table``."""
        import pyarrow

        return pyarrow.Table.from_pylist(self.rows())

    def to_pandas(self) -> Any:
        """The rows as a ``pandas.DataFrame``."""
        import pandas

        return pandas.DataFrame(self.rows())

    def plot(self, ax: Any = None, *, metric: str | None = None) -> Any:
        """Draws the answer with matplotlib, into ``ax`` if given; returns the axes.

        A replay, a simulation and an inspection are curves of a column of their rows (``metric``, such as
        ``"unusable_index.9"``; else free huge blocks or free pages), an experiment has bars of a metric by kernel, a
        diagnosis bars of huge pages by zone, an explanation bars of failures by cause.

        Raises:
            ValueError: there is no such metric; the error names all.
        """
        return pictures.plot(self._question, self._data, ax, metric)

    def __repr__(self) -> str:
        return self.text.rstrip("\n")

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture, or the text."""
        return self.svg or f"<pre>{html.escape(self.text)}</pre>"

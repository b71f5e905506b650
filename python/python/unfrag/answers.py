"""Answers as objects: :class:`Answer`, which each question's own class is one of."""

from __future__ import annotations

import html
import json
from typing import TYPE_CHECKING, Any, ClassVar, TypeVar

from . import pictures, tables
from ._unfrag import Answer as _Answer
from .optional import library
from .parts import Named, Part, Setting

if TYPE_CHECKING:
    import matplotlib.axes
    import pandas
    import polars
    import pyarrow

__all__ = ["Answer", "Named", "Part", "Setting"]

A = TypeVar("A", bound="Answer")


class Answer(Part):
    """The answer to a question.

    ``print`` shows what the command prints; ``repr`` is short. Its rows, for :meth:`to_arrow`, :meth:`to_pandas` and
    :meth:`to_polars`, are what one would plot: a replay has a row for each kernel, snapshot and zone, a simulation one for each
    sample, an experiment one for each result, a summary one for each process, blame one for each holder, wakes
    one for each caller, an account one for each use, frames one for each mapping, a forecast one for each number of blocks, a
    profile one for each program, a replay of slab caches one for each cache, the others one for each zone or report.
    """

    __slots__ = ("_views",)
    #: The question that it answers.
    _question: ClassVar[str] = ""
    _views: _Answer | dict[str, str | None]

    @classmethod
    def _of(cls: type[A], answer: _Answer) -> A:
        """The answer of the extension. It is drawn when somebody looks, or when it is sent elsewhere."""
        return _answer(cls, json.loads(answer.json), answer)

    def _view(self, name: str) -> str | None:
        if isinstance(self._views, dict):
            return self._views[name]
        drawn: str | None = getattr(self._views, name)()
        return drawn

    def __reduce__(self) -> Any:
        views = {name: self._view(name) for name in ("text", "html", "svg", "toml")}
        return (_answer, (type(self), self._data, views))

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

    def to_arrow(self) -> pyarrow.Table:
        """The rows as a ``pyarrow.Table``."""
        table: pyarrow.Table = library("pyarrow").Table.from_pylist(self.rows())
        return table

    def to_pandas(self) -> pandas.DataFrame:
        """The rows as a ``pandas.DataFrame``."""
        frame: pandas.DataFrame = library("pandas").DataFrame(self.rows())
        return frame

    def to_polars(self) -> polars.DataFrame:
        """The rows as a ``polars.DataFrame``."""
        frame: polars.DataFrame = library("polars").DataFrame(self.rows(), infer_schema_length=None)
        return frame

    def plot(self, ax: matplotlib.axes.Axes | None = None, *, metric: str | None = None) -> matplotlib.axes.Axes:
        """Draws the answer with matplotlib, into ``ax`` if given; returns the axes.

        A replay, a simulation and an inspection are curves of a column of their rows (``metric``, such as
        ``"unusable_index.9"``; else free huge blocks or free pages), an experiment has bars of a metric by kernel, a
        diagnosis bars of huge pages by zone, an explanation bars of failures by cause, the others bars of their largest
        rows.

        Raises:
            ValueError: there is no such metric; the error names all.
        """
        drawn: matplotlib.axes.Axes = pictures.plot(self._question, self._data, ax, metric)
        return drawn

    def _about(self) -> str:
        """What it is about, in a few words."""
        return tables.about(self._question, self._data)

    def __str__(self) -> str:
        return self.text.rstrip("\n")

    def __repr__(self) -> str:
        return f"<unfrag.{type(self).__name__} {self._about()}>"

    def _repr_html_(self) -> str:
        """What a notebook shows: the picture, or the text."""
        return self.svg or f"<pre>{html.escape(self.text)}</pre>"


def _answer(cls: type[A], data: dict[str, Any], views: _Answer | dict[str, str | None]) -> A:
    made = cls(data)
    object.__setattr__(made, "_views", views)
    return made

"""The directory of a sweep: one Parquet data set, and beside it, while the sweep runs, its journal.

``rows.parquet`` has all finished rows, in the order of the grid and with a column for each setting; nothing else lies there
that a reader of data sets would take. What the sweep is of stands in the metadata of its schema. Rows that end meanwhile are
files of the journal (``.unfrag``), which is gone when the sweep ends, whatever ends it but a kill; then the next one takes it up.

Invariant: every file is whole or not there; a row is there once.
"""

from __future__ import annotations

import hashlib
import json
import shutil
from collections.abc import Iterable, Mapping, Sequence
from pathlib import Path
from typing import TYPE_CHECKING, Any

from .inputs import write
from .optional import library

if TYPE_CHECKING:
    import pandas
    import polars
    import pyarrow

Row = dict[str, Any]

_ROWS = "rows.parquet"
_JOURNAL = ".unfrag"
_ABOUT = b"unfrag"
#: Columns that stand first and last.
_FIRST, _LAST = ("key", "point"), ("version", "error")


class Sweep:
    """The directory of a sweep: a Parquet data set of a row for each point."""

    def __init__(self, out: str | Path) -> None:
        self.path = Path(out)

    def files(self) -> list[Path]:
        """The files that hold rows."""
        rows = self.path / _ROWS
        return ([rows] if rows.exists() else []) + sorted((self.path / _JOURNAL).glob("part-*.parquet"))

    def about(self) -> dict[str, Any] | None:
        """What it is a sweep of; ``None`` where nothing was begun."""
        begun = self.path / _JOURNAL / "sweep.json"
        if begun.exists():
            found: dict[str, Any] = json.loads(begun.read_text("utf-8"))
            return found
        for file in self.files():
            said = library("pyarrow.parquet").read_schema(file).metadata or {}
            if _ABOUT in said:
                found = json.loads(said[_ABOUT])
                return found
        return None

    def to_arrow(self) -> pyarrow.Table:
        """All rows as a ``pyarrow.Table``, in the order of the grid, none of them twice."""
        return _once(_joined([library("pyarrow.parquet").read_table(file) for file in self.files()]))

    def to_pandas(self) -> pandas.DataFrame:
        """All rows as a ``pandas.DataFrame``."""
        library("pandas")
        frame: pandas.DataFrame = self.to_arrow().to_pandas()
        return frame

    def to_polars(self) -> polars.DataFrame:
        """All rows as a ``polars.DataFrame``."""
        frame: polars.DataFrame = library("polars").DataFrame(self.to_arrow())
        return frame

    def errors(self) -> dict[str, str]:
        """What could not be answered, and why, by key."""
        return {row["key"]: row["error"] for row in self._some("key", "error") if row["error"] is not None}

    def __len__(self) -> int:
        return len({row["key"] for row in self._some("key")})

    def __bool__(self) -> bool:
        return True

    def _some(self, *columns: str) -> list[Row]:
        """These columns of all rows."""
        found: list[Row] = []
        for file in self.files():
            table = library("pyarrow.parquet").ParquetFile(file)
            there = [c for c in columns if c in table.schema_arrow.names]
            found += [dict.fromkeys(columns) | row for row in table.read(columns=there).to_pylist()]
        return found

    def __repr__(self) -> str:
        about = self.about()
        if about is None:
            return f"<unfrag.Sweep {self.path}: nothing yet>"
        names = [c for c in self._columns() if c.startswith("parameter.")]
        fixed = {f"parameter.{name}" for name in about["fixed"]}
        over = ", ".join(n.removeprefix("parameter.") for n in names if n not in fixed)
        failed = len(self.errors())
        said = f", {failed} of them errors" if failed else ""
        rows = f"{len(self)} row{'' if len(self) == 1 else 's'}"
        return f"<unfrag.Sweep {self.path}: {rows} of {about['function']} over {over or 'nothing'}{said}>"

    def _columns(self) -> list[str]:
        names: dict[str, None] = {}
        for file in self.files():
            names |= dict.fromkeys(library("pyarrow.parquet").read_schema(file).names)
        return list(names)

    # What follows is for the sweep itself.

    def _begin(self, about: Mapping[str, Any]) -> None:
        """Makes the directory, or checks that it is of the same sweep."""
        before = self.about()
        if before is None and self.path.is_dir() and any(self.path.glob("*.parquet")):
            raise ValueError(f"{self.path} has Parquet files that no sweep of this version wrote: choose another out=")
        if before is not None and before != about:
            differs = ", ".join(f"{k}: {before.get(k)!r:.60}, not {about[k]!r:.60}" for k in about if before.get(k) != about[k])
            raise ValueError(f"{self.path} is a sweep of something else ({differs}): choose another out=")
        write(self.path / _JOURNAL / "sweep.json", json.dumps(about, indent=1).encode())

    def _finished(self, wanted: Mapping[str, str]) -> set[str]:
        """The keys of the rows that are there, out of the wanted ones by point. A row of a wanted point with another key, or
        with an error, is taken out."""
        good: set[str] = set()
        stale: set[str] = set()
        for row in self._some("key", "point", "error"):
            of = wanted.get(row["point"])
            if of is None:
                continue
            if row["key"] == of and row["error"] is None:
                good.add(of)
            else:
                stale.add(row["key"])
        # A row that failed at first and not later on is there twice until the journal is put in.
        stale -= good
        if stale or any(True for _ in (self.path / _JOURNAL).glob("part-*.parquet")):
            self._settle([], without=stale)
        return good

    def _add(self, rows: list[Row]) -> None:
        """Writes rows as one more file of the journal."""
        name = hashlib.sha256("".join(sorted(r["key"] for r in rows)).encode()).hexdigest()[:16]
        write(self.path / _JOURNAL / f"part-{name}.parquet", _file(_table(rows)))

    def _settle(self, order: Sequence[str], without: Iterable[str] = ()) -> None:
        """Puts the journal into the data set: rows in this order of keys, others behind them."""
        pa = library("pyarrow")
        whole = self.to_arrow()
        place = {of: at for at, of in enumerate(order)}
        leaves = set(without)
        rows = [(place.get(of, len(place)), at) for at, of in enumerate(whole["key"].to_pylist()) if of not in leaves]
        whole = whole.take(pa.array([at for _, at in sorted(rows)], pa.int64()))
        # Columns of rows that were taken out alone go with them.
        kept = (*_FIRST, *_LAST) if leaves else whole.column_names
        names = [n for n in whole.column_names if n in kept or whole[n].null_count < len(whole)]
        metadata = {_ABOUT: json.dumps(self.about()).encode()}
        if len(whole):
            write(self.path / _ROWS, _file(whole.select(_ordered(names)).replace_schema_metadata(metadata)))
        else:
            (self.path / _ROWS).unlink(missing_ok=True)
        for part in (self.path / _JOURNAL).glob("part-*.parquet"):
            part.unlink()

    def _end(self, order: Sequence[str]) -> None:
        """Puts the journal into the data set, and removes it."""
        self._settle(order)
        if (self.path / _ROWS).exists():
            shutil.rmtree(self.path / _JOURNAL)


def _ordered(names: Sequence[str]) -> list[str]:
    """Columns: what tells rows, parameters, what the inputs held, the answer, and how it went."""
    def rank(name: str) -> int:
        if name in _FIRST:
            return _FIRST.index(name)
        if name in _LAST:
            return 10 + _LAST.index(name)
        return 3 if name.startswith("parameter.") else 4 if name.startswith("content.") else 5

    return sorted(names, key=rank)


def _file(table: Any) -> bytes:
    sink = library("pyarrow").BufferOutputStream()
    library("pyarrow.parquet").write_table(table, sink)
    content: bytes = sink.getvalue().to_pybytes()
    return content


def _table(rows: Sequence[Row]) -> Any:
    """Rows as a table: a column of texts where values of several kinds meet."""
    pa = library("pyarrow")
    names: dict[str, None] = {}
    for row in rows:
        names |= dict.fromkeys(row)
    columns = {name: _column(name, [row.get(name) for row in rows]) for name in names}
    return pa.table(columns).select(_ordered(list(names)))


def _column(name: str, values: list[Any]) -> Any:
    pa = library("pyarrow")
    if name in (*_FIRST, *_LAST):
        return pa.array(values, pa.string())
    kinds = {type(v) for v in values if v is not None}
    is_number = kinds <= {int, float}
    fits = all(not isinstance(v, int) or -(2**63) <= v < 2**63 for v in values)
    if (len(kinds) > 1 and not is_number) or not fits:
        return pa.array([None if v is None else str(v) for v in values], pa.string())
    return pa.array(values)


def _joined(tables: list[Any]) -> Any:
    """Tables one below the other, whatever columns each has."""
    pa = library("pyarrow")
    if not tables:
        return pa.table({name: pa.array([], pa.string()) for name in (*_FIRST, *_LAST)})
    kinds: dict[str, set[Any]] = {}
    for table in tables:
        for field in table.schema:
            if not pa.types.is_null(field.type):
                kinds.setdefault(field.name, set()).add(field.type)
    mixed = {
        name
        for name, of in kinds.items()
        if len(of) > 1 and not all(pa.types.is_integer(t) or pa.types.is_floating(t) for t in of)
    }
    cast = [_as_texts(table, mixed) for table in tables]
    return pa.concat_tables(cast, promote_options="permissive")


def _as_texts(table: Any, names: set[str]) -> Any:
    """The table with these columns as texts."""
    pa = library("pyarrow")
    for at, name in enumerate(table.column_names):
        if name in names and not pa.types.is_null(table.schema.field(at).type):
            table = table.set_column(at, name, table[name].cast(pa.string()))
    return table


def _once(table: Any) -> Any:
    """The last row of each key, where the first one stood."""
    pa = library("pyarrow")
    last = {of: at for at, of in enumerate(table["key"].to_pylist())}
    if len(last) == len(table):
        return table
    return table.take(pa.array(list(last.values()), pa.int64()))

"""Tables of a recording in the libraries that people have: pandas, polars, DuckDB, pyarrow."""

from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow
import pytest

import unfrag

GCC = Path(__file__).parents[2] / "samples" / "gcc-768M.unfrag"


@pytest.fixture(scope="module")
def recording():
    return unfrag.Recording(GCC)


def test_each_library_takes_it_as_a_table(recording):
    events = recording.events()
    names, rows = events.column_names, len(recording)
    frame = pandas.DataFrame.from_arrow(events) if hasattr(pandas.DataFrame, "from_arrow") else events.to_pandas()
    assert list(frame.columns) == names and len(frame) == rows
    assert list(events.to_pandas().columns) == names
    for table in (polars.DataFrame(events), events.to_polars()):
        assert table.columns == names and table.height == rows
    for table in (pyarrow.table(events), events.to_arrow()):
        assert table.column_names == names and table.num_rows == rows
    assert duckdb.sql("select count(*) from events").fetchall()[0] == (rows,)
    assert duckdb.sql("select * from events limit 1").columns == names


def test_the_same_question_has_the_same_answer_in_each(recording):
    allocations = recording.table("mm_page_alloc", time="ns")
    by_pandas = allocations.to_pandas().groupby("order").size().to_dict()
    by_polars = dict(polars.DataFrame(allocations).group_by("order").len().iter_rows())
    by_duckdb = dict(duckdb.sql('select "order", count(*) from allocations group by all').fetchall())
    counted = pyarrow.table(allocations)["order"].value_counts().to_pylist()
    by_pyarrow = {v["values"]: v["counts"] for v in counted}
    assert by_pandas == by_polars == by_duckdb == by_pyarrow and max(by_pandas) == 9


def test_a_time_less_a_later_one_is_negative(recording):
    """Times had no sign, and wrapped."""
    for events in (recording.events(), recording.table("mm_page_alloc")):
        frame, table = events.to_pandas(), polars.DataFrame(events)
        first, last = frame["time"].iloc[0], frame["time"].iloc[-1]
        assert first - last < pandas.Timedelta(0) and str(frame["time"].dtype) == "timedelta64[ns]"
        assert (table["time"][0] - table["time"][-1]).total_seconds() < 0
        assert frame["time"].diff().dropna().min() >= pandas.Timedelta(0)
    numbers = recording.events(time="ns")
    first, last = duckdb.sql("select min(time) - max(time), max(time) - min(time) from numbers").fetchall()[0]
    assert first == -last < 0
    ns = numbers.to_pandas()["time"]
    assert str(ns.dtype) == "int64" and (ns == recording.events().to_pandas()["time"].astype("int64")).all()
    with pytest.raises(ValueError, match='time="s": choose one of duration, ns'):
        recording.events(time="s")


def test_events_go_beside_the_files_that_were_read_last(recording):
    """The join by time that analysts of traces make first."""
    events, files = recording.events(), recording.files("buddyinfo")
    known = files.to_pandas().dropna(subset=["begin"]).sort_values("begin")
    joined = pandas.merge_asof(events.to_pandas(), known, left_on="time", right_on="begin")
    snapshots = joined["snapshot"].nunique()
    assert len(joined) == len(recording) and snapshots > 100
    polared = polars.DataFrame(events).join_asof(
        polars.DataFrame(files).drop_nulls("begin").sort("begin"), left_on="time", right_on="begin"
    )
    assert polared["snapshot"].n_unique() - (polared["snapshot"].null_count() > 0) == snapshots
    e, f = recording.events(time="ns"), recording.files("buddyinfo", time="ns")
    found = duckdb.sql(
        "select count(distinct f.snapshot) from e asof join (select * from f where begin is not null) f on e.time >= f.begin"
    )
    assert found.fetchall()[0] == (snapshots,)


def test_a_table_says_what_it_is(recording):
    assert repr(recording.events()).startswith(f"<unfrag.Table {len(recording)} rows: time, cpu, comm")
    assert len(repr(recording.table("mm_page_alloc"))) < 200


def test_every_kind_is_a_table_for_everybody_whatever_its_fields_are_called():
    with unfrag.Recording(GCC.with_name("fragmented-384M.unfrag")) as recording:
        for kind, events in recording.kinds:
            table = recording.table(kind)
            assert len(set(table.column_names)) == len(table.column_names), kind
            assert len(table.to_pandas()) == len(table.to_polars()) == events
        assert {"comm", "own_comm"} <= set(recording.table("task_newtask").column_names)

"""Recordings, and their events as Arrow tables."""

from pathlib import Path

import pyarrow
import pyarrow.compute as pc
import pytest

import unfrag

GCC = Path(__file__).parents[2] / "samples" / "gcc-768M.unfrag"


@pytest.fixture(scope="module")
def recording():
    return unfrag.Recording(GCC)


def test_what_is_known_of_the_host(recording):
    assert recording.kernel_release.startswith("6.1.0")
    assert (recording.cpus, recording.page_size) == (2, 4096)
    assert len(recording.snapshots) == 153
    assert b"Node 0, zone" in recording.snapshot("1050", "buddyinfo")
    assert repr(recording).startswith("<unfrag.Recording")
    with pytest.raises(KeyError, match="no snapshot"):
        recording.snapshot("never", "buddyinfo")
    with pytest.raises(unfrag.UnfragError, match="No such file"):
        unfrag.Recording("nowhere")


def test_all_events_as_one_table(recording):
    events = recording.events(time="ns")
    table = pyarrow.table(events)
    assert table.num_rows == len(recording) == len(events) == sum(n for _, n in recording.kinds)
    assert table.column_names == events.column_names
    time = table["time"]
    assert pc.min(time).as_py() > 0 and pc.all(pc.greater_equal(time[1:], time[:-1])).as_py()
    kinds = {v["values"]: v["counts"] for v in table["kind"].value_counts().to_pylist()}
    assert kinds == dict(recording.kinds)
    frame = table.to_pandas()
    assert str(frame["comm"].dtype) == "category"


def test_files_of_the_snapshots_as_a_table(recording):
    table = pyarrow.table(recording.files())
    assert table.column_names == ["snapshot", "file", "begin", "end", "content"]
    buddyinfo = pyarrow.table(recording.files("buddyinfo")).to_pandas()
    assert list(buddyinfo["snapshot"]) == recording.snapshots
    assert buddyinfo["content"][7] == recording.snapshot(recording.snapshots[7], "buddyinfo")
    assert (buddyinfo["begin"].dropna() <= buddyinfo["end"].dropna()).all()
    # Those that were read during the trace lie between its first and its last event.
    time = recording.events().to_pandas()["time"]
    during = buddyinfo["begin"].between(time.iloc[0], time.iloc[-1])
    assert during.sum() > 100
    assert table.num_rows > 2 * len(buddyinfo)


def test_tables_carry_what_is_known(recording):
    for table in (recording.events(), recording.table("mm_page_alloc"), recording.files("vmstat")):
        known = {k.decode(): v.decode() for k, v in pyarrow.table(table).schema.metadata.items()}
        assert known == recording.metadata
    assert (known["cpus"], known["kernel_release"]) == ("2", recording.kernel_release)
    assert {f"facts.{name}" for name in recording.facts} <= set(known)


def test_numbers_are_not_copied(recording):
    def address():
        return pyarrow.table(recording.events())["time"].chunk(0).buffers()[1].address

    assert address() == address()


def test_a_table_keeps_its_recording():
    table = pyarrow.table(unfrag.Recording(GCC).events(time="ns"))
    assert pc.sum(table["time"]).as_py() > 0


def test_events_of_one_kind_with_their_fields(recording):
    table = pyarrow.table(recording.table("mm_page_alloc"))
    assert table.num_rows == dict(recording.kinds)["kmem:mm_page_alloc"]
    assert {"time", "cpu", "comm", "pfn", "order", "gfp_flags", "migratetype"} <= set(table.column_names)
    assert pc.max(table["order"]).as_py() <= 10
    assert table.equals(pyarrow.table(recording.table("kmem:mm_page_alloc")))
    with pytest.raises(KeyError, match="no events of kind.*mm_page_free"):
        recording.table("nothing")

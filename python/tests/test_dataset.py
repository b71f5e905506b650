"""The directory of a sweep as a data set, for those who read it without this package."""

import os
import subprocess
import sys
import textwrap
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import duckdb
import pandas
import polars
import pyarrow.dataset
import pytest

import unfrag

BUILD = Path(__file__).parents[2] / "samples" / "small-build.toml"


def fails_at_two(seed, settings):
    if seed == 2:
        raise ValueError("two is too many")
    return {"of": {"seed": seed}, "sum": seed + settings["vm.min_free_kbytes"], "note": "none" if seed == 1 else seed}


GRID = {"seed": [3, 1, 2], "settings": [{"vm.min_free_kbytes": kb, "mode": "a"} for kb in (4096, 1024)]}
ORDER = [(seed, kb) for seed in (3, 1, 2) for kb in (4096, 1024)]
SETTING = "parameter.settings.vm.min_free_kbytes"


@pytest.fixture
def swept(tmp_path):
    with ThreadPoolExecutor(3) as pool:
        return unfrag.sweep(fails_at_two, GRID, out=tmp_path / "rows", executor=pool)


def test_every_reader_takes_the_directory(swept):
    directory = str(swept.path)
    columns = list(swept.to_pandas().columns)
    frame = pandas.read_parquet(directory)
    assert list(frame.columns) == columns and len(frame) == 6
    for table in (polars.read_parquet(directory), polars.scan_parquet(directory).collect()):
        assert table.columns == columns and table.height == 6
    assert duckdb.sql(f"select * from read_parquet('{directory}/*.parquet')").columns == columns
    assert duckdb.sql(f"select count(*) from read_parquet('{directory}/**/*.parquet')").fetchall()[0] == (6,)
    table = pyarrow.dataset.dataset(directory).to_table()
    assert table.column_names == columns and table.num_rows == 6
    assert [f.name for f in swept.path.iterdir()] == ["rows.parquet"], "and nothing else lies there"


def test_rows_stand_in_the_order_of_the_grid_and_a_setting_is_a_column(swept):
    frame = pandas.read_parquet(swept.path)
    assert list(zip(frame["parameter.seed"], frame[SETTING])) == ORDER
    means = frame.groupby(SETTING)["sum"].mean()
    assert dict(means) == {1024: 1026.0, 4096: 4098.0}
    assert set(frame["parameter.settings.mode"]) == {"a"}
    assert list(frame["error"].dropna()) == ["two is too many"] * 2
    assert list(swept.to_polars()[SETTING]) == list(frame[SETTING])


def test_it_says_what_it_holds(swept):
    said = repr(swept)
    assert said.endswith(": 6 rows of test_dataset.fails_at_two over seed, settings.vm.min_free_kbytes, settings.mode, 2 of them errors>")
    assert len(swept) == 6 and len(swept.errors()) == 2
    assert "nothing yet" in repr(unfrag.Sweep(swept.path / "nowhere"))


def test_a_grown_grid_asks_what_is_new(swept):
    asked = []

    def grows(seed, settings):
        asked.append(seed)
        return fails_at_two(seed, settings)

    grid = {"seed": [1, 4]} | {"settings": GRID["settings"]}
    grows.__module__, grows.__qualname__, grows.__code__ = fails_at_two.__module__, "fails_at_two", grows.__code__
    with pytest.raises(ValueError, match="code"):
        unfrag.sweep(grows, grid, out=swept.path, executor=ThreadPoolExecutor(1))
    with ThreadPoolExecutor(1) as pool:
        grown = unfrag.sweep(fails_at_two, grid, out=swept.path, executor=pool).to_pandas()
    first = [(seed, kb) for seed in (1, 4) for kb in (4096, 1024)]
    rest = [point for point in ORDER if point not in first]
    assert list(zip(grown["parameter.seed"], grown[SETTING])) == first + rest and grown["key"].is_unique


def test_values_of_several_kinds_in_a_column_are_texts(tmp_path):
    grid = [{"x": 1}, {"x": "1@60"}, {"x": None}, {"x": True}, {"x": 1.5}]
    with ThreadPoolExecutor(1) as pool:
        frame = unfrag.sweep(lambda x: {"x": 2**64 if x == 1 else 1}, grid, out=tmp_path, executor=pool).to_pandas()
    assert list(frame["parameter.x"].fillna("-")) == ["1", "1@60", "-", "True", "1.5"]
    assert frame["x"][0] == str(2**64)


def test_a_directory_of_other_files_stays_as_it_is(tmp_path):
    pandas.DataFrame({"a": [1]}).to_parquet(tmp_path / "part-1.parquet")
    with pytest.raises(ValueError, match="choose another out="):
        unfrag.sweep(fails_at_two, GRID, out=tmp_path, executor=ThreadPoolExecutor(1))
    assert [f.name for f in tmp_path.iterdir()] == ["part-1.parquet"]


def test_a_killed_sweep_is_a_data_set_again_when_it_is_taken_up(tmp_path):
    """Its journal is beside the rows, and no reader's business."""
    program = textwrap.dedent(
        f"""
        import os, signal, sys, threading, time
        sys.path.insert(0, {str(Path(__file__).parent)!r})
        import unfrag, unfrag.sweeping
        from concurrent.futures import ThreadPoolExecutor
        from test_dataset import fails_at_two, GRID
        unfrag.sweeping._BATCH = 1
        unfrag.sweep(fails_at_two, GRID, out={str(tmp_path)!r}, executor=ThreadPoolExecutor(1),
                     progress=lambda done, total: done == 4 and os.kill(os.getpid(), signal.SIGKILL))
        """
    )
    subprocess.run([sys.executable, "-c", program])
    assert len(unfrag.Sweep(tmp_path)) == 4 and (tmp_path / ".unfrag").is_dir()
    with ThreadPoolExecutor(1) as pool:
        unfrag.sweep(fails_at_two, GRID, out=tmp_path, executor=pool)
    assert polars.read_parquet(str(tmp_path)).height == 6
    assert os.listdir(tmp_path) == ["rows.parquet"]


SCRIPT = """
import unfrag
{guard}
    {call}
"""


@pytest.mark.parametrize(
    "call",
    [
        'unfrag.sweep(unfrag.simulate, {{"seed": [1, 2]}}, out="rows", fixed={{"scenario": {build!r}}})',
        'unfrag.tune(unfrag.simulate, {{"vm.swappiness": (1, 9)}}, "memory.free", runs=1, fixed={{"scenario": {build!r}}}, executor=unfrag.sweeping._processes)',
    ],
    ids=["sweep", "tune"],
)
def test_a_script_without_the_guard_hears_of_it_in_one_line(tmp_path, call):
    def run(guard):
        script = tmp_path / "fleet.py"
        script.write_text(SCRIPT.format(guard=guard, call=call.format(build=str(BUILD))))
        return subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)

    done = run("if True:")
    assert done.returncode == 1 and done.stdout == ""
    assert len(done.stderr.splitlines()) == 1
    assert '`if __name__ == "__main__":`' in done.stderr and "fleet.py, line 4" in done.stderr
    done = run('if __name__ == "__main__":')
    assert done.returncode == 0, done.stderr


def test_a_pool_of_ones_own_without_the_guard_does_not_go_round_in_circles(tmp_path):
    script = tmp_path / "fleet.py"
    script.write_text(
        textwrap.dedent(
            f"""
            import unfrag
            from concurrent.futures import ProcessPoolExecutor
            from multiprocessing import get_context
            pool = ProcessPoolExecutor(1, mp_context=get_context("spawn"))
            unfrag.sweep(unfrag.simulate, {{"seed": [1]}}, out="rows", fixed={{"scenario": {str(BUILD)!r}}}, executor=pool)
            """
        )
    )
    done = subprocess.run([sys.executable, script], cwd=tmp_path, capture_output=True, text=True, timeout=120)
    assert done.returncode == 1 and '`if __name__ == "__main__":`' in done.stderr
    assert len(done.stderr.splitlines()) < 60

"""A result is known by the content of what it was computed from, and by who computed it; never by a path."""

import shutil
from concurrent.futures import ThreadPoolExecutor
from pathlib import Path

import pytest

import unfrag
from unfrag import content

SAMPLES = Path(__file__).parents[2] / "samples"
BUILD = SAMPLES / "small-build.toml"
FIRST, SECOND = SAMPLES / "gcc-768M.unfrag", SAMPLES / "fragmented-384M.unfrag"


def asked(function, grid, out, **options):
    """A sweep, and how many points it asked."""
    told = []
    with ThreadPoolExecutor(1) as pool:
        swept = unfrag.sweep(
            function, grid, out=out, executor=pool, progress=lambda done, total: told.append((done, total)), **options
        )
    return swept, told[-1][1] - told[0][0]


def test_an_edited_scenario_is_asked_again(tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text(BUILD.read_text())
    grid = {"seed": [1, 2]}
    before, n = asked(unfrag.simulate, grid, tmp_path / "out", fixed={"scenario": str(scenario)})
    assert n == 2
    assert asked(unfrag.simulate, grid, tmp_path / "out", fixed={"scenario": str(scenario)})[1] == 0, "what is there is not asked"
    old = before.to_pandas()
    smaller = BUILD.read_text().replace('memory = "', 'memory = "1', 1)
    assert smaller != BUILD.read_text(), "the sample says its memory so"
    scenario.write_text(smaller)
    after, n = asked(unfrag.simulate, grid, tmp_path / "out", fixed={"scenario": str(scenario)})
    new = after.to_pandas()
    assert n == 2 and len(new) == 2, "the old rows are gone"
    assert set(new["content.scenario"]).isdisjoint(old["content.scenario"])
    assert (new["memory.free"].to_numpy() != old["memory.free"].to_numpy()).all()
    # The old content again is the old result.
    scenario.write_text(BUILD.read_text())
    again = asked(unfrag.simulate, grid, tmp_path / "out", fixed={"scenario": str(scenario)})[0].to_pandas()
    assert again.equals(old)


@pytest.mark.parametrize("as_what", [str, Path, unfrag.Recording], ids=["str", "Path", "Recording"])
def test_a_replaced_recording_is_asked_again(tmp_path, as_what):
    recording = tmp_path / "host.unfrag"
    shutil.copy(FIRST, recording)
    fixed = {"kernels": "6.1", "members": 1}
    before = asked(unfrag.replay, {"recording": [as_what(recording)]}, tmp_path / "out", fixed=fixed)[0].to_pandas()
    shutil.copy(SECOND, recording)
    swept, n = asked(unfrag.replay, {"recording": [as_what(recording)]}, tmp_path / "out", fixed=fixed)
    after = swept.to_pandas()
    assert n == 1 and len(after) == 1
    assert before["recording.managed_bytes"][0] != after["recording.managed_bytes"][0]


def test_a_path_of_a_function_of_ones_own_is_known_by_content(tmp_path):
    data = tmp_path / "data.txt"
    data.write_text("1")
    for grid in ({"file": [str(data)]}, {"file": [data]}):
        out = tmp_path / str(len(list(tmp_path.iterdir())))
        data.write_text("1")
        assert asked(read, grid, out)[0].to_pandas()["value"][0] == 1
        data.write_text("2")
        assert asked(read, grid, out)[0].to_pandas()["value"][0] == 2


def read(file):
    return {"value": int(Path(file).read_text())}


def test_other_code_is_another_sweep(tmp_path):
    def one(x):
        return {"y": x + 1}

    def two(x):
        return {"y": x + 2}

    two.__qualname__ = one.__qualname__
    asked(one, {"x": [1]}, tmp_path)
    with pytest.raises(ValueError, match="a sweep of something else .code"):
        asked(two, {"x": [1]}, tmp_path)


def test_a_profile_beside_a_scenario_is_part_of_it(tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text('program = { recorded = { profile = "mine.toml" } }')
    (tmp_path / "mine.toml").write_text("a")
    before = content.of_input(scenario)
    (tmp_path / "mine.toml").write_text("b")
    assert content.of_input(scenario) != before
    (tmp_path / "mine.toml").write_text("a")
    assert content.of_input(scenario) == before


def test_this_host_is_asked_each_time(tmp_path):
    for _ in range(2):
        swept, n = asked(unfrag.inspect, {"path": ["/proc"]}, tmp_path)
        assert n == 1 and len(swept) == 1


def test_a_row_that_failed_is_asked_again(tmp_path):
    recording = tmp_path / "host.unfrag"
    grid = {"recording": [str(recording), str(FIRST)]}
    fixed = {"kernels": "6.1", "members": 1}
    first = asked(unfrag.replay, grid, tmp_path / "out", fixed=fixed)[0]
    assert list(first.errors().values())[0].startswith(str(recording)) and len(first.errors()) == 1
    assert "1 of them errors" in repr(first)
    shutil.copy(FIRST, recording)
    second, n = asked(unfrag.replay, grid, tmp_path / "out", fixed=fixed)
    assert n == 1, "the row that has an answer is not asked again"
    assert second.errors() == {} and len(second) == 2
    assert second.to_pandas()["6.1.totals.allocations"].nunique() == 1


def test_a_tuning_is_of_the_files_content(tmp_path):
    scenario = tmp_path / "s.toml"
    scenario.write_text(BUILD.read_text())

    def tuned(runs):
        return unfrag.tune(
            unfrag.simulate,
            {"vm.min_free_kbytes": (1024, 8192)},
            "memory.free",
            runs=runs,
            fixed={"scenario": str(scenario)},
            storage=tmp_path / "t.db",
        )

    tuned(2)
    assert len(tuned(3).study.trials) == 3
    scenario.write_text(BUILD.read_text() + "\n# edited\n")
    with pytest.raises(ValueError, match="another tuning .content of the files"):
        tuned(3)


def test_an_input_that_changed_is_refused(tmp_path):
    file = tmp_path / "host.unfrag"
    shutil.copy(FIRST, file)
    given = unfrag.Input(file)
    opened = unfrag.Recording(file)
    assert unfrag.inspect(given) == unfrag.inspect(opened)
    shutil.copy(SECOND, file)
    for ask in (lambda: unfrag.inspect(given), opened.inspect):
        with pytest.raises(unfrag.UnfragError, match="has changed since"):
            ask()

"""Types: what an editor knows of the package is what the package is."""

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
SETTINGS = str(Path(__file__).parents[1] / "pyproject.toml")
SCRIPT = str(Path(__file__).with_name("typed_script.py"))
# Where a library has no types, what it takes and gives is `Any`, and that is said in the script's head.
MYPY = ["mypy", "--config-file", SETTINGS]


@pytest.fixture(scope="module", autouse=True)
def one_cache(tmp_path_factory):
    """What is known of the libraries is found out once; of other options something else is known."""
    with pytest.MonkeyPatch.context() as patched:
        patched.setenv("MYPY_CACHE_DIR", str(tmp_path_factory.mktemp("mypy")))
        yield


@pytest.mark.parametrize(
    "check",
    [
        [*MYPY, "-p", "unfrag"],
        ["mypy.stubtest", "--mypy-config-file", SETTINGS, "--ignore-disjoint-bases", "unfrag._unfrag"],
        [*MYPY, "--cache-dir=/dev/null", "--strict", "--disallow-any-expr", SCRIPT],
    ],
    ids=["the package", "the stubs of the extension", "a script that uses every answer"],
)
def test_types_hold(check, tmp_path):
    done = subprocess.run([sys.executable, "-m", *check], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr


def test_the_script_runs():
    done = subprocess.run([sys.executable, SCRIPT], capture_output=True, text=True)
    assert done.returncode == 0, done.stderr


def test_a_mistake_in_a_script_is_found(tmp_path):
    script = tmp_path / "wrong.py"
    script.write_text('import unfrag\nanswer = unfrag.replay("x", mode="predct")\nanswer.kernls\nanswer.recording.events + "a"\n')
    done = subprocess.run([sys.executable, "-m", *MYPY, script], cwd=tmp_path, capture_output=True, text=True)
    assert done.stdout.count("error:") == 3, done.stdout + done.stderr


def test_pyright_finds_nothing_in_the_script(tmp_path):
    pytest.importorskip("pyright")
    if not shutil.which("node"):
        pytest.skip("pyright needs node, which is not installed")
    environment = os.environ | {"PYRIGHT_PYTHON_IGNORE_WARNINGS": "1"}
    words = [sys.executable, "-m", "pyright", "--pythonpath", sys.executable, "--warnings", SCRIPT]
    done = subprocess.run(words, cwd=tmp_path, capture_output=True, text=True, env=environment)
    if "errors," not in done.stdout and "error," not in done.stdout:
        pytest.skip(f"pyright cannot be had here: {(done.stdout + done.stderr).strip()[-200:]}")
    assert "0 errors" in done.stdout, done.stdout

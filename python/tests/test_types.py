"""Types: what an editor knows of the package is what the package is."""

import subprocess
import sys
from pathlib import Path

import pytest

pytest.importorskip("mypy")
SETTINGS = str(Path(__file__).parents[1] / "pyproject.toml")


@pytest.mark.parametrize(
    "check",
    [
        ["mypy", "--config-file", SETTINGS, "--cache-dir=/dev/null", "-p", "unfrag"],
        ["mypy.stubtest", "--mypy-config-file", SETTINGS, "--ignore-disjoint-bases", "unfrag._unfrag"],
    ],
    ids=["the package", "the stubs of the extension"],
)
def test_types_hold(check, tmp_path):
    done = subprocess.run([sys.executable, "-m", *check], cwd=tmp_path, capture_output=True, text=True)
    assert done.returncode == 0, done.stdout + done.stderr

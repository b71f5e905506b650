"""Every program in the pages about Python, and the notebook."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["python/README.md", "docs/ask-from-python.md", "docs/sweep-settings-over-a-fleet.md"]


def programs(page: str) -> str:
    """The programs of a page, one after the other, but for those that need what is not here."""
    text = (ROOT / page).read_text()
    found = re.findall(r"(<!-- needs: [^>]*-->\n)?```python\n(.*?)```", text, re.S)
    assert found, f"{page} has no program"
    return "\n".join(program for needs, program in found if not needs)


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page, tmp_path):
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    program = tmp_path / "page.py"
    program.write_text(programs(page))
    done = subprocess.run(
        [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "agg"}
    )
    assert done.returncode == 0, done.stderr


def test_the_notebook_runs():
    nbformat = pytest.importorskip("nbformat")
    nbclient = pytest.importorskip("nbclient")
    notebook = nbformat.read(ROOT / "python/notebooks/ask.ipynb", as_version=4)
    nbclient.NotebookClient(notebook, timeout=120, resources={"metadata": {"path": str(ROOT)}}).execute()
    shown = [output for cell in notebook.cells for output in cell.get("outputs", [])]
    assert any("text/html" in output.get("data", {}) and "<svg" in output["data"]["text/html"] for output in shown)
    assert any("image/png" in output.get("data", {}) for output in shown)


def test_every_public_name_has_a_docstring_and_the_stubs_know_it():
    import inspect

    import unfrag

    stubs = (ROOT / "python/python/unfrag/_unfrag.pyi").read_text()
    for name in unfrag.__all__:
        value = getattr(unfrag, name)
        if name != "__version__":
            assert inspect.getdoc(value), name
    for name in dir(unfrag._unfrag):
        if not name.startswith("__"):
            assert re.search(rf"(class|def) {name}\b", stubs), name

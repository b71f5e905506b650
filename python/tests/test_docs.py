"""Every program in the pages about Python, and the notebook."""

import os
import re
import subprocess
import sys
from pathlib import Path

import pytest

ROOT = Path(__file__).parents[2]
PAGES = ["python/README.md", "docs/ask-from-python.md", "docs/sweep-settings-over-a-fleet.md"]


def programs(page: str) -> list[str]:
    """The programs of a page, but for those that need what is not here. A program that does not import the package goes on
    from the one before."""
    text = (ROOT / page).read_text()
    found = re.findall(r"(<!-- needs: [^>]*-->\n)?```python\n(.*?)```", text, re.S)
    assert found, f"{page} has no program"
    scripts: list[str] = []
    for needs, program in found:
        if needs:
            continue
        if "import unfrag\n" in program or not scripts:
            scripts.append(program)
        else:
            scripts[-1] += "\n" + program
    return scripts


@pytest.mark.parametrize("page", PAGES)
def test_the_programs_of_a_page_run(page, tmp_path):
    (tmp_path / "samples").symlink_to(ROOT / "samples")
    for at, text in enumerate(programs(page)):
        program = tmp_path / f"page_{at}.py"
        program.write_text(text)
        done = subprocess.run(
            [sys.executable, program], cwd=tmp_path, capture_output=True, text=True, env=os.environ | {"MPLBACKEND": "agg"}
        )
        assert done.returncode == 0, f"{text}\n{done.stderr}"


NOTEBOOK = ROOT / "python/notebooks/ask.ipynb"


def pictures(notebook):
    """The kinds of pictures that a notebook shows."""
    shown = [output.get("data", {}) for cell in notebook.cells for output in cell.get("outputs", [])]
    svg = sum("<svg" in data.get("text/html", "") for data in shown)
    return {"svg": svg, "png": sum("image/png" in data for data in shown)}


def test_the_notebook_runs_where_it_lies_and_shows_its_pictures(tmp_path):
    nbformat = pytest.importorskip("nbformat")
    pytest.importorskip("nbclient")
    programs = str(Path(sys.executable).parent)
    environment = os.environ | {"PATH": programs + os.pathsep + os.environ["PATH"]}
    words = ["jupyter", "execute", NOTEBOOK.name, f"--output={tmp_path / 'executed'}", "--timeout=180"]
    done = subprocess.run(words, cwd=NOTEBOOK.parent, capture_output=True, text=True, env=environment)
    assert done.returncode == 0, done.stderr
    executed, stored = nbformat.read(tmp_path / "executed.ipynb", as_version=4), nbformat.read(NOTEBOOK, as_version=4)
    assert pictures(executed) == pictures(stored) == {"svg": 2, "png": 2}
    # Who reads it without running it sees what it would say.
    for ours, theirs in zip(stored.cells, executed.cells):
        assert ours.source == theirs.source
        if ours.cell_type == "code":
            assert texts(ours) == texts(theirs)


def texts(cell):
    """What a cell says in words; the names of objects have addresses."""
    said = [output.get("data", {}).get("text/plain", "") for output in cell.outputs]
    return [re.sub(r"0x[0-9a-f]+", "0x", text) for text in said]


def test_every_public_name_has_a_docstring_and_the_stubs_know_it():
    import inspect

    import unfrag

    stubs = (ROOT / "python/python/unfrag/_unfrag.pyi").read_text()
    for name in unfrag.__all__:
        value = getattr(unfrag, name)
        if name != "__version__":
            assert inspect.getdoc(value), name
        if inspect.isfunction(value):
            help_text = inspect.getdoc(value)
            for parameter in inspect.signature(value).parameters:
                assert re.search(rf"\b{parameter}\b", help_text), f"{name}: {parameter} is not explained"
    for name in dir(unfrag._unfrag):
        if not name.startswith("__"):
            assert re.search(rf"(class|def) {name}\b", stubs), name

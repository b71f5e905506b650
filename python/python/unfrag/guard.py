"""The guard of a script that starts processes: they import it anew, and so would start processes themselves."""

from __future__ import annotations

import ast
import multiprocessing
import os
import sys
from types import FrameType

_TEXT = (
    "unfrag.{what}() starts processes, and each imports this script anew: put the call below "
    '`if __name__ == "__main__":`{where}, or give executor='
)


def check(what: str, executor: object) -> None:
    """Ends the program with one line if it lacks the guard.

    Raises:
        SystemExit: processes would be started without end.
    """
    if getattr(multiprocessing.current_process(), "_inheriting", False):
        # This is such a process, which imports the script.
        sys.exit(_TEXT.format(what=what, where=""))
    if executor is None and (where := _unguarded()):
        sys.exit(_TEXT.format(what=what, where=f" ({where})"))


def _unguarded() -> str | None:
    """The file and line of a script from which this is called without a guard."""
    main = sys.modules.get("__main__")
    file = getattr(main, "__file__", None)
    frame: FrameType | None = sys._getframe()
    outermost = None
    while frame is not None:
        if frame.f_code.co_name == "<module>" and frame.f_globals is getattr(main, "__dict__", None):
            outermost = frame
        frame = frame.f_back
    # A notebook and an interactive session are not imported.
    if outermost is None or file is None or not os.path.isfile(file) or outermost.f_code.co_filename != file:
        return None
    with open(file, "rb") as source:
        tree = ast.parse(source.read())
    line = outermost.f_lineno
    for statement in tree.body:
        if statement.lineno <= line <= (statement.end_lineno or statement.lineno):
            is_guard = isinstance(statement, ast.If) and "__name__" in ast.unparse(statement.test)
            return None if is_guard else f"{os.path.basename(file)}, line {line}"
    return None

"""Libraries that only some answers need, each imported when it is asked for."""

from __future__ import annotations

import importlib
from typing import Any

from .errors import extra

#: The extra of the package that brings a library.
EXTRAS = {
    "pyarrow": "arrow",
    "pyarrow.parquet": "arrow",
    "pandas": "pandas",
    "polars": "polars",
    "matplotlib": "plot",
    "matplotlib.pyplot": "plot",
    "optuna": "tune",
    "ray": "ray",
}


def library(name: str) -> Any:
    """The library of this name.

    Raises:
        MissingExtraError: it is not installed; the error names the extra that brings it.
    """
    try:
        return importlib.import_module(name)
    except ModuleNotFoundError as e:
        # What the library itself lacks is not what this error is about.
        if e.name and name.split(".")[0] == e.name.split(".")[0]:
            raise extra(name.split(".")[0], EXTRAS[name]) from None
        raise

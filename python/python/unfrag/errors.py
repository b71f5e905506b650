"""Errors of several kinds: each is an :class:`UnfragError`, and what Python calls such an error too."""

from __future__ import annotations

import errno

from ._unfrag import UnfragError

__all__ = ["ForbiddenError", "MissingFileError", "UnfragError", "UnknownNameError"]


class MissingFileError(UnfragError, FileNotFoundError):
    """A file that is not there."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.errno = errno.ENOENT

    def __str__(self) -> str:
        return str(self.args[0])


class ForbiddenError(UnfragError, PermissionError):
    """A file that this user may not read or write."""

    def __init__(self, text: str) -> None:
        super().__init__(text)
        self.errno = errno.EACCES

    def __str__(self) -> str:
        return str(self.args[0])


class UnknownNameError(UnfragError, KeyError):
    """A name that the recording does not have."""

    def __str__(self) -> str:
        return str(self.args[0])


class MissingExtraError(ModuleNotFoundError):
    """A library that is not installed, with the extra of the package that brings it."""


def extra(module: str, name: str) -> MissingExtraError:
    """The error where ``module`` is missing, which the extra ``name`` brings."""
    text = f"{module} is not installed: pip install 'unfrag[{name}]' brings it"
    return MissingExtraError(text, name=module)

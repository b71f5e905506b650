"""What answers are made of: :class:`Part`, with the keys of JSON as attributes, and :class:`Named`, values by name.

Which attributes a part has, and of which types, its class says by annotations; at run time the same annotations turn JSON
into parts. Of a key that no class knows the value is there all the same.

Invariant: no answer changes what another one, or a caller, holds: dictionaries that are handed out are copies.
"""

from __future__ import annotations

import json
import keyword
import types
from collections.abc import Callable, Iterator, Mapping
from typing import TYPE_CHECKING, Any, ClassVar, Generic, TypeAlias, TypeVar, Union, get_args, get_origin, get_type_hints

T = TypeVar("T")

#: The value of a setting; ``None`` where the kernel computes it.
Setting: TypeAlias = int | float | str | list[int] | None

#: Signs of a short ``repr``.
_SHORT = 100


def _short(value: Any) -> str:
    """A value in a short ``repr``."""
    if isinstance(value, dict):
        return "{…}" if value else "{}"
    if isinstance(value, list):
        return f"[{len(value)} items]"
    text = repr(value)
    return text if len(text) <= 40 else f"{text[:36]}…'"


def _joined(parts: Iterator[str]) -> str:
    """As many of them as a short ``repr`` has room for."""
    out = ""
    for part in parts:
        if len(out) + len(part) > _SHORT:
            return f"{out}, …" if out else "…"
        out = f"{out}, {part}" if out else part
    return out


class Part:
    """A part of an answer. Its keys are attributes: ``part.free_pages`` is ``part["free_pages"]``."""

    __slots__ = ("_data",)
    #: What keys stand for that an answer leaves out.
    _absent: ClassVar[dict[str, Any]] = {}
    _data: dict[str, Any]

    def __init__(self, data: dict[str, Any]) -> None:
        object.__setattr__(self, "_data", data)

    if not TYPE_CHECKING:
        # What type checkers know of a part are its annotations.
        def __getattr__(self, name: str) -> Any:
            if name.startswith("__"):
                raise AttributeError(name)
            try:
                return self[key_of(name)]
            except KeyError:
                known = ", ".join(self._data)
                raise AttributeError(f"no {name!r} in this part of the answer; it has {known}") from None

        def __setattr__(self, name: str, value: Any) -> None:
            raise AttributeError(f"an answer stays as it is: {name} cannot be set; to_dict() is a copy to work with")

    def __getitem__(self, name: str) -> Any:
        known = _kinds(type(self)).get(name)
        if name not in self._data and name in self._absent:
            value = self._absent[name]
        else:
            value = self._data[name]
        return known(value) if known else _plain(value)

    def __contains__(self, name: object) -> bool:
        return name in self._data

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *(name + "_" if keyword.iskeyword(name) else name for name in self._data)]

    def __eq__(self, other: object) -> bool:
        return isinstance(other, Part) and self._data == other._data

    def __hash__(self) -> int:
        return hash(json.dumps(self._data, sort_keys=True))

    def __reduce__(self) -> Any:
        return (type(self), (self._data,))

    def __copy__(self) -> Part:
        return self

    def to_dict(self) -> dict[str, Any]:
        """The values as they are in JSON, in a copy. Their types are those of ``schema()``."""
        copied: dict[str, Any] = json.loads(json.dumps(self._data))
        return copied

    @classmethod
    def schema(cls) -> dict[str, Any]:
        """The JSON Schema of ``to_dict()``."""
        from .schemas import schema

        return schema(cls)

    def __repr__(self) -> str:
        return f"{type(self).__name__}({_joined(f'{k}={_short(v)}' for k, v in self._data.items())})"


class Named(Mapping[str, T], Generic[T]):
    """Values by name, such as counters: ``totals.allocstall`` is ``totals["allocstall"]``."""

    __slots__ = ("_data", "_of")
    _data: dict[str, Any]
    _of: Any

    def __init__(self, data: dict[str, Any], of: Any = Any) -> None:
        object.__setattr__(self, "_data", data)
        object.__setattr__(self, "_of", of)

    def __getattr__(self, name: str) -> T:
        if name.startswith("__"):
            raise AttributeError(name)
        try:
            return self[key_of(name)]
        except KeyError:
            known = _joined(iter(self._data))
            raise AttributeError(f"no {name!r} here; there are {known}") from None

    def __setattr__(self, name: str, value: Any) -> None:
        raise AttributeError(f"an answer stays as it is: {name} cannot be set")

    def __getitem__(self, name: str | int) -> T:
        # Where names are numbers, such as orders, both do.
        found: T = _converter(self._of)(self._data[str(name)])
        return found

    def __iter__(self) -> Iterator[str]:
        return iter(self._data)

    def __len__(self) -> int:
        return len(self._data)

    def __dir__(self) -> list[str]:
        return [*super().__dir__(), *self._data]

    def __reduce__(self) -> Any:
        return (Named, (self._data, self._of))

    def to_dict(self) -> dict[str, Any]:
        """The values as they are in JSON, in a copy."""
        copied: dict[str, Any] = json.loads(json.dumps(self._data))
        return copied

    def __repr__(self) -> str:
        return f"Named({_joined(f'{k}={_short(v)}' for k, v in self._data.items())})"


def key_of(name: str) -> str:
    """The key of JSON that an attribute stands for."""
    plain = name[:-1]
    return plain if name.endswith("_") and keyword.iskeyword(plain) else name


def _plain(value: Any) -> Any:
    """A value of which no class says what it is."""
    if isinstance(value, dict):
        return Part(value)
    if isinstance(value, list):
        return [_plain(v) for v in value]
    return value


_HINTS: dict[type, dict[str, Any]] = {}
_KINDS: dict[type, dict[str, Callable[[Any], Any]]] = {}


def hints(cls: type[Part]) -> dict[str, Any]:
    """The type of each key of a class."""
    if cls not in _HINTS:
        of = get_type_hints(cls).items()
        _HINTS[cls] = {key_of(name): hint for name, hint in of if not name.startswith("_")}
    return _HINTS[cls]


def _kinds(cls: type[Part]) -> dict[str, Callable[[Any], Any]]:
    """How values of a class's keys become what its annotations say."""
    if cls not in _KINDS:
        _KINDS[cls] = {name: _converter(hint) for name, hint in hints(cls).items()}
    return _KINDS[cls]


def _same(value: Any) -> Any:
    return value


def _converter(hint: Any) -> Callable[[Any], Any]:
    """What makes of a value of JSON one of a type."""
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        some = [_converter(a) for a in arguments if a is not type(None)]
        inner = some[0] if len(some) == 1 else _same
        return _same if inner is _same else lambda v: None if v is None else inner(v)
    if origin is list:
        each = _converter(arguments[0])
        return (lambda v: list(v)) if each is _same else lambda v: [each(x) for x in v]
    if origin is tuple:
        all_of = [_converter(a) for a in arguments]
        return lambda v: tuple(of(x) for of, x in zip(all_of, v))
    if origin is Named:
        return lambda v: Named(v, arguments[0])
    if isinstance(hint, type) and issubclass(hint, Part):
        return hint
    return _same

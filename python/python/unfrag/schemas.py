"""The JSON Schema of an answer, out of the annotations of its classes."""

from __future__ import annotations

import types
from typing import Any, Literal, Union, get_args, get_origin

from .parts import Named, Part, hints

_PLAIN = {int: "integer", float: "number", str: "string", bool: "boolean", type(None): "null"}


def schema(cls: type[Part]) -> dict[str, Any]:
    """The schema of a class; of the parts in it, below ``$defs``."""
    known: dict[str, dict[str, Any]] = {}
    own = _object(cls, known)
    return {"$schema": "https://json-schema.org/draft/2020-12/schema", **own, "$defs": known}


def _object(cls: type[Part], known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    of = hints(cls)
    return {
        "title": cls.__name__,
        "type": "object",
        "properties": {name: _type(hint, known) for name, hint in of.items()},
        "required": sorted(set(of) - set(cls._absent)),
        "additionalProperties": False,
    }


def _type(hint: Any, known: dict[str, dict[str, Any]]) -> dict[str, Any]:
    origin, arguments = get_origin(hint), get_args(hint)
    if origin in (Union, types.UnionType):
        return {"anyOf": [_type(a, known) for a in arguments]}
    if origin is list:
        return {"type": "array", "items": _type(arguments[0], known)}
    if origin is tuple:
        each = [_type(a, known) for a in arguments]
        return {"type": "array", "prefixItems": each, "minItems": len(each), "maxItems": len(each)}
    if origin is Literal:
        return {"enum": list(arguments)}
    if origin is Named:
        return {"type": "object", "additionalProperties": _type(arguments[0], known)}
    if isinstance(hint, type) and issubclass(hint, Part):
        name = f"{hint.__module__.rpartition('.')[2]}.{hint.__name__}"
        if name not in known:
            known[name] = {}
            known[name] = _object(hint, known)
        return {"$ref": f"#/$defs/{name}"}
    return {"type": _PLAIN[hint]}

"""Does a value have the form of a variable, as the map of a definition holds it?

`compiler/shapes.py` writes the forms. A form that this code does not know takes each value: an
operator's repair must not fail because of it.
"""

from __future__ import annotations

from collections.abc import Mapping
from typing import Any, Final

from holdfast.asl.program import Json

#: For each simple form, the Python types that its JSON value may have. A bool is not accepted as an
#: int: it is one in Python, but not in JSON.
_SIMPLE: Final[Mapping[str, tuple[type, ...]]] = {
    "None": (type(None),),
    "bool": (bool,),
    "int": (int,),
    "float": (int, float),
    "str": (str,),
    "date": (str,),
    "datetime": (str,),
    "time": (str,),
    "Decimal": (str,),
    "UUID": (str,),
    "Path": (str,),
}


def misfit(shapes: Mapping[str, Any], name: str, value: Json) -> str | None:
    """Return what the variable `name` expects where the value differs, or None. Nothing is known of
    a variable of the compiler's own, or of an older release's map.
    """
    form = shapes.get("variables", {}).get(name)
    return None if form is None else _misfit(value, form, name, shapes.get("models", {}))


def _misfit(value: Any, form: Any, where: str, models: Mapping[str, Any]) -> str | None:
    if isinstance(form, str):
        kinds = _SIMPLE.get(form)
        fits = kinds is None or (isinstance(value, kinds) and _is_bool(value) <= (bool in kinds))
        return None if fits else f"{where} expects {form}"
    ((kind, of),) = form.items()
    match kind, value:
        case "any", _:
            found = [_misfit(value, one, where, models) for one in of]
            return None if None in found else found[0]
        case "text", _:
            return None if value in of else f"{where} expects one of {', '.join(map(repr, of))}"
        case "list", list():
            parts = [(item, of, f"{where}[{place}]") for place, item in enumerate(value)]
        case "tuple", list() if len(value) == len(of):
            pairs = zip(value, of, strict=True)
            parts = [(item, one, f"{where}[{place}]") for place, (item, one) in enumerate(pairs)]
        case "dict", dict():
            parts = [(item, of, f"{where}.{key}") for key, item in value.items()]
        case "model", dict() if value.keys() == models[of].keys():
            parts = [(value[key], one, f"{where}.{key}") for key, one in models[of].items()]
        case "model", _:
            return f"{where} expects {of}, an object with {', '.join(models[of]) or 'no field'}"
        case _:
            return f"{where} expects a {kind}"
    found = [_misfit(*part, models) for part in parts]
    return next((why for why in found if why is not None), None)


def _is_bool(value: object) -> bool:
    return isinstance(value, bool)

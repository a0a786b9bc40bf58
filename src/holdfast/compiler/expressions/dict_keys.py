"""The keys of dicts: ints and members of enums, which the JSON of a dict has as texts.

JSON has text keys only, and pydantic writes the key `5` as `"5"`. So a key is written as such a
text where a dict is made, changed or looked into, and the text becomes the key again where the
keys are gone through. The type of the dict says what its keys are.
"""

from __future__ import annotations

from typing import Final

from holdfast.compiler.context import TypedQuery
from holdfast.compiler.expressions.query import (
    Constant,
    Flat,
    QueryTree,
    Variable,
    invoke,
    mapped,
)
from holdfast.compiler.types.types import (
    BOOL,
    FLOAT,
    NEVER,
    DictOf,
    EnumOf,
    ListOf,
    Type,
    is_number_key,
    is_text,
    join_keys,
    key_type,
)

#: The types of keys, in words.
KEYS: Final = "texts, ints or members of an enum"


def written(key: TypedQuery) -> QueryTree:
    """Return the text of a key that `key_type` knows."""
    if not is_number_key(key.type):
        return key.query
    if isinstance(key.query, Constant):
        return Constant(str(key.query.value))
    return invoke("string", key.query)


def read(text: QueryTree, key: Type) -> QueryTree:
    """Return the key of the type whose text this is."""
    return invoke("number", text) if is_number_key(key) else text


def sought(dict_: DictOf, key: TypedQuery) -> QueryTree | None:
    """Return the text of a key that is looked up; None when equal keys have other texts, or other
    keys the same text.
    """
    is_known = key_type(key.type) is not None
    return written(key) if is_known and _is_alike(dict_.key, key.type) else None


def _is_alike(own: Type, key: Type) -> bool:
    """Return True when Python finds a key of the dict by a value exactly if their texts are
    equal.
    """
    if own in (NEVER, key) or key == NEVER:
        return True
    if isinstance(own, EnumOf) and isinstance(key, EnumOf):
        return False
    return (is_like_text(own) and is_like_text(key)) or (is_number_key(own) and is_number_key(key))


def is_like_text(type_: Type) -> bool:
    """Return True for a text, and for a member of an enum that is a text in Python."""
    return is_text(type_) or (isinstance(type_, EnumOf) and issubclass(type_.enum, str))


def with_key(dict_: DictOf, key: TypedQuery, value: Type) -> DictOf | None:
    """Return the type of the dict with one more item; None when no type says what its keys are."""
    added = key_type(key.type)
    joined = None if added is None else join_keys(dict_.key, added)
    return None if joined is None else DictOf(value, key=joined)


def keys_of(mapping: TypedQuery) -> TypedQuery:
    """Return the list of the keys of a dict."""
    assert isinstance(mapping.type, DictOf)
    texts = texts_of_keys(mapping.query)
    key = mapping.type.key
    if is_number_key(key):
        text = Variable("_key")
        texts = mapped(texts, (text.name,), read(text, key))
    return TypedQuery(texts, ListOf(key), mapping.fails)


def texts_of_keys(mapping: QueryTree) -> QueryTree:
    return Flat(invoke("keys", mapping))


def key_help(own: DictOf, key: Type, text: str) -> str:
    """Return a key that the dict can have in place of the value `text` of the type `key`."""
    match own.key:
        case EnumOf(enum):
            return f"{enum.__name__}({text})"
        case _ if is_number_key(own.key) or (own.key == NEVER and key in (BOOL, FLOAT)):
            return f"int({text})"
        case _:
            return f"{text}.value" if isinstance(key, EnumOf) else f"str({text})"

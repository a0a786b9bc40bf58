"""Pages of lists: their size, their order, and tokens that only this stack can create.

A token contains the last item that was shown, so items that are added or removed in the meantime do
not shift the next page. It is signed together with the list that it belongs to, and fits no other
list. It can be used for 24 hours (API reference, `nextToken` of every list).
"""

from __future__ import annotations

import base64
import binascii
import hashlib
import hmac
import zlib
from collections.abc import Callable, Generator, Mapping, Sequence
from typing import Any, Final, TypeVar

from holdfast.limits import CLOCK_ERROR_MS, PAGE_BYTES_MAX
from holdfast.runtime.effects import Clock, Effect
from holdfast.stepfunctions.catalogue import Service
from holdfast.stepfunctions.faults import invalid_token

T = TypeVar("T")

PAGE_DEFAULT: Final = 100  # AWS docs: maxResults 0, or an absent one, means the default of 100
TOKEN_MS: Final = 24 * 3_600_000
_MAC_BYTES: Final = 16
_TIME_BYTES: Final = 8


def page(
    service: Service,
    request: Mapping[str, Any],
    listed: Sequence[T],
    scope: str,
    key_of: Callable[[T], str],
    *,
    is_descending: bool = False,
    bytes_of: Callable[[T], int] = lambda _: 0,
) -> Generator[Effect, Any, tuple[list[T], dict[str, str]]]:
    """Return one page of `listed`, and {"nextToken"} when there is more. Raises InvalidToken.

    `listed` is sorted by its keys. `scope` identifies the list: the operation, and the parts of the
    request that select its items. `bytes_of` gives the size of an item, to keep a page below the
    size that Lambda can return.
    """
    first = 0
    if "nextToken" in request:
        last = yield from read_token(service, request["nextToken"], scope)
        keys = [key_of(one) for one in listed]
        shown_before = [key >= last if is_descending else key <= last for key in keys]
        first = sum(shown_before)
    shown = fitting(listed[first : first + page_size(request)], bytes_of)
    if first + len(shown) >= len(listed):
        return shown, {}
    return shown, {"nextToken": (yield from make_token(service, key_of(shown[-1]), scope))}


def fitting(wanted: Sequence[T], bytes_of: Callable[[T], int]) -> list[T]:
    """Return as many rows as fit into a response. At least one, so that every page makes
    progress.
    """
    total_bytes = 0
    for number, one in enumerate(wanted):
        total_bytes += bytes_of(one)
        if number and total_bytes > PAGE_BYTES_MAX:
            return list(wanted[:number])
    return list(wanted)


def page_size(request: Mapping[str, Any]) -> int:
    return int(request.get("maxResults") or PAGE_DEFAULT)


def make_token(service: Service, last: str, scope: str) -> Generator[Effect, Any, str]:
    now_ms: int = yield Clock()
    packed = now_ms.to_bytes(_TIME_BYTES, "big") + zlib.compress(last.encode())
    return base64.urlsafe_b64encode(_mac(service, packed, scope) + packed).decode()


def read_token(service: Service, token: str, scope: str) -> Generator[Effect, Any, str]:
    """Return the key of the last item that was shown. Raises InvalidToken for a token of another
    list, and for one that has expired.

    The signature is checked before the token is decompressed: a few forged bytes could expand to
    very many.
    """
    try:
        data = base64.b64decode(token.encode(), altchars=b"-_", validate=True)
    except (binascii.Error, ValueError):
        raise invalid_token() from None
    mac, packed = data[:_MAC_BYTES], data[_MAC_BYTES:]
    if not hmac.compare_digest(mac, _mac(service, packed, scope)):
        raise invalid_token()
    age_ms = (yield Clock()) - int.from_bytes(packed[:_TIME_BYTES], "big")
    # A token of the code before tokens had a time begins with other bytes, which read as a time far
    # in the future. Allow for clock skew between two processes.
    if not -CLOCK_ERROR_MS <= age_ms <= TOKEN_MS:
        raise invalid_token()
    return zlib.decompress(packed[_TIME_BYTES:]).decode()


def _mac(service: Service, packed: bytes, scope: str) -> bytes:
    text = f"page:{service.tenant}#{scope}#".encode() + packed
    return hmac.new(service.keys.secret, text, hashlib.sha256).digest()[:_MAC_BYTES]

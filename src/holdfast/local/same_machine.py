"""The requests that `serve` answers: those of programs on this machine, and of its own pages.

The server listens on the loopback address, but a web page in a browser on the same machine can send
requests there, too. Three headers tell such a request apart:

* `Host`: a page of `evil.example` whose name leads to 127.0.0.1 (DNS rebinding) sends its own name.
* `Origin`: a browser names the page's site in a POST, and in a request that a script may read.
* `Sec-Fetch-Site`: a browser names no origin for an image or a link, but says that another site has
  them. Some services of AWS change data on a GET.
"""

from __future__ import annotations

import re
from collections.abc import Mapping, Sequence
from typing import Final

from holdfast.errors import RequestError
from holdfast.local.gateway import LOOPBACK

_HTTP_PORT: Final = 80
_SHOWN_CHARACTERS_MAX: Final = 100
#: Names under `.localhost` are always local. No name server can have `sync-127.0.0.1`: clients of
#: Step Functions put `sync-` before the address for one operation.
_OTHER_HOST: Final = re.compile(
    rf"sync-{re.escape(LOOPBACK)}|[a-z0-9_-]+(\.[a-z0-9_-]+)*\.localhost"
)
#: Sites that are not another one. A browser sends "none" for an address that its user has typed.
_OWN_SITES: Final = frozenset({"none", "same-origin"})


def require_local(
    headers: Mapping[str, Sequence[str]], port: int, *, may_be_linked: bool = False
) -> None:
    """Raise RequestError HF278 for a request that a web page of another site may have sent.

    `headers` has every value of each header, by the name in lower case. `port` is the one on which
    the server listens. `may_be_linked`: another site may lead to this page by a link.
    """
    host = _only("Host", headers.get("host", ()), port)
    if not _is_here(host or "", port):
        raise _refused("Host", host, port, f"{LOOPBACK}:{port} or localhost:{port}")
    origin = _only("Origin", headers.get("origin", ()), port)
    if origin is not None and origin not in {f"http://{one}" for one in _own(port)}:
        raise _refused("Origin", origin, port, f"no origin, or http://{LOOPBACK}:{port}")
    site = _only("Sec-Fetch-Site", headers.get("sec-fetch-site", ()), port)
    if site is not None and site not in _OWN_SITES and not may_be_linked:
        raise _refused("Sec-Fetch-Site", site, port, "same-origin or none")


def _own(port: int) -> set[str]:
    """Return the texts of the server's own address. A client leaves out the port of HTTP."""
    names = (LOOPBACK, "localhost")
    return {f"{name}:{port}" for name in names} | (set(names) if port == _HTTP_PORT else set())


def _is_here(host: str, port: int) -> bool:
    host = host.lower()
    if host in _own(port):
        return True
    name, _, found = host.rpartition(":") if ":" in host else (host, "", str(_HTTP_PORT))
    return found == str(port) and _OTHER_HOST.fullmatch(name) is not None


def _only(header: str, values: Sequence[str], port: int) -> str | None:
    """Return the value of a header; None without one. Two values are refused, because another part
    of the program could read the other one.
    """
    if len(values) > 1:
        raise _refused(header, ", ".join(values), port, "one value")
    return values[0] if values else None


def _refused(header: str, found: str | None, port: int, expected: str) -> RequestError:
    shown = "missing" if found is None else repr(found[:_SHOWN_CHARACTERS_MAX])
    return RequestError(
        "HF278",
        f"the request comes from elsewhere: its header {header} is {shown}, expected: {expected}",
        status=403,
        help=f"`serve` answers programs on this machine, at http://{LOOPBACK}:{port}",
    )

"""Which `Host`, `Origin` and `Sec-Fetch-Site` a request to `serve` may have."""

from __future__ import annotations

import pytest

from holdfast.errors import RequestError
from holdfast.local.same_machine import require_local

PORT = 8765
HOST = f"127.0.0.1:{PORT}"


def is_answered(port: int = PORT, *, may_be_linked: bool = False, **headers: str) -> bool:
    named = {name.replace("_", "-"): [value] for name, value in headers.items()}
    try:
        require_local(named, port, may_be_linked=may_be_linked)
    except RequestError as refused:
        assert (refused.code, refused.status) == ("HF278", 403)
        return False
    return True


@pytest.mark.parametrize(
    "host",
    [
        *(f"127.0.0.1:{PORT}", f"localhost:{PORT}", f"LocalHost:{PORT}"),
        *(f"sync-127.0.0.1:{PORT}", f"bucket.localhost:{PORT}", f"my_own.bucket.localhost:{PORT}"),
    ],
)
def test_a_name_of_this_machine_with_the_port_is_answered(host: str) -> None:
    assert is_answered(host=host)


@pytest.mark.parametrize(
    "host",
    [
        # names that a name server may let lead to this machine
        *(f"evil.example:{PORT}", f"localhost.evil.example:{PORT}", f"sync-127x0x0x1:{PORT}"),
        *(f"127.0.0.1.evil.example:{PORT}", f"sync-127.0.0.1.evil.example:{PORT}"),
        *(f"evillocalhost:{PORT}", f"localhost.:{PORT}", f"127.0.0.1.:{PORT}", "127.0.0.1.nip.io"),
        # other forms of an address; the server does not listen on IPv6
        *(f"[::1]:{PORT}", f"[::ffff:127.0.0.1]:{PORT}", f"::1:{PORT}", f"[::1%25lo]:{PORT}"),
        *(f"127.1:{PORT}", f"2130706433:{PORT}", f"0.0.0.0:{PORT}", f"0x7f000001:{PORT}"),
        # other ports
        *("127.0.0.1", "localhost", "127.0.0.1:", f"127.0.0.1:{PORT}0", f"127.0.0.1:0{PORT}"),
        *("127.0.0.1:80", "bucket.localhost", f"127.0.0.1:{PORT}:{PORT}"),
        # texts that are no host
        *(
            "",
            f":{PORT}",
            f".localhost:{PORT}",
            f"evil.example/.localhost:{PORT}",
            f"a..localhost:{PORT}",
        ),
        *(
            f"evil@127.0.0.1:{PORT}",
            f"127.0.0.1:{PORT}@evil.example",
            f"127.0.0.1:{PORT},evil.example",
        ),
        f"evil.example#.localhost:{PORT}",
    ],
)
def test_any_other_host_is_refused(host: str) -> None:
    assert not is_answered(host=host)


def test_on_the_port_of_http_a_client_leaves_the_port_out() -> None:
    for host in ("localhost", "127.0.0.1", "localhost:80", "bucket.localhost"):
        assert is_answered(80, host=host), host
    assert is_answered(80, host="localhost", origin="http://localhost")
    assert not is_answered(80, host="evil.example")
    assert not is_answered(80, host="localhost", origin="http://evil.example")


def test_a_request_without_a_host_is_refused() -> None:
    with pytest.raises(RequestError) as refused:
        require_local({}, PORT)
    assert refused.value.message == (
        "the request comes from elsewhere: its header Host is missing, expected: "
        f"127.0.0.1:{PORT} or localhost:{PORT}"
    )


@pytest.mark.parametrize("origin", [f"http://127.0.0.1:{PORT}", f"http://localhost:{PORT}"])
def test_a_page_of_serve_itself_may_send_a_request(origin: str) -> None:
    assert is_answered(host=HOST, origin=origin)


@pytest.mark.parametrize(
    "origin",
    [
        *("http://evil.example", "null", "", "file://", "chrome-extension://abc"),
        *("http://localhost", "http://localhost:3000", f"https://127.0.0.1:{PORT}"),
        *(f"http://127.0.0.1:{PORT}.evil.example", f"http://evil.localhost:{PORT}"),
        *(f"http://[::1]:{PORT}", f"127.0.0.1:{PORT}", f"http://http://127.0.0.1:{PORT}"),
    ],
)
def test_a_page_of_any_other_origin_may_not(origin: str) -> None:
    assert not is_answered(host=HOST, origin=origin)
    assert not is_answered(host=HOST, origin=origin, may_be_linked=True)


def test_an_image_or_a_link_of_another_site_is_refused_but_for_a_page_that_may_be_linked() -> None:
    for site in ("cross-site", "same-site", "", "anything"):
        assert not is_answered(host=HOST, sec_fetch_site=site)
        assert is_answered(host=HOST, sec_fetch_site=site, may_be_linked=True)
    for site in ("none", "same-origin"):
        assert is_answered(host=HOST, sec_fetch_site=site)


@pytest.mark.parametrize("header", ["host", "origin", "sec-fetch-site"])
def test_a_header_with_two_values_is_refused(header: str) -> None:
    own = {"host": HOST, "origin": f"http://{HOST}", "sec-fetch-site": "none"}
    headers = {"host": [HOST], header: [own[header], own[header]]}
    with pytest.raises(RequestError, match="expected: one value"):
        require_local(headers, PORT)


def test_a_refusal_shows_at_most_a_hundred_characters_of_what_was_sent() -> None:
    with pytest.raises(RequestError) as refused:
        require_local({"host": ["x" * 60_000]}, PORT)
    assert f"is '{'x' * 100}', expected: 127.0.0.1:{PORT} or" in refused.value.message

"""Who is served: pages, files and sockets without the token, or for another page, are refused."""

from __future__ import annotations

import asyncio
import re

import numpy as np
import pytest

pytest.importorskip("panel")

from tornado.httpclient import AsyncHTTPClient, HTTPClientError, HTTPRequest
from tornado.websocket import websocket_connect

import wavefilt
from wavefilt.viewer import server


def with_server(work):
    """Run ``work(address)`` beside a server."""

    async def served():
        with server.serving(lambda: wavefilt.view(np.random.default_rng(0).standard_normal((4, 64))), "x") as address:
            return await work(address)

    return asyncio.run(served())


async def code(url, **headers):
    try:
        return (await AsyncHTTPClient().fetch(HTTPRequest(url, headers=headers, follow_redirects=False))).code
    except HTTPClientError as error:
        return error.code


async def socket(url, **headers):
    """The code that a socket's opening is refused with; 101 if it is opened."""
    try:
        connection = await websocket_connect(
            HTTPRequest(url.replace("http:", "ws:"), headers=headers), subprotocols=["bokeh", "x.y"]
        )
    except HTTPClientError as error:
        return error.code
    connection.close()
    return 101


def test_all_without_the_token_is_refused():
    async def work(address):
        root, token = re.fullmatch(r"(http://127\.0\.0\.1:\d+/)([\w-]{43})/", address).groups()
        assert await code(address) == 200
        assert await code(f"{address}static/js/bokeh.min.js") == 200
        others = ["", "x" * 43, token[:-1], token.upper(), "static/js/bokeh.min.js", "metadata", "autoload.js", "ws"]
        wrong = "x" * 43
        others += [f"{wrong}/{path}" for path in ("", "static/js/bokeh.min.js", "metadata", "components/os/path/x/y")]
        for path in [*others, f"..%2F{token}"]:
            assert await code(root + path) == 403, path
        assert await code(f"{root}favicon.ico") in (403, 404)
        for path in (f"{address}../../../etc/passwd", f"{address}static/..%2f..%2f..%2fetc/passwd"):
            assert await code(path) in (403, 404)
        assert await socket(f"{root}ws", Origin=root[:-1]) == 403
        assert await socket(f"{root}{'x' * 43}/ws", Origin=root[:-1]) == 403

    with_server(work)


def test_the_socket_is_opened_for_its_own_page_alone():
    async def work(address):
        root = address.split("/")[2]
        port = root.split(":")[1]
        for origin in ("http://evil.example", f"http://localhost:{port}", "http://127.0.0.1:1", "null"):
            assert await socket(f"{address}ws", Origin=origin) == 403
        assert await socket(f"{address}ws", Origin=f"http://{root}") == 101

    with_server(work)


def test_each_server_has_a_token_of_its_own():
    async def work(address):
        return address

    assert with_server(work).split("/")[3] != with_server(work).split("/")[3]


def test_it_listens_on_this_machine_alone_and_a_port_is_used_once():
    async def work(address):
        port = int(address.split(":")[2].split("/")[0])
        with pytest.raises(OSError), server.serving(lambda: None, "x", port):  # noqa: PT011
            pass
        with pytest.raises(OSError):  # noqa: PT011
            await asyncio.open_connection("127.0.0.2", port)

    with_server(work)

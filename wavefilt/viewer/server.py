"""A page served to this machine alone, at an address that nobody can guess."""

from __future__ import annotations

import asyncio
import logging
import secrets
import socket
import threading
import webbrowser
from collections.abc import Callable, Iterator
from contextlib import closing, contextmanager
from typing import Any

import panel as pn
from bokeh.server.server import BaseServer
from bokeh.server.tornado import BokehTornado
from panel.io.server import build_applications
from tornado.httpserver import HTTPServer
from tornado.ioloop import IOLoop
from tornado.web import RequestHandler

HOST = "127.0.0.1"
PAGE = """{% extends base %}
{% block postamble %}
<meta name="viewport" content="width=device-width, initial-scale=1">
<style>body { font-family: sans-serif; padding: 4px 8px }</style>
{% endblock %}
"""


class Refused(RequestHandler):  # type: ignore[misc]
    """What all addresses without the token get."""

    def prepare(self) -> None:
        self.send_error(403)


@contextmanager
def event_loop() -> Iterator[asyncio.AbstractEventLoop]:
    """Use an event loop, and end the tasks of its pages without a word when it is left.

    `asyncio.run` would end them too, but Tornado logs a traceback for each.
    """
    with closing(asyncio.new_event_loop()) as loop:
        asyncio.set_event_loop(loop)
        try:
            yield loop
        finally:
            loop.set_exception_handler(lambda *_: None)
            tasks = asyncio.all_tasks(loop)
            for task in tasks:
                task.cancel()
            logging.disable()
            try:
                loop.run_until_complete(asyncio.wait(tasks, timeout=1) if tasks else asyncio.sleep(0))
            finally:
                logging.disable(logging.NOTSET)


@contextmanager
def serving(page: Callable[[], Any], title: str, port: int = 0) -> Iterator[str]:
    """The address of a server on `HOST` that makes a page for each tab; ``port`` 0 is any that is free.

    Every path begins with a random token, the socket's too, and that is opened for pages of this server alone.
    Needs an event loop. Raises OSError if the port cannot be used.
    """
    listening = socket.create_server((HOST, port))
    listening.setblocking(False)
    port = listening.getsockname()[1]
    token = secrets.token_urlsafe(32)

    def templated() -> Any:
        template = pn.Template(PAGE)
        template.add_panel("view", page())
        template.add_variable("app_favicon", "data:,")  # none
        return template

    application = BokehTornado(
        build_applications(templated, title=title),
        prefix=token,
        extra_websocket_origins=[f"{HOST}:{port}"],
        default_handler_class=Refused,
        ico_path="none",
    )
    http = HTTPServer(application)
    http.add_socket(listening)
    server = BaseServer(IOLoop.current(), application, http)
    server.start()
    try:
        yield f"http://{HOST}:{port}/{token}/"
    finally:
        server.stop(wait=False)


def run(page: Callable[[], Any], title: str, port: int, browser: bool, announce: Callable[[str], None]) -> None:
    """Serve until a signal raises; tell the address, and open it in a browser."""
    with event_loop() as loop, serving(page, title, port) as address:
        announce(address)
        if browser:
            threading.Thread(target=webbrowser.open, args=(address,), daemon=True).start()
        loop.run_forever()

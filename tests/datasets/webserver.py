"""A web server on this machine that can misbehave."""

from __future__ import annotations

import threading
from collections.abc import Callable
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer

Behaviour = Callable[[BaseHTTPRequestHandler], None]


class Server:
    """Answers each path as `routes` says, 404 otherwise; `asked` lists the paths in order."""

    def __init__(self) -> None:
        self.routes: dict[str, Behaviour] = {}
        self.asked: list[str] = []
        server = self

        class Handler(BaseHTTPRequestHandler):
            def do_GET(self) -> None:
                server.asked.append(self.path)
                server.routes.get(self.path, not_found)(self)

            def log_message(self, *_: object) -> None:
                """Stay silent."""

        self._http = ThreadingHTTPServer(("127.0.0.1", 0), Handler)
        self._http.daemon_threads = True
        self.url = f"http://127.0.0.1:{self._http.server_port}"
        threading.Thread(target=self._http.serve_forever, kwargs={"poll_interval": 0.05}, daemon=True).start()

    def close(self) -> None:
        self._http.shutdown()
        self._http.server_close()


def not_found(handler: BaseHTTPRequestHandler) -> None:
    handler.send_error(404)


def serve(body: bytes, *, length: int | None = None, then: Callable[[], object] = lambda: None) -> Behaviour:
    """Send ``body`` under a Content-Length that may be a lie, do ``then``, and close the connection."""

    def answer(handler: BaseHTTPRequestHandler) -> None:
        handler.send_response(200)
        handler.send_header("Content-Length", str(len(body) if length is None else length))
        handler.end_headers()
        handler.wfile.write(body)
        handler.wfile.flush()
        then()
        handler.close_connection = True

    return answer

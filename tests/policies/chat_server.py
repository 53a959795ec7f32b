"""A server on the loopback address that speaks the chat protocol, and misbehaves when told to."""

from __future__ import annotations

import json
import threading
from collections.abc import Iterator
from contextlib import contextmanager
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from typing import Any

Plan = str | int
"""A status code, or `ok`, `garbage`, `html`, `drop`, `not-json-stream`, `empty-stream`, `half-stream`, `hold`."""


class ChatServer(ThreadingHTTPServer):
    """Answers `text`; each entry of `plan` decides one answer, afterwards all are `ok`."""

    daemon_threads = True

    def __init__(self, text: str, plan: list[Plan], key: str | None = None, honours_n: bool = True) -> None:
        super().__init__(("127.0.0.1", 0), _Handler)
        self.text, self.plan, self.key, self.honours_n = text, list(plan), key, honours_n
        self.models: list[dict[str, Any]] = [{"id": "small-model"}, {"id": "other"}]
        self.requests: list[dict[str, Any]] = []
        self.paths: list[str] = []
        self.retry_after: str | None = None
        self.asked = threading.Event()
        self.released = threading.Event()

    def handle_error(self, request: Any, client_address: Any) -> None:
        """A client that goes away amid an answer is what some tests are about."""

    @property
    def url(self) -> str:
        return f"http://127.0.0.1:{self.server_address[1]}/v1"


class _Handler(BaseHTTPRequestHandler):
    server: ChatServer
    protocol_version = "HTTP/1.1"

    def log_message(self, *args: Any) -> None:
        pass

    def _json(self, data: Any, status: int = 200) -> None:
        body = data if isinstance(data, bytes) else json.dumps(data).encode()
        self.send_response(status)
        self.send_header("Content-Type", "application/json")
        self.send_header("Content-Length", str(len(body)))
        if status == 429 and self.server.retry_after:
            self.send_header("Retry-After", self.server.retry_after)
        self.end_headers()
        self.wfile.write(body)

    def _allowed(self) -> bool:
        if self.server.key and self.headers.get("Authorization") != f"Bearer {self.server.key}":
            self._json({"error": {"message": "wrong key"}}, 401)
            return False
        return True

    def do_GET(self) -> None:
        self.server.paths.append(self.path)
        if self._allowed():
            self._json({"object": "list", "data": self.server.models})

    def do_POST(self) -> None:
        self.server.paths.append(self.path)
        request = json.loads(self.rfile.read(int(self.headers["Content-Length"])))
        self.server.requests.append(request)
        if not self._allowed():
            return
        plan = self.server.plan.pop(0) if self.server.plan else "ok"
        self.server.asked.set()
        if plan == "hold":
            self.server.released.wait(60)
        if isinstance(plan, int):
            self._json({"error": {"message": f"planned {plan}"}}, plan)
        elif plan == "garbage":
            self._json(b"\x00\xffnot json")
        elif plan == "html":
            self._json({"detail": "nothing here"})
        elif plan == "drop":
            self.close_connection = True
        elif request.get("stream"):
            self._stream(request, plan)
        else:
            self._whole(request)

    def _whole(self, request: dict[str, Any]) -> None:
        count = request.get("n", 1) if self.server.honours_n else 1
        choices = [
            {
                "index": i,
                "finish_reason": "stop",
                "message": {"role": "assistant", "content": f"{self.server.text}#{i}"},
                "token_ids": [i, i + 1],
                "logprobs": {"content": [{"token": "x", "logprob": -0.5 - i, "bytes": None, "top_logprobs": []}]},
            }
            for i in range(count)
        ]
        usage = {"prompt_tokens": 11, "completion_tokens": 7 * count, "total_tokens": 11 + 7 * count}
        self._json(
            {
                "id": "c",
                "object": "chat.completion",
                "created": 1,
                "model": request["model"],
                "choices": choices,
                "prompt_token_ids": [1, 2, 3],
                "usage": usage,
            }
        )

    def _stream(self, request: dict[str, Any], plan: Plan) -> None:
        self.send_response(200)
        self.send_header("Content-Type", "text/event-stream")
        self.send_header("Connection", "close")
        self.end_headers()
        self.close_connection = True
        if plan == "not-json-stream":
            self.wfile.write(b"data: {broken\n\n")
            return
        if plan == "empty-stream":
            self.wfile.write(b"data: [DONE]\n\n")
            return
        base = {"id": "c", "object": "chat.completion.chunk", "created": 1, "model": request["model"]}
        text = self.server.text
        for index, piece in enumerate([text[: len(text) // 2], text[len(text) // 2 :], ""]):
            choice: dict[str, Any] = {
                "index": 0,
                "delta": {"content": piece},
                "finish_reason": None if piece else "length",
            }
            if piece:
                choice["token_ids"] = [100 + index]
                choice["logprobs"] = {
                    "content": [{"token": piece, "logprob": -1.0 - index, "bytes": None, "top_logprobs": []}]
                }
            extra = {"prompt_token_ids": [1, 2, 3]} if index == 0 else {}
            self.wfile.write(f"data: {json.dumps({**base, 'choices': [choice], **extra})}\n\n".encode())
            if plan == "half-stream":
                return
        usage = {"prompt_tokens": 11, "completion_tokens": 2, "total_tokens": 13}
        self.wfile.write(f"data: {json.dumps({**base, 'choices': [], 'usage': usage})}\n\ndata: [DONE]\n\n".encode())


@contextmanager
def serving(
    text: str = "hello world", plan: list[Plan] | None = None, *, key: str | None = None, honours_n: bool = True
) -> Iterator[ChatServer]:
    """A running server; it stops at the end of the block."""
    server = ChatServer(text, plan or [], key, honours_n)
    thread = threading.Thread(target=server.serve_forever, kwargs={"poll_interval": 0.01})
    thread.start()
    try:
        yield server
    finally:
        server.shutdown()
        thread.join()
        server.server_close()

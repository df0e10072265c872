"""`mqlab console WHERE`: the console alone in the browser, over a store, a Lab's directory or a cluster.

    browser ── GET /?token=… ──▶ page with the console's module
    browser ── POST /ask {"ask": "page", "arguments": {…}} ──▶ a thread of the server ──▶ the main thread has the Lab
       Ctrl-C ──▶ the main thread ends the server

It listens on this machine alone, answers only who has the token, and needs neither Jupyter nor anywidget. A directory
is borrowed as by `mqlab admin`: changes in the page stay in this process. In a cluster what is confirmed is done.
"""

from __future__ import annotations

import hmac
import html
import json
import queue
import secrets
import signal
import threading
import webbrowser
from concurrent.futures import CancelledError, Future
from dataclasses import dataclass, field
from http import HTTPStatus
from http.server import BaseHTTPRequestHandler, ThreadingHTTPServer
from pathlib import Path
from typing import TYPE_CHECKING, Any
from urllib.parse import parse_qs, urlsplit

import click

from mqlab.cli.lab import choose_port, may_open_browser
from mqlab.errors import UsageError

if TYPE_CHECKING:
    from mqlab.course.widgets.boards.console.board import Console

LOOPBACK = "127.0.0.1"
LARGEST_QUESTION = 1 << 20
IDLE_SECONDS = 30
NOTICED_SECONDS = 0.5
"""The longest wait for a question. A Ctrl-C that comes just before a wait does not end it, and is noticed after it."""
PAGE = """<!doctype html>
<html lang="en"><head><meta charset="utf-8"><meta name="viewport" content="width=device-width">
<meta name="referrer" content="no-referrer"><meta name="color-scheme" content="light dark">
<link rel="icon" href="data:,">
<title>{title}</title></head><body><script type="module">{script}</script></body></html>
"""
SERVED = """import {{ served }} from "./frame/page/served.js";
served(board, {label});
"""


@dataclass(frozen=True, slots=True)
class QuestionQueue:
    """Where the server's threads put questions for the main thread, and the token that a question needs."""

    token: str
    page: str
    hosts: tuple[str, ...]
    questions: queue.Queue[tuple[dict[str, Any], Future[dict[str, Any]]]] = field(default_factory=queue.Queue)

    def ask(self, content: dict[str, Any]) -> dict[str, Any]:
        """The main thread's answer; waits for it. CancelledError when the console ends before."""
        answer: Future[dict[str, Any]] = Future()
        self.questions.put((content, answer))
        return answer.result()

    def close(self) -> None:
        """Cancel all questions that were not answered."""
        while not self.questions.empty():
            self.questions.get_nowait()[1].cancel()


def answer_of(board: Console, content: dict[str, Any]) -> dict[str, Any]:
    """The board's answer to a question, after the page's state was taken over; without a question data and state."""
    for name, value in content.get("changed", {}).items():
        if name in board.state:
            board.took(name, value)
    if "ask" in content:
        return board.answer(content["ask"], content.get("arguments") or {})
    return {"packed": board.packed_data(), "state": board.state}


class Handler(BaseHTTPRequestHandler):
    """One request of the browser. Other sites that the browser shows can neither read nor ask anything here."""

    desk: QuestionQueue
    timeout = IDLE_SECONDS  # browsers open connections in advance

    def do_GET(self) -> None:
        """The page, for who has the token."""
        address = urlsplit(self.path)
        if address.path != "/":
            self._answer(HTTPStatus.NOT_FOUND, "there is only /")
        elif self._may(parse_qs(address.query).get("token", [""])[0]):
            self._answer(HTTPStatus.OK, self.desk.page, "text/html")

    def do_POST(self) -> None:
        """A question of the page; its token is in a header, which a form of another site cannot set."""
        size = int(self.headers.get("Content-Length") or 0)
        if not self._may(self.headers.get("Authorization", "").removeprefix("token ")):
            return
        if self.path != "/ask" or not 0 < size <= LARGEST_QUESTION:
            self._answer(HTTPStatus.BAD_REQUEST, "not a question")
            return
        try:
            answer = self.desk.ask(json.loads(self.rfile.read(size)))
        except (ValueError, AttributeError) as error:
            self._answer(HTTPStatus.BAD_REQUEST, f"not a question: {error}")
        except CancelledError:
            self._answer(HTTPStatus.SERVICE_UNAVAILABLE, "mqlab console is ending")
        else:
            self._answer(HTTPStatus.OK, json.dumps(answer), "application/json")

    def _may(self, token: str) -> bool:
        """Whether the token is right, and the name under which we were asked is this machine's own."""
        if self.headers.get("Host") in self.desk.hosts and hmac.compare_digest(
            token.encode(), self.desk.token.encode()
        ):
            return True
        self._answer(HTTPStatus.FORBIDDEN, "open the address that mqlab console printed")
        return False

    def _answer(self, status: HTTPStatus, text: str, kind: str = "text/plain") -> None:
        content = text.encode()
        self.send_response(status)
        self.send_header("Content-Type", f"{kind}; charset=utf-8")
        self.send_header("Content-Length", str(len(content)))
        self.send_header("Cache-Control", "no-store")
        self.send_header("X-Frame-Options", "DENY")
        self.end_headers()
        self.wfile.write(content)

    def log_message(self, format: str, *arguments: Any) -> None:
        """Say nothing about single requests."""


def page_of(board: Console, title: str) -> str:
    """The page with the board's module, which asks for its data itself."""
    from mqlab.course.widgets.frame.bundle import with_board

    script = with_board(board.module, SERVED.format(label=json.dumps(board.label)))
    return PAGE.format(title=html.escape(title), script=script)


def answer_until_interrupted(board: Console, desk: QuestionQueue) -> None:
    """Answer question after question. The Lab belongs to the thread that made it, so this is the main thread."""
    while True:
        try:
            content, answer = desk.questions.get(timeout=NOTICED_SECONDS)
        except queue.Empty:
            continue
        try:
            answer.set_result(answer_of(board, content))
        except Exception as error:  # the thread that waits tells it to the page
            answer.set_exception(error)


@click.command(short_help="Open RocketMQ Dashboard's pages over a store or a cluster, in the browser.")
@click.argument("where")
@click.option("--port", type=click.IntRange(0, 65535), default=0, help="The port. Default: any free one.")
@click.option("--no-browser", is_flag=True, help="Only print the address.")
def console(where: str, port: int, no_browser: bool) -> None:
    """Look at the store of a broker, at a Lab's directory, or at a cluster, with the pages of RocketMQ Dashboard.

    WHERE is a directory, or the address of a name server. Nothing in a directory is changed: resets and resends stay in
    this process. In a cluster they are done, after a question. Ctrl-C ends the console.

    Example:  mqlab console run
    """
    serve_board(board_over(where), f"Console: {where}", port=port, browser=not no_browser)


def serve_board(board: Any, title: str, *, port: int = 0, browser: bool = True) -> None:
    """Show a board alone in the browser until Ctrl-C; then its Lab is closed."""
    # 1. The page and the token.
    signal.signal(signal.SIGTERM, signal.default_int_handler)  # SIGTERM ends it like Ctrl-C
    chosen = choose_port(LOOPBACK, port)
    hosts = (f"{LOOPBACK}:{chosen}", f"localhost:{chosen}")
    desk = QuestionQueue(secrets.token_hex(16), page_of(board, title), hosts)
    # 2. Threads of the server talk to the browser; this thread has the Lab and answers.
    server = ThreadingHTTPServer((LOOPBACK, chosen), type("DeskHandler", (Handler,), {"desk": desk}))
    server.daemon_threads = True
    threading.Thread(target=server.serve_forever, daemon=True).start()
    address = f"http://{LOOPBACK}:{chosen}/?token={desk.token}"
    click.echo(f"{title} is at\n\n    {address}\n\nCtrl-C here ends it.")
    try:
        if browser and may_open_browser():
            webbrowser.open(address)
        answer_until_interrupted(board, desk)
    except KeyboardInterrupt:
        click.echo("Ending.", err=True)
    finally:
        # 3. In order: no new questions, no waiting ones, then the Lab or the connection.
        server.shutdown()
        server.server_close()
        desk.close()
        board.lab.close()


def board_over(where: str) -> Console:
    """The console over a directory, or over the cluster of a name server. UsageError for what is neither."""
    from mqlab.course.widgets.boards.console.board import console as console_of

    if Path(where).exists():
        return console_of(Path(where))
    if ":" not in where:
        raise UsageError(
            f"{where} is not a directory", hint="give a store, a Lab's directory, or the address of a name server"
        )
    from mqlab.cluster.connected import connect_from_environment

    return console_of(connect_from_environment(where))

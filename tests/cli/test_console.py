"""`mqlab console` as a process: its page, its answers, who gets none, and its end."""

from __future__ import annotations

import json
import signal
import threading
import time
import urllib.error
import urllib.request
import zlib
from base64 import b64decode
from collections.abc import Iterator
from pathlib import Path
from typing import Any

import pytest
from click.testing import CliRunner

from mqlab import Lab
from mqlab.cli import main
from mqlab.cli.console import QuestionQueue, answer_until_interrupted
from tests.cli.served_console import END_SECONDS, serving
from tests.course.widgets.console_world import shop_day


@pytest.fixture(scope="module")
def run(tmp_path_factory: pytest.TempPathFactory) -> Path:
    directory: Path = tmp_path_factory.mktemp("console") / "run"
    with Lab(seed=7, directory=directory) as lab:
        shop_day(lab)
    return directory


@pytest.fixture(scope="module")
def served(run: Path) -> Iterator[tuple[str, str]]:
    with serving(run) as address_and_token:
        yield address_and_token


def ask(address: str, token: str, content: Any, **headers: str) -> Any:
    request = urllib.request.Request(
        f"{address}/ask", json.dumps(content).encode(), {"Authorization": f"token {token}", **headers}
    )
    with urllib.request.urlopen(request, timeout=END_SECONDS) as answer:
        return json.loads(answer.read())


def unpacked(answer: dict[str, Any]) -> Any:
    return json.loads(zlib.decompress(b64decode(answer["packed"])))


def test_the_page_has_the_module_and_its_questions_are_answered(run: Path, served: tuple[str, str]) -> None:
    address, token = served
    with urllib.request.urlopen(f"{address}/?token={token}", timeout=END_SECONDS) as page:
        text = page.read().decode()
    assert f"<title>Console: {run}</title>" in text and 'served(board, "Console")' in text
    first = ask(address, token, {})
    assert first["state"] == {"place": "cluster"} and "group billing" in unpacked(first)["pages"]
    groups = unpacked(ask(address, token, {"ask": "page", "arguments": {"place": "groups"}}))
    assert [row[0] for row in groups["sections"][0]["rows"]] == ["archive", "audit", "billing"]
    assert "no page" in ask(address, token, {"ask": "page", "arguments": {"place": "colours"}})["error"]
    assert ask(address, token, {"changed": {"place": "groups", "other": 1}})["state"] == {"place": "groups"}


def test_who_lacks_the_token_or_comes_through_another_name_gets_nothing(served: tuple[str, str]) -> None:
    address, token = served
    refused = [
        lambda: ask(address, "wrong", {}),
        lambda: ask(address, token, {}, Host="evil.example"),
        lambda: urllib.request.urlopen(f"{address}/?token=", timeout=END_SECONDS),
        lambda: urllib.request.urlopen(f"{address}/other?token={token}", timeout=END_SECONDS),
        lambda: ask(address, token, ["not", "a", "question"]),
    ]
    codes = []
    for attempt in refused:
        with pytest.raises(urllib.error.HTTPError) as failure:
            attempt()
        codes.append(failure.value.code)
    assert codes == [403, 403, 403, 404, 400]


def test_an_interrupt_that_does_not_end_the_wait_is_noticed_after_it() -> None:
    """The signal arrives at another thread, as good as just before the main thread begins to wait."""

    def interrupt() -> None:
        time.sleep(0.1)
        signal.pthread_kill(threading.get_ident(), signal.SIGINT)

    other = threading.Thread(target=interrupt)
    with pytest.raises(KeyboardInterrupt):
        other.start()
        answer_until_interrupted(None, QuestionQueue("token", "page", ()))
    other.join()


def test_a_directory_without_a_store_is_refused(tmp_path: Path) -> None:
    answer = CliRunner().invoke(main, ["console", str(tmp_path)])
    assert answer.exit_code == 2 and "neither a store nor a Lab's directory" in answer.stderr

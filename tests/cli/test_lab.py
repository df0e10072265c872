"""mqlab lab: JupyterLab answers at the printed address, only with its token, and ends when asked to."""

from __future__ import annotations

import json
import os
import re
import signal
import socket
import subprocess
import sys
import urllib.error
import urllib.request
from pathlib import Path

import pytest

from mqlab.cli import lab
from mqlab.cli.my_labs import copy_labs, draw_progress
from mqlab.course.material import home, working_root
from mqlab.errors import UsageError


def test_the_printed_address_serves_the_labs_headless(tmp_path: Path) -> None:
    (tmp_path / "labs").mkdir()
    notebook = '{"cells": [], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}'
    (tmp_path / "labs" / "index.ipynb").write_text(notebook, "utf-8")
    environment = {name: value for name, value in os.environ.items() if name not in ("DISPLAY", "WAYLAND_DISPLAY")}
    process = subprocess.Popen(
        [sys.executable, "-m", "mqlab.cli", "lab", "--port", "0"],
        cwd=tmp_path,
        env=environment,
        stdout=subprocess.PIPE,
        stderr=subprocess.STDOUT,
        text=True,
    )
    try:
        assert process.stdout is not None
        for line in process.stdout:
            found = re.match(r"\s*(http://127\.0\.0\.1:(\d+)/lab/tree/my-labs/index\.ipynb)\?token=(\w+)", line)
            if found:
                break
        else:
            pytest.fail("no address was printed")
        page, port, token = found.groups()
        with urllib.request.urlopen(f"{page}?token={token}") as answer:
            text = answer.read()
            assert b"jupyter-config-data" in text and b"collapseLeft" in text  # the list closes in a narrow window
        with urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents/labs?token={token}") as answer:
            assert [entry["name"] for entry in json.load(answer)["content"]] == ["index.ipynb"]
        with pytest.raises(urllib.error.HTTPError, match="403"):
            urllib.request.urlopen(f"http://127.0.0.1:{port}/api/contents/labs")
    finally:
        process.send_signal(signal.SIGINT)
        rest, _ = process.communicate()
    assert process.returncode == 0, rest
    with socket.socket() as probe:
        assert probe.connect_ex(("127.0.0.1", int(port))) != 0


def test_a_taken_port_is_refused_with_what_to_do() -> None:
    with socket.socket() as other:
        other.bind(("127.0.0.1", 0))
        other.listen()
        with pytest.raises(UsageError, match="PORT=9000"):
            lab.choose_port("127.0.0.1", other.getsockname()[1])


def test_without_a_choice_the_next_free_port_is_taken(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lab, "FIRST_PORT", 28_888)  # no other test, and no JupyterLab of this machine, takes its ports
    first = lab.choose_port("127.0.0.1", None)
    with socket.socket() as other:
        other.bind(("127.0.0.1", first))
        other.listen()
        assert lab.choose_port("127.0.0.1", None) > first


def test_root_and_first_page(tmp_path: Path) -> None:
    deep = tmp_path / "labs" / "week"
    deep.mkdir(parents=True)
    assert lab.first_page(tmp_path) == "/lab/tree/labs"
    assert working_root(deep) == home(), "a folder that is called labs and has none is somebody else's"
    (tmp_path / "labs" / "20-our-queue.ipynb").write_text("{}", "utf-8")
    assert working_root(deep) == tmp_path
    (tmp_path / "labs" / "index.ipynb").write_text("{}", "utf-8")
    assert lab.first_page(tmp_path) == "/lab/tree/labs/index.ipynb"
    copy_labs(tmp_path)
    assert lab.first_page(tmp_path) == "/lab/tree/my-labs/index.ipynb"


def test_a_path_opens_its_first_page(tmp_path: Path) -> None:
    page = tmp_path / "labs" / "10a-spark-reads-the-broker.ipynb"
    page.parent.mkdir()
    page.write_text("{}", "utf-8")
    assert lab.first_page(tmp_path, "data") == f"/lab/tree/labs/{page.name}"
    assert lab.first_page(tmp_path, "evening") == "/lab/tree/labs"  # its page is missing here
    with pytest.raises(UsageError, match="no path 'night'"):
        lab.first_page(tmp_path, "night")


def test_a_page_of_another_form_stays_as_it_is(tmp_path: Path) -> None:
    with lab.page_template(tmp_path) as options:
        assert options == []
    (tmp_path / "index.html").write_text("<html></html>", "utf-8")
    with lab.page_template(tmp_path) as options:
        assert options == []


def test_progress_is_drawn_between_the_marks_of_the_index(tmp_path: Path) -> None:
    labs, mine = tmp_path / "labs", tmp_path / "my-labs"
    labs.mkdir()
    row = "| evening | <!-- progress evening -->not begun<!-- end --> |"
    text = {"cell_type": "markdown", "id": "a", "metadata": {}, "source": [row]}
    notebook = {"cells": [text], "metadata": {}, "nbformat": 4, "nbformat_minor": 5}
    (labs / "index.ipynb").write_text(json.dumps(notebook, ensure_ascii=False), "utf-8")
    assert not draw_progress(tmp_path)  # no copy
    copy_labs(tmp_path)
    assert not draw_progress(tmp_path)  # nothing is done
    code = {"cell_type": "code", "source": 'predict("lab00.after_ack", "3")', "outputs": [], "metadata": {}}
    (mine / "00.ipynb").write_text(json.dumps(notebook | {"cells": [code | {"execution_count": None}]}), "utf-8")
    assert draw_progress(tmp_path) and not draw_progress(tmp_path)
    assert re.search(r"-->▰▱+ 1 of \d+<!-- end -->", (mine / "index.ipynb").read_text("utf-8"))
    # It still counts as a copy that was not touched: a new release replaces it, and bars alone do not.
    assert copy_labs(tmp_path) == []
    (labs / "index.ipynb").write_text(json.dumps(notebook).replace("| evening", "| one evening"), "utf-8")
    assert [path.name for path in copy_labs(tmp_path)] == ["index.ipynb"]
    # What the learner wrote into it stays, the bars are drawn all the same.
    changed = (mine / "index.ipynb").read_text("utf-8").replace("one evening", "my evening")
    (mine / "index.ipynb").write_text(changed, "utf-8")
    assert draw_progress(tmp_path) and copy_labs(tmp_path) == []
    assert "my evening" in (mine / "index.ipynb").read_text("utf-8")


def test_the_learner_works_in_copies_that_are_never_overwritten(tmp_path: Path) -> None:
    labs, mine = tmp_path / "labs", tmp_path / "my-labs"
    labs.mkdir()
    assert copy_labs(tmp_path) == [] and not mine.exists()
    for name in ("index", "00-day", "01-log"):
        (labs / f"{name}.ipynb").write_text(f"{name} 1", "utf-8")
    assert [path.name for path in copy_labs(tmp_path)] == ["00-day.ipynb", "01-log.ipynb", "index.ipynb"]
    assert copy_labs(tmp_path) == []
    # A new release: what was worked in stays, what was not is renewed.
    (mine / "00-day.ipynb").write_text("my answers", "utf-8")
    for name in ("00-day", "01-log"):
        (labs / f"{name}.ipynb").write_text(f"{name} 2", "utf-8")
    assert [path.name for path in copy_labs(tmp_path)] == ["01-log.ipynb"]
    assert (mine / "00-day.ipynb").read_text("utf-8") == "my answers"
    assert (mine / "01-log.ipynb").read_text("utf-8") == "01-log 2"
    assert (labs / "00-day.ipynb").read_text("utf-8") == "00-day 2"
    # A record that is gone or broken costs no work.
    (mine / ".originals.json").write_text("[", "utf-8")
    (labs / "01-log.ipynb").write_text("01-log 3", "utf-8")
    assert copy_labs(tmp_path) == []


@pytest.mark.parametrize(
    ("environment", "opens"),
    [({}, False), ({"DISPLAY": ":0"}, True), ({"DISPLAY": ":0", "SSH_CONNECTION": "1.2.3.4 5 6 7"}, False)],
)
def test_a_browser_is_opened_where_it_would_be_seen(
    monkeypatch: pytest.MonkeyPatch, environment: dict[str, str], opens: bool
) -> None:
    for name in ("DISPLAY", "WAYLAND_DISPLAY", "SSH_CONNECTION"):
        monkeypatch.delenv(name, raising=False)
    for name, value in environment.items():
        monkeypatch.setenv(name, value)
    monkeypatch.setattr("sys.platform", "linux")
    assert lab.may_open_browser() is opens


def test_copies_that_were_made_before_an_error_are_known_as_untouched(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    originals = tmp_path / "labs"
    originals.mkdir()
    for name in ("a", "b", "index"):
        (originals / f"{name}.ipynb").write_text("old")
    write = Path.write_bytes

    def full(path: Path, data: bytes) -> int:
        if path.name.startswith("b.ipynb"):
            raise OSError(28, "No space left on device")
        return write(path, data)

    with monkeypatch.context() as patched, pytest.raises(OSError):
        patched.setattr(Path, "write_bytes", full)
        copy_labs(tmp_path)
    (originals / "a.ipynb").write_text("new")
    assert [path.name for path in copy_labs(tmp_path)] == ["a.ipynb", "b.ipynb", "index.ipynb"]
    assert (tmp_path / "my-labs" / "a.ipynb").read_text() == "new"

"""Planning processes ask what executors see: a thread answers, whatever calls come in between. No session is needed."""

from __future__ import annotations

from multiprocessing import AuthenticationError
from multiprocessing.connection import Client
from pathlib import Path
from typing import Any

import pytest

import mqlab
from mqlab.data.spark import executors
from mqlab.data.spark.executors import HERE, Executors, Sight, listen
from mqlab.errors import MqlabError, UsageError


@pytest.fixture
def looks(monkeypatch: pytest.MonkeyPatch) -> list[tuple[str, ...]]:
    """The paths of each job that was run; the executors see everything but folders called "mine"."""
    jobs: list[tuple[str, ...]] = []

    def look(_: Any, paths: Any, __: int) -> list[Sight]:
        jobs.append(tuple(paths))
        if any("broken" in path for path in paths):
            raise RuntimeError("no executor is left\n  and more")
        return [Sight("10.0.0.3", mqlab.__version__, tuple(path for path in paths if path.endswith("mine")))]

    monkeypatch.setattr(executors, "look", look)
    return jobs


def made(folder: Path, name: str) -> str:
    (folder / name).mkdir()
    return str(folder / name)


def asked() -> Executors:
    return listen(None, 2)  # type: ignore[arg-type]


def test_a_path_that_all_see_is_asked_once(looks: list[tuple[str, ...]], tmp_path: Path) -> None:
    ours, mine, known = made(tmp_path, "ours"), made(tmp_path, "mine"), asked()
    known.check([ours, str(tmp_path / "nowhere")])
    known.check([ours])
    assert looks == [(ours,)]
    for _ in range(2):  # what is missing is asked again: it may have been mounted since
        with pytest.raises(UsageError, match=r"mine is on the driver, and not on the executors of 10\.0\.0\.3"):
            known.check([ours, mine])
    assert looks[1:] == [(mine,), (mine,)]


def test_strangers_and_those_who_hang_up_leave_the_thread_alive(looks: Any, tmp_path: Path) -> None:
    known = asked()
    with pytest.raises(AuthenticationError):
        Client((HERE, known.port), authkey=b"guessed")
    Client((HERE, known.port), authkey=known.key).close()
    known.check([made(tmp_path, "ours")])


def test_a_job_that_fails_is_told(looks: Any, tmp_path: Path) -> None:
    with pytest.raises(MqlabError, match=r"could not be asked what they see: no executor is left$"):
        asked().check([made(tmp_path, "broken")])

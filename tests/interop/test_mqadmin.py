"""mqadmin prints the same for `mqlab serve` as for a real cluster, command by command; users are made by it, too."""

from __future__ import annotations

import json
from pathlib import Path
from typing import Any

import pytest

from tests.interop.clusters import side_by_side
from tests.interop.java_store import JavaStore
from tests.interop.mqadmin import AGREES, TABLE, USERS, Row, comparable

pytestmark = pytest.mark.interop
OPTIONS = Path(__file__).parents[1] / "cli" / "mqadmin_options.json"
SECONDS = 400
GROUPS = [{"groupName": "list-one", "retryMaxTimes": 5}, {"groupName": "list-two"}]
TOPICS = [{"topicName": f"list-{name}", "readQueueNums": 2, "writeQueueNums": 2, "perm": 6} for name in "ab"]
AUTH = "org.apache.rocketmq.auth"
WITH_USERS = (
    "authenticationEnabled=true",
    f"authenticationMetadataProvider={AUTH}.authentication.provider.LocalAuthenticationMetadataProvider",
    f"authorizationMetadataProvider={AUTH}.authorization.provider.LocalAuthorizationMetadataProvider",
    'initAuthenticationUser={"username":"admin","password":"12345678"}',
    'innerClientAuthenticationCredentials={"accessKey":"admin","secretKey":"12345678"}',
)

Told = tuple[list[list[str]], list[list[str]]]


def both(java: JavaStore, directory: Path, table: list[Row], *settings: str) -> Told:
    """What mqadmin printed, row by row, for mqlab and for the real cluster."""

    def tell(name: str, where: Any) -> list[list[str]]:
        files = {"GROUPS": GROUPS, "TOPICS": TOPICS}
        for file, content in files.items():
            (directory / name / file).write_text(json.dumps(content), "utf-8")
        words = {"BROKER": where.broker, "CLUSTER": "DefaultCluster", "FOLDER": str(directory / name / "exported")}
        words |= {file: str(directory / name / file) for file in files}
        script = "\n".join(row.words for row in table)
        for word, meaning in words.items():
            script = script.replace(word, meaning)
        (directory / name / "commands").write_text(script, "utf-8")
        answer = directory / f"{name}.json"
        home = directory / f"home-{name}"
        java.program("AdminDoor", where.name_server, directory / name / "commands", answer, seconds=SECONDS, home=home)
        return [comparable(text) for _, text in json.loads(answer.read_text("utf-8"))]

    return side_by_side(directory, java.classpath, tell, *settings)


@pytest.fixture(scope="module")
def told(java_store: JavaStore, tmp_path_factory: pytest.TempPathFactory) -> Told:
    # With the timer wheel: without it 5.3.3 cannot delete a topic or a group's offsets.
    return both(java_store, tmp_path_factory.mktemp("mqadmin"), TABLE, "timerWheelEnable=true")


@pytest.fixture(scope="module")
def told_of_users(java_store: JavaStore, tmp_path_factory: pytest.TempPathFactory) -> Told:
    return both(java_store, tmp_path_factory.mktemp("users"), USERS, *WITH_USERS)


@pytest.mark.parametrize("number", range(len(TABLE)), ids=[row.command for row in TABLE])
def test_a_command_prints_the_same(told: Told, number: int) -> None:
    row, (ours, real) = TABLE[number], (each[number] for each in told)
    assert AGREES[row.compared](ours, real), (row, ours, real)


@pytest.mark.parametrize("number", range(len(USERS)), ids=[row.command for row in USERS])
def test_a_command_about_users_prints_the_same(told_of_users: Told, number: int) -> None:
    row, (ours, real) = USERS[number], (each[number] for each in told_of_users)
    assert AGREES[row.compared](ours, real), (row, ours, real)


def test_the_recorded_options_are_those_of_mqadmin(java_store: JavaStore, tmp_path: Path) -> None:
    java_store.program("OptionTable", tmp_path / "options.json")
    assert json.loads((tmp_path / "options.json").read_text("utf-8")) == json.loads(OPTIONS.read_text("utf-8"))

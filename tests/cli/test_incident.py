"""`mqlab incident` from the outside."""

from __future__ import annotations

import json
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.data.traffic import capstone

SECRET = b"what only the course knows"
SMALL = ("--messages", "2_000", "--brokers", "2")


@pytest.fixture
def secret(tmp_path: Path) -> str:
    (tmp_path / "secret").write_bytes(SECRET + b"\n")
    return str(tmp_path / "secret")


def run(*words: str) -> tuple[int, str, str]:
    done = CliRunner().invoke(main, ["incident", *words])
    return done.exit_code, done.stdout, done.stderr


def test_a_student_gets_stores_and_the_instructor_the_truth(tmp_path: Path, secret: str) -> None:
    out = tmp_path / "anna"
    code, said, _ = run("--for", "anna", "--secret", secret, "--out", str(out), *SMALL)
    assert (code, said) == (0, f"{out}: 2,000 messages in broker-a, broker-b, and calendar.json\n")
    assert CliRunner().invoke(main, ["inspect", str(out / "broker-b")]).exit_code == 0
    code, said, _ = run("--for", "anna", "--secret", secret, "--truth", *SMALL)
    assert code == 0
    assert json.loads(said) == capstone("anna", SECRET, messages=2_000, brokers=2).truth()


def test_the_same_command_again_only_reads(tmp_path: Path, secret: str) -> None:
    words = ("--secret", secret, "--out", str(tmp_path / "day"), *SMALL)
    assert run("--for", "anna", *words)[0] == run("--for", "anna", *words)[0] == 0
    code, _, err = run("--for", "ivan", *words)
    assert code == 2 and "belongs to another run: it differs in mark" in err


@pytest.mark.parametrize(
    ("words", "said"),
    [
        ((), "give either --out or --truth"),
        (("--truth", "--out", "x"), "give either --out or --truth"),
        (("--truth", "--messages", "5"), "messages must be a whole number from 900"),
    ],
)
def test_questions_that_cannot_be(secret: str, words: tuple[str, ...], said: str) -> None:
    code, _, err = run("--for", "anna", "--secret", secret, *words)
    assert code == 2 and said in err


def test_a_secret_that_is_none_is_refused(tmp_path: Path) -> None:
    (tmp_path / "short").write_bytes(b"1234\n")
    for name, said in (("short", "at least 16 bytes, this one has 4"), ("missing", "cannot read the secret")):
        code, _, err = run("--for", "anna", "--secret", str(tmp_path / name), "--truth")
        assert code == 2 and said in err

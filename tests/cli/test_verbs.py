"""The command line as a whole: every verb loads, helps with an example, and wrong questions end with code 2."""

from __future__ import annotations

import importlib
import re
from pathlib import Path

import click
import pytest
from click.testing import CliRunner

from mqlab import cli
from mqlab.errors import CorruptionError, UsageError


def answer_of(*arguments: str) -> click.testing.Result:
    return CliRunner().invoke(cli.main, list(arguments))


@pytest.mark.parametrize("verb", cli.VERBS)
def test_every_verb_helps_with_an_example(verb: str) -> None:
    answer = answer_of(verb, "--help")
    assert answer.exit_code == 0, answer.output
    assert re.search(rf"Examples?:\s+mqlab {verb}", answer.output)


def test_the_list_names_every_verb_without_loading_it(monkeypatch: pytest.MonkeyPatch) -> None:
    def refuse(name: str) -> None:
        raise AssertionError(f"{name} was imported to list it")

    monkeypatch.setattr(importlib, "import_module", refuse)
    answer = answer_of("--help")
    assert answer.exit_code == 0
    for verb, (_, summary) in cli.VERBS.items():
        assert verb in answer.output
        assert summary.split()[0] in answer.output


@pytest.mark.parametrize("arguments", [["braek"], ["doctor", "--jsn"], ["lab", "--port", "99999999"]])
def test_a_wrong_question_ends_with_2(arguments: list[str]) -> None:
    answer = answer_of(*arguments)
    assert answer.exit_code == 2
    assert answer.stdout == ""


def test_an_unknown_verb_is_answered_with_those_there_are() -> None:
    assert "the commands are lab, doctor, cat" in answer_of("braek").stderr


@pytest.mark.parametrize(("error", "code"), [(UsageError("no such queue"), 2), (CorruptionError("torn unit"), 1)])
def test_errors_on_purpose_are_text_on_stderr_and_a_code(
    monkeypatch: pytest.MonkeyPatch, error: Exception, code: int
) -> None:
    @click.command()
    def fails() -> None:
        raise error

    monkeypatch.setattr(cli.LazyVerbs, "get_command", lambda *_: fails)
    answer = answer_of("cat")
    assert answer.exit_code == code
    assert answer.stderr.strip() == f"mqlab: {error}"
    assert answer.stdout == ""


def test_version() -> None:
    assert answer_of("--version").output.startswith("mqlab 0.")


@pytest.mark.parametrize(
    ("arguments", "words"),
    [
        (["admin", "topicList", "127.0.0.1:9876"], "for a cluster write -n 127.0.0.1:9876"),
        (["admin", "topicList", "missing"], "missing is not a directory"),
        (["check", "."], "it is a folder: name a notebook in it"),
        (["restore", "01a", "--answers-of", "missing.ipynb"], "cannot read missing.ipynb as a notebook"),
        (["start", "1"], "did you mean 01?"),
        (["grade", ".", "--lab", "01", "--out", "grades"], "a submission is NAME.ipynb"),
        (["release", "--out", "missing/labs.zip"], "there is no folder missing; make it first"),
        (["progress", "--page", "missing/page.html"], "there is no folder missing; make it first"),
        (["traffic", "--messages", "300", "--out", "day", "--truth", "missing/day.json"], "there is no folder missing"),
        (["sim", "--mine"], "there is no part in mybroker"),
    ],
)
def test_a_mistake_is_named_with_what_to_do(
    arguments: list[str], words: str, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.chdir(tmp_path)
    answer = answer_of(*arguments)
    assert answer.exit_code == 2
    assert words in re.sub(r"\s+", " ", answer.stderr)
    assert list(tmp_path.iterdir()) == []

"""Answers that ask Spark: a JVM behind the wall, one for all exercises of a notebook."""

from __future__ import annotations

import importlib
import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

import mqlab.course.cases
from mqlab.cli import main
from mqlab.course.grading.sandbox.walled import Sandbox
from tests.course.grading.course import save, with_answers

pytestmark = pytest.mark.spark

FIXTURE = Path(__file__).parent / "fixtures" / "spark_course"
RIGHT = {
    "lab98.topics": "def topics(messages):\n    return messages.groupBy('topic').count()\n",
    "lab98.tags": "def tags(messages):\n    return messages.groupBy('tags').count()\n",
}
HOSTILE = (  # what a JVM might be asked to do for an answer
    "import socket\n"
    "def peek(messages):\n"
    "    jvm = messages.sparkSession._jvm\n"
    "    tried = {}\n"
    "    try:\n        list(jvm.java.nio.file.Files.list(jvm.java.nio.file.Path.of('{secret}')).toArray())\n"
    "        tried['read'] = 1\n    except Exception as error:\n        tried['read'] = 0\n"
    "    try:\n        jvm.java.nio.file.Files.writeString(jvm.java.nio.file.Path.of('{secret}/was-here'), 'x')\n"
    "        tried['wrote'] = 1\n    except Exception as error:\n        tried['wrote'] = 0\n"
    "    tried['interfaces'] = len(socket.if_nameindex())\n"
    "    raise ValueError(str(tried))\n"
)


@pytest.fixture
def course(tmp_path: Path) -> Path:
    """The tiny Spark course, its notebook built from its source."""
    folder = tmp_path / "course"
    if str(FIXTURE / "cases") not in mqlab.course.cases.__path__:
        mqlab.course.cases.__path__.append(str(FIXTURE / "cases"))
    build = importlib.import_module("solutions.build")
    shutil.copytree(FIXTURE, folder)
    (folder / "labs").mkdir()
    made = build.notebook((folder / "98_counts.txt").read_text("utf-8"), "98_counts.py", solved=False)
    (folder / "labs" / "98-counts.ipynb").write_text(build.dumped(made), "utf-8")
    return folder


def test_answers_ask_spark_behind_the_wall_in_one_session(course: Path, tmp_path: Path, walls: Sandbox) -> None:
    pristine = json.loads((course / "labs" / "98-counts.ipynb").read_text("utf-8"))
    handed_in = tmp_path / "in" / "Дарья"
    asked = HOSTILE.replace("{secret}", str(handed_in))
    answers = {**RIGHT, "lab98.peek": asked}
    save(with_answers(pristine, answers), handed_in / "98-counts.ipynb")
    words = ["grade", tmp_path / "in", "--lab", "98", "--course", course, "--out", tmp_path / "out", "--json"]
    result = CliRunner().invoke(main, [str(word) for word in words])
    assert result.exit_code == 0, result.output
    topics, tags, peek = json.loads(result.stdout)["exercises"]
    assert [(one["state"], one["reason"]) for one in (topics, tags)] == [("passed", "")] * 2
    assert {case["kind"] for case in tags["cases"]} == {"public", "hidden"}
    walled_in = {"read": 0, "wrote": 0, "interfaces": 1}
    assert peek["state"] == "failed" and str(walled_in) in peek["reason"]
    assert not (handed_in / "was-here").exists()

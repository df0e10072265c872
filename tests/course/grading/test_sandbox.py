"""The walls are tried before anything runs; where there are none, the command refuses and says what to do."""

from __future__ import annotations

import errno
import os
import platform
import selectors
import shutil
import subprocess
import tempfile
import zipfile
from dataclasses import replace
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab import Lab, Message, play
from mqlab.cli import main
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.judging.loaded import AnswerStopped
from mqlab.course.grading.sandbox import walled as sandbox_module
from mqlab.course.grading.sandbox.covers import judges_of
from mqlab.course.grading.sandbox.limits import SPARK, Limits
from mqlab.course.grading.sandbox.walled import Sandbox, SandboxUnavailable, probe
from mqlab.errors import UsageError
from tests.course.grading.conftest import PATIENT
from tests.course.grading.course import save, untouched
from tests.tidy.sources import ROOT


def test_the_walls_hold(walls: Sandbox, tmp_path: Path) -> None:
    save(b"secret", tmp_path / "solutions" / "lab.py")
    probe(walls, (str(tmp_path / "solutions"),))


def test_a_folder_that_can_be_read_is_found_out(walls: Sandbox, tmp_path: Path) -> None:
    save(b"secret", tmp_path / "lab.py")
    tmp_path.chmod(0o755)
    open_walls = Sandbox("bwrap", readable=(str(tmp_path),))
    with pytest.raises(SandboxUnavailable, match="could read"):
        probe(open_walls, (str(tmp_path),))


def test_what_is_hidden_is_covered_even_inside_what_is_readable(walls: Sandbox, tmp_path: Path) -> None:
    save(b"secret", tmp_path / "solutions" / "lab.py")
    probe(
        Sandbox("bwrap", readable=(str(tmp_path),), hidden=(str(tmp_path / "solutions"),)),
        (str(tmp_path / "solutions"),),
    )


def test_an_answer_is_nobody_in_particular_and_sees_only_what_it_may(walls: Sandbox, tmp_path: Path) -> None:
    save("данные 数据".encode(), tmp_path / "shown" / "data.txt")
    tmp_path.chmod(0o755)
    desk = Desk(Sandbox("bwrap", readable=(str(tmp_path / "shown"),), limits=PATIENT))
    source = (
        "import os\n"
        "def who():\n    return os.getuid(), os.geteuid(), os.getgroups()\n"
        "def read(path):\n    with open(path, 'rb') as file:\n        return file.read()\n"
        "def listed(path):\n    return sorted(os.listdir(path))\n"
        "def write(path):\n    with open(path, 'w') as file:\n        file.write('x')\n"
    )
    names = desk.load("lab.a", source, ["who", "read", "listed", "write"])
    uid, euid, groups = names["who"]()
    assert uid == euid != 0 and 0 not in groups
    assert names["read"](str(tmp_path / "shown" / "data.txt")) == "данные 数据".encode()
    assert names["listed"](str(tmp_path)) == ["shown"]
    for path in (tmp_path / "shown" / "data.txt", tmp_path / "new", Path.home() / "x"):
        with pytest.raises(OSError):
            names["write"](str(path))
    assert names["write"]("/tmp/mine") is None
    assert not Path("/tmp/mine").exists()
    desk.close()


def test_limits_bind(walls: Sandbox) -> None:
    desk = Desk(Sandbox("bwrap", limits=Limits(seconds=10, memory_mb=512, processes=4, file_mb=1)))
    source = (
        "import os\n"
        "def fill():\n    return len(bytearray(1 << 30))\n"
        "def write():\n    with open('/tmp/big', 'wb') as file:\n        file.write(bytes(2 << 20))\n"
        "def fork():\n    made = 0\n    for _ in range(20):\n        if os.fork() == 0:\n"
        "            import time\n            time.sleep(30)\n"
        "            os._exit(0)\n        made += 1\n    return made\n"
    )
    names = desk.load("lab.a", source, ["fill", "write", "fork"])
    with pytest.raises(MemoryError):
        names["fill"]()
    with pytest.raises(OSError):
        names["write"]()
    with pytest.raises(BlockingIOError):
        names["fork"]()
    desk.close()


def test_no_worker_can_make_a_user_namespace(walls: Sandbox) -> None:
    """By unshare, clone, clone3 or setns; threads, forks and other programs work as before."""
    desk = Desk(Sandbox("bwrap", limits=PATIENT))
    source = (
        "import ctypes, os, platform, subprocess, sys, threading\n"
        "UNSHARE, CLONE, SETNS = {'x86_64': (272, 56, 308), 'aarch64': (97, 220, 268)}[platform.machine()]\n"
        "libc = ctypes.CDLL(None, use_errno=True)\n"
        "def call(*numbers):\n"
        "    found = libc.syscall(*[ctypes.c_long(number) for number in numbers])\n"
        "    if found == 0 and numbers[0] == CLONE:\n        os._exit(0)\n"
        "    return ctypes.get_errno() if found < 0 else 'done'\n"
        "def tried():\n"
        "    user = 0x10000000\n"
        "    asked = [(UNSHARE, user), (UNSHARE, user | 0x20000), (CLONE, user | 17, 0, 0, 0, 0), (435, 0, 0),\n"
        "             (SETNS, 0, user)]\n"
        "    return [call(*one) for one in asked]\n"
        "def works():\n"
        "    seen = []\n"
        "    thread = threading.Thread(target=seen.append, args=(1,))\n    thread.start()\n    thread.join()\n"
        "    program = subprocess.run([sys.executable, '-c', 'print(5)'], capture_output=True, text=True)\n"
        "    return seen, program.stdout, call(UNSHARE, 0)\n"
    )
    names = desk.load("lab.a", source, ["tried", "works"])
    not_permitted, not_there = errno.EPERM, errno.ENOSYS
    assert names["tried"]() == [not_permitted, not_permitted, not_permitted, not_there, not_permitted]
    assert names["works"]() == ([1], "5\n", "done")
    desk.close()


def test_a_worker_with_too_many_files_is_ended(walls: Sandbox) -> None:
    """Empty files need no room, and bubblewrap cannot count them."""
    desk = Desk(replace(walls, limits=replace(PATIENT, scratch_files=500)))
    source = (
        "import os, time\n"
        "def fill(count):\n"
        "    for number in range(count):\n        os.close(os.open(f'/tmp/{number}', os.O_CREAT))\n"
        "    time.sleep(0.5)\n    return count\n"
    )
    names = desk.load("lab.a", source, ["fill"])
    assert names["fill"](400) == 400
    with pytest.raises(AnswerStopped, match="more than 500 files") as caught:
        names["fill"](600)
    assert caught.value.kind == "died"
    desk.close()


@pytest.fixture
def asked(course: Path, tmp_path: Path) -> list[str]:
    save(untouched(course), tmp_path / "in" / "anna.ipynb")
    out = str(tmp_path / "out")
    return ["grade", str(tmp_path / "in"), "--lab", "99", "--course", str(course), "--out", out]


def refusal(asked: list[str]) -> str:
    result = CliRunner().invoke(main, asked)
    assert result.exit_code == 1, result.output
    assert not (Path(asked[-1]) / "records").exists()
    return result.output


def test_without_bubblewrap_the_command_refuses(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: None)
    said = refusal(asked)
    assert "apt-get install bubblewrap" in said and "--unsafe-no-sandbox" in said


def test_on_a_mac_the_command_refuses(asked: list[str], monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(sandbox_module.platform, "system", lambda: "Darwin")
    said = refusal(asked)
    assert "Darwin" in said and "virtual machine" in said and "--unsafe-no-sandbox" in said


@pytest.mark.parametrize(
    ("words", "advice"),
    [
        ("bwrap: setting up uid map: Permission denied", "apparmor_restrict_unprivileged_userns"),
        ("bwrap: Creating new namespace failed: Operation not permitted", "user namespaces are restricted"),
        ("bwrap: pivot_root: Operation not permitted", "container"),
    ],
)
def test_where_bubblewrap_cannot_run_the_command_says_why(
    asked: list[str], monkeypatch: pytest.MonkeyPatch, words: str, advice: str
) -> None:
    failed = subprocess.CompletedProcess([], 1, "", words)
    monkeypatch.setattr(sandbox_module.shutil, "which", lambda name: "/usr/bin/bwrap")
    monkeypatch.setattr(sandbox_module, "_bwrap_options", lambda: "")
    monkeypatch.setattr(sandbox_module.subprocess, "run", lambda *given, **more: failed)
    said = refusal(asked)
    assert words in said and advice in said


def test_limits_are_checked_by_name() -> None:
    assert Limits.of({"seconds": 3}).seconds == 3
    with pytest.raises(UsageError, match="no limit 'second'"):
        Limits.of({"second": 3})
    with pytest.raises(UsageError, match="positive"):
        Limits.of({"seconds": -1})
    assert Limits(seconds=1, memory_mb=9).widest(Limits(seconds=5, memory_mb=3)) == Limits(seconds=5, memory_mb=9)


@pytest.mark.skipif(platform.system() != "Linux", reason="asks /proc")
def test_no_worker_outlives_its_desk(walls: Sandbox) -> None:
    desk = Desk(walls)
    desk.load("lab.a", "import os\nif os.fork() == 0:\n    import time\n    time.sleep(600)\n", [])
    assert desk._process is not None
    watched = [os.pidfd_open(pid) for pid in children(desk._process.pid)]
    assert len(watched) >= 2
    desk.close()
    for descriptor in watched:  # readable once its process has ended
        with selectors.DefaultSelector() as selector:
            selector.register(descriptor, selectors.EVENT_READ)
            assert selector.select(10)
        os.close(descriptor)


def children(pid: int) -> list[int]:
    text = Path(f"/proc/{pid}/task/{pid}/children").read_text("ascii")
    direct = [int(word) for word in text.split()]
    return direct + [below for one in direct for below in children(one)]


def test_bubblewrap_is_looked_for_by_name(walls: Sandbox, tmp_path: Path) -> None:
    words = walls.command(str(tmp_path))
    assert words[0] == "bwrap" and shutil.which("bwrap")
    assert "--unshare-net" in words or "--unshare-all" in words
    assert "--clearenv" in words and "--die-with-parent" in words


def test_a_folder_of_the_judges_that_an_answer_is_told_of_can_be_read(
    walls: Sandbox, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    tmp_path.chmod(0o755)
    monkeypatch.setattr(tempfile, "tempdir", str(tmp_path))
    lab = play(lambda lab: lab.producer("shop").send(Message("orders", b"x")), seed=1)
    desk = Desk(Sandbox("bwrap", readable=(str(tmp_path),), limits=PATIENT))
    source = "import os\ndef listed(path):\n    return sorted(os.listdir(path))\n"
    listed = desk.load("lab.a", source, ["listed"])["listed"]
    assert "commitlog" in listed(lab.store().directory)
    desk.close()


LOOKS_AROUND = """
import errno
import os
def listed(path):
    return sorted(os.listdir(path))
def read(path):
    with open(path, 'rb') as file:
        return file.read()
def imported(name):
    import importlib
    importlib.import_module(name)
def folders_that_end_with(words):
    return [place for place, _, files in os.walk('/') if place.endswith(words) and files]
"""
LOOKS = ["listed", "read", "imported", "folders_that_end_with"]


def test_judges_cannot_be_imported_and_what_answers_import_can(walls: Sandbox) -> None:
    desk = Desk(Sandbox("bwrap", limits=PATIENT))
    names = desk.load("lab.a", LOOKS_AROUND, LOOKS)
    for name in ("lab00", "lab01.judges", "lab07.bank", "lab10.questions"):
        with pytest.raises(ModuleNotFoundError):
            names["imported"](f"mqlab.course.cases.{name}")
    for name in ("mqlab.course.teach", "mqlab.course.teach.datasets", "mqlab.data.spark"):
        assert names["imported"](name) is None
    assert names["folders_that_end_with"](("course/cases", "course/cases/__pycache__")) == []
    desk.close()


def test_copies_of_the_judges_are_covered_too(walls: Sandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    for place in ("python/site-packages/mqlab/course/cases", "python/x.egg/mqlab/course/cases/__pycache__"):
        save(b"secret", tmp_path / place / "lab01.pyc")
    for place in ("course/solutions/grading/lab20.py", "course/cases/lab20.py", "course/shown.txt"):
        save(b"secret", tmp_path / place)
    for name, entry in (("mqlab.whl", "mqlab/course/cases/lab01/manifest.py"), ("other.zip", "other/readme.txt")):
        with zipfile.ZipFile(tmp_path / "python" / name, "w") as packed:
            packed.writestr(entry, "secret")
    hidden = judges_of(tmp_path / "course", [str(tmp_path / "python")])
    sandbox = Sandbox("bwrap", readable=(str(tmp_path),), hidden=hidden, limits=PATIENT)
    probe(sandbox, hidden)
    desk = Desk(sandbox)
    names = desk.load("lab.a", LOOKS_AROUND, LOOKS)
    judges = ("cases/__pycache__", "course/cases", "solutions/grading")
    assert names["folders_that_end_with"](judges) == []
    with pytest.raises(OSError):
        names["read"](str(tmp_path / "python" / "mqlab.whl"))
    assert names["read"](str(tmp_path / "python" / "other.zip")) and names["listed"](str(tmp_path / "course"))
    desk.close()


def test_the_solutions_of_the_clone_are_covered_whatever_the_course(tmp_path: Path) -> None:
    covered = judges_of(tmp_path / "course", ())
    assert {str(ROOT / name) for name in ("solutions", "tests")} <= set(covered)


def test_judges_that_can_be_imported_are_found_out(walls: Sandbox, monkeypatch: pytest.MonkeyPatch) -> None:
    covered = sandbox_module.own_judges()
    monkeypatch.setattr(sandbox_module, "own_judges", lambda: str(Path(covered).parent / "nowhere"))
    monkeypatch.setattr(Sandbox, "_covered", lambda self: [])
    with pytest.raises(SandboxUnavailable, match=r"could import the judges .*lab01"):
        probe(walls)


def test_of_the_judges_files_an_answer_sees_what_it_was_handed(walls: Sandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    mine, other = tmp_path / "mqlab-a" / "broker-a", tmp_path / "mqlab-b" / "broker-b"
    for path in (mine / "commitlog" / "0", mine / "config" / "x.json", other / "secret", tmp_path / "secret"):
        save("тайна".encode(), path)
        path.chmod(0o644)
    desk = Desk(Sandbox("bwrap", handing=str(tmp_path), limits=Limits(seconds=10, total_seconds=60)))
    names = desk.load("lab.a", LOOKS_AROUND, LOOKS)
    assert names["listed"](str(tmp_path / ".")) == []
    assert names["listed"](mine) == ["commitlog", "config"] and names["listed"](f"{mine}/commitlog") == ["0"]
    assert names["folders_that_end_with"](("broker-b", tmp_path.name)) == []
    with (mine / "commitlog" / "0").open("ab") as file:
        file.write(b" and more")
    save(b"new", mine / "commitlog" / "1")
    (mine / "config" / "x.json").unlink()
    assert names["read"](mine / "commitlog" / "0").endswith(b" and more")
    assert names["listed"](str(mine)) == ["commitlog", "config"] and names["listed"](mine / "config") == []
    assert names["listed"](mine / "commitlog") == ["0", "1"]
    shutil.rmtree(mine.parent)
    with pytest.raises(FileNotFoundError):
        names["read"](str(mine / "commitlog" / "0"))
    assert names["read"](str(other / "secret")) == "тайна".encode()
    desk.close()


def test_without_walls_the_command_says_what_it_cannot_do(asked: list[str]) -> None:
    result = CliRunner().invoke(main, [*asked[:-2], "--unsafe-no-sandbox", *asked[-2:]])
    assert result.exit_code == 0, result.output
    assert "every answer can read the checks with their right answers" in result.output


@pytest.mark.long
@pytest.mark.spark
def test_spark_runs_behind_the_walls(walls: Sandbox, tmp_path: Path) -> None:
    def story(lab: Lab) -> None:
        producer = lab.producer("shop")
        for number in range(20):
            producer.send(Message("orders", f"заказ {number}".encode()))

    tmp_path.chmod(0o755)
    play(story, seed=1, directory=tmp_path / "world")
    source = (
        "from mqlab.data.spark import session\n"
        "def count(path):\n"
        "    frame = session().read.format('rocketmq').option('path', path).load()\n"
        "    return sorted((row['topic'], row['count']) for row in frame.groupBy('topic').count().collect())\n"
    )
    desk = Desk(Sandbox("bwrap", readable=(str(tmp_path),), limits=SPARK))
    count = desk.load("lab.a", source, ["count"])["count"]
    assert ("orders", 20) in count(str(tmp_path / "world" / "broker-a"))
    desk.close()

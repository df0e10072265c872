"""`make env`: a second call does nothing, and where Python will not do it says the one command that brings one."""

from __future__ import annotations

import shutil
import subprocess
from pathlib import Path

import pytest

from tests.tidy.sources import ROOT

TOOLS = ["sh", "cat", "cksum", "uname", "rm", "touch", "env", "make", "dirname"]


@pytest.fixture
def clone(tmp_path: Path) -> Path:
    """A folder with what set-up reads, and a PATH folder ``tools`` that has no Python and no uv."""
    for name in ("Makefile", "requirements.lock", "pyproject.toml", ".ci/setup"):
        (tmp_path / name).parent.mkdir(exist_ok=True)
        shutil.copy(ROOT / name, tmp_path / name)
    tools = tmp_path / "tools"
    tools.mkdir()
    for tool in TOOLS:
        found = shutil.which(tool)
        assert found, tool
        (tools / tool).symlink_to(found)
    return tmp_path


def program(clone: Path, name: str, text: str) -> None:
    path = clone / "tools" / name
    path.write_text(f"#!/bin/sh\n{text}\n", "utf-8")
    path.chmod(0o755)


def python_that(clone: Path, name: str, *, version: str, has_venv: bool = True) -> None:
    """A stand-in for a Python: answers what set-up asks it, and makes environments that are copies of itself."""
    major, minor = version.split(".")
    program(
        clone,
        name,
        f"""case "$*" in
            *ensurepip*) exit {0 if has_venv else 1} ;;
            *print*) echo {version} ;;
            *version_info*) exit {0 if (3, 11) <= (int(major), int(minor)) < (3, 14) else 1} ;;
            *"venv --clear"*) /bin/mkdir -p .venv/bin; /bin/cp "$0" .venv/bin/python ;;
            *pip*) echo "$*" >> calls ;;
        esac""",
    )


def make_env(clone: Path, *arguments: str) -> subprocess.CompletedProcess[str]:
    environment = {"PATH": str(clone / "tools"), "HOME": str(clone)}
    return subprocess.run(
        ["make", "env", *arguments], cwd=clone, env=environment, capture_output=True, text=True, check=False
    )


def calls(clone: Path) -> list[str]:
    path = clone / "calls"
    return path.read_text("utf-8").splitlines() if path.exists() else []


def test_first_call_installs_the_lock_and_the_package_second_call_does_nothing(clone: Path) -> None:
    python_that(clone, "python3", version="3.11")
    first = make_env(clone)
    assert first.returncode == 0, first.stderr
    installed = [call for call in calls(clone) if "install" in call]
    assert "--require-hashes -r requirements.lock" in installed[0]
    assert installed[1].endswith("-e .")
    second = make_env(clone)
    assert (second.returncode, second.stdout, second.stderr) == (0, "", "")
    assert [call for call in calls(clone) if "install" in call] == installed


def test_uv_compiles_what_it_installs_as_pip_does(clone: Path) -> None:
    python_that(clone, "python3", version="3.11")
    make_python = "/bin/mkdir -p .venv/bin; /bin/cp tools/python3 .venv/bin/python"
    program(clone, "uv", f'echo "$*" >> calls\ncase "$*" in venv*) {make_python} ;; esac')
    assert make_env(clone).returncode == 0
    (lock,) = [call for call in calls(clone) if "-r requirements.lock" in call]
    assert "--compile-bytecode" in lock and "--require-hashes" in lock


def test_a_changed_lock_is_installed_again(clone: Path) -> None:
    python_that(clone, "python3", version="3.12")
    make_env(clone)
    before = len(calls(clone))
    (clone / "requirements.lock").write_text("# another\n", "utf-8")
    assert make_env(clone).returncode == 0
    assert len(calls(clone)) > before


def test_an_interrupted_set_up_goes_on(clone: Path) -> None:
    python_that(clone, "python3", version="3.11")
    make_env(clone)
    (clone / ".venv" / ".installed").unlink()
    assert make_env(clone).returncode == 0
    assert (clone / ".venv" / ".installed").exists()


def test_python_chooses_and_another_choice_makes_it_anew(clone: Path) -> None:
    python_that(clone, "python3", version="3.11")
    python_that(clone, "python3.13", version="3.13")
    make_env(clone)
    assert make_env(clone, "PYTHON=python3.13").returncode == 0
    assert (clone / ".venv" / ".installed").read_text("utf-8").split()[-1] == "3.13"
    assert make_env(clone).stderr == ""  # not asked for another one, the one there will do


def test_an_older_python_is_passed_over_for_one_that_will_do(clone: Path) -> None:
    python_that(clone, "python3", version="3.9")
    python_that(clone, "python3.12", version="3.12")
    assert make_env(clone).returncode == 0
    assert (clone / ".venv" / ".installed").read_text("utf-8").split()[-1] == "3.12"


@pytest.mark.parametrize(
    ("system", "manager", "version", "has_venv", "command"),
    [
        ("Linux", "apt-get", "3.9", True, "sudo apt-get install -y python3.11-venv"),
        ("Linux", "apt-get", "3.12", False, "sudo apt-get install -y python3.12-venv"),
        ("Linux", "dnf", "3.14", True, "sudo dnf install -y python3.12"),
        ("Linux", "none", "3.9", True, "curl -LsSf https://astral.sh/uv/install.sh | sh"),
        ("Darwin", "none", "3.9", True, "brew install python@3.13"),
    ],
)
def test_it_says_the_one_command_that_brings_what_is_missing(
    clone: Path, system: str, manager: str, version: str, has_venv: bool, command: str
) -> None:
    (clone / "tools" / "uname").unlink()
    program(clone, "uname", f"echo {system}")
    program(clone, manager, "exit 0")
    python_that(clone, "python3", version=version, has_venv=has_venv)
    answer = make_env(clone)
    assert answer.returncode != 0
    assert command in answer.stderr
    assert version in answer.stderr
    assert not (clone / ".venv").exists()


def test_no_python_at_all(clone: Path) -> None:
    answer = make_env(clone)
    assert answer.returncode != 0
    assert "python3 is not there" in answer.stderr

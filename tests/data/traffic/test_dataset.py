"""The sample under datasets/ is what its README's command makes, to the byte, and what SHA256SUMS says."""

from __future__ import annotations

import hashlib
import shlex
import tarfile
from pathlib import Path

import pytest
from click.testing import CliRunner

from mqlab.cli import main
from mqlab.lab.inspector import StoreInspector

DATASETS = Path(__file__).resolve().parents[3] / "datasets"
ARCHIVE = "small-day.tar.xz"


@pytest.fixture(scope="module")
def unpacked(tmp_path_factory: pytest.TempPathFactory) -> Path:
    target = tmp_path_factory.mktemp("unpacked")
    with tarfile.open(DATASETS / ARCHIVE) as packed:
        packed.extractall(target, filter="data")
    return target / "small-day"


def files(directory: Path) -> dict[str, bytes]:
    found = (path for path in sorted(directory.rglob("*")) if path.is_file())
    return {str(path.relative_to(directory)): path.read_bytes() for path in found}


def test_the_published_command_makes_the_published_bytes(
    unpacked: Path, tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    (command,) = [
        line.strip() for line in (DATASETS / "README.md").read_text("utf-8").splitlines() if " mqlab traffic" in line
    ]
    program, *words = shlex.split(command)
    assert program == "mqlab"
    monkeypatch.chdir(tmp_path)
    done = CliRunner().invoke(main, words)
    assert done.exit_code == 0, done.output
    made, published = files(tmp_path / "small-day"), files(unpacked)
    assert list(made) == list(published)
    assert [name for name in made if made[name] != published[name]] == []


def test_it_is_small_whole_and_tells_nothing_of_its_incidents(unpacked: Path) -> None:
    sums = dict(line.split()[::-1] for line in (DATASETS / "SHA256SUMS").read_text("ascii").splitlines())
    data = (DATASETS / ARCHIVE).read_bytes()
    assert sums[ARCHIVE] == hashlib.sha256(data).hexdigest()
    assert len(data) < 1_000_000
    assert not [path for path in unpacked.rglob("*") if "truth" in path.name]
    stores = [StoreInspector(unpacked / name) for name in ("broker-a", "broker-b")]
    assert sum(len(list(store.messages())) for store in stores) == 3_000
    assert all(store.problems(deep=True) == [] for store in stores)

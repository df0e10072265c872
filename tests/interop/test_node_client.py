"""Node's ali-ons sees the same of `mqlab serve` as of a real cluster. Needs node, npm, and npm's registry once."""

from __future__ import annotations

import json
import os
import shutil
import subprocess
from pathlib import Path
from typing import Any

import pytest

import mqlab
from tests.interop.clusters import Where, side_by_side
from tests.interop.java_store import HERE, JavaStore

pytestmark = pytest.mark.interop
INSTALL_SECONDS, RUN_SECONDS = 300, 180


@pytest.fixture(scope="module")
def modules() -> Path:
    """The folder node_modules with ali-ons."""
    for program in ("node", "npm"):
        if shutil.which(program) is None:
            pytest.skip(f"ali-ons needs Node ({program} is not on the PATH)")
    work = HERE / "target" / "node"
    wanted = (HERE / "node" / "package.json").read_text("utf-8")
    installed = work / "package.json"
    if not installed.exists() or installed.read_text("utf-8") != wanted or not (work / "node_modules").is_dir():
        work.mkdir(parents=True, exist_ok=True)
        installed.write_text(wanted, "utf-8")
        npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        made = subprocess.run(npm, cwd=work, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if made.returncode:
            installed.unlink()
            pytest.skip(f"npm cannot install ali-ons: {made.stderr.strip()[-300:]}")
    return work / "node_modules"


@pytest.fixture(scope="module")
def seen(modules: Path, java_store: JavaStore, tmp_path_factory: pytest.TempPathFactory) -> tuple[Any, Any]:
    directory = tmp_path_factory.mktemp("node")

    def look(name: str, where: Where) -> Any:
        with mqlab.connect(where.name_server) as cluster:
            cluster.admin.create_topic("door-node", read_queue_nums=2, write_queue_nums=2, confirm=True)
        answer = directory / f"{name}.json"
        home = directory / f"home-{name}"
        home.mkdir()
        ran = subprocess.run(
            ["node", str(HERE / "node" / "door.js"), where.name_server, str(answer)],
            env={**os.environ, "NODE_PATH": str(modules), "HOME": str(home)},
            capture_output=True,
            text=True,
            timeout=RUN_SECONDS,
        )
        assert ran.returncode == 0, ran.stdout[-2000:] + ran.stderr[-2000:]
        return json.loads(answer.read_text("utf-8"))

    return side_by_side(directory, java_store.classpath, look)


@pytest.mark.parametrize("behaviour", ["statuses", "paid", "failed", "delayed", "everything"])
def test_ali_ons_sees_the_same(seen: tuple[Any, Any], behaviour: str) -> None:
    ours, real = (each[behaviour] for each in seen)
    assert ours == real
    assert ours


def test_it_saw_what_was_sent(seen: tuple[Any, Any]) -> None:
    ours = seen[0]
    assert ours["paid"] == [f"key-{number} body of key-{number}" for number in (1, 3, 5)]
    assert ours["failed"] == ["key-bad try 0", "key-bad try 1"]
    assert ours["delayed"] == ["key-late in time"]
    assert len(ours["everything"]) == 8

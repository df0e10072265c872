"""RocketMQ's 5.x clients for Java, Node, Go and Rust see the same of `mqlab serve --grpc` as of a real proxy.

And the order service's five tests, which pass with the fixture of mqlab's wheel, pass against the real ones.
Needs a JDK and Maven; Node with npm, Go, and Rust's cargo, for their clients.
"""

from __future__ import annotations

import os
import shutil
import subprocess
import sys
from pathlib import Path

import pytest

from tests.interop.grpc_clusters import DOORS, GrpcWhere, both, built, missing, real_grpc
from tests.interop.java_store import what_is_missing
from tests.tidy.sources import ROOT

pytestmark = pytest.mark.interop

INSTALL_SECONDS, RUN_SECONDS = 300, 300
COMPILE_SECONDS = 1_200  # Rust's client has 260 crates
ORDER_SERVICE = ROOT / "tests" / "cluster" / "grpc" / "order_service"


@pytest.fixture(autouse=True, scope="module")
def proxy() -> None:
    """What the real proxy needs."""
    lacking = what_is_missing()
    if lacking is not None:
        pytest.skip(f"the real proxy {lacking}")


def ran(command: list[str], **environment: str) -> None:
    """Run a door to its end."""
    answer = subprocess.run(
        command, env={**os.environ, **environment}, capture_output=True, text=True, timeout=RUN_SECONDS, check=False
    )
    assert answer.returncode == 0, answer.stdout[-3000:] + answer.stderr[-3000:]


def test_javas_client_sees_the_same(tmp_path: Path) -> None:
    """Sends of every kind, a refusal, a push consumer that fails once, simple consumers, order."""

    def look(name: str, where: GrpcWhere) -> list[str]:
        seen = tmp_path / f"{name}.txt"
        ran(["java", f"-Duser.home={tmp_path}", "-cp", built(DOORS), "GrpcDoor", where.grpc, str(seen)])
        return seen.read_text("utf-8").splitlines()

    ours, real = both(tmp_path, look)
    assert ours == real
    assert len(ours) == 7 and "push: bad red [] {} attempt 2" in ours


def test_nodes_client_sees_the_same(tmp_path: Path) -> None:
    lacking = missing("node", "npm")
    if lacking:
        pytest.skip(f"Node's client needs {lacking}")
    work = DOORS / "target" / "node"
    if not (work / "node_modules").is_dir():
        work.mkdir(parents=True, exist_ok=True)
        shutil.copy(DOORS / "node" / "package.json", work)
        npm = ["npm", "install", "--no-audit", "--no-fund", "--ignore-scripts"]
        subprocess.run(npm, cwd=work, check=True, capture_output=True, timeout=INSTALL_SECONDS)

    def look(name: str, where: GrpcWhere) -> str:
        seen = tmp_path / f"{name}.txt"
        door = ["node", str(DOORS / "node" / "door.js"), where.grpc, str(seen)]
        ran(door, NODE_PATH=str(work / "node_modules"), HOME=str(tmp_path))
        return seen.read_text("utf-8")

    ours, real = both(tmp_path, look)
    assert ours == real == 'from node node k1 [["mine","x"]] attempt 1\n'


def test_gos_client_sees_the_same(tmp_path: Path) -> None:
    if missing("go"):
        pytest.skip("Go's client needs go")
    work = tmp_path / "go"
    shutil.copytree(DOORS / "go", work)
    for words in (("mod", "tidy"), ("build", "-o", "door", ".")):
        made = subprocess.run(["go", *words], cwd=work, capture_output=True, text=True, timeout=INSTALL_SECONDS)
        if made.returncode:
            pytest.skip(f"Go's client cannot be built: {made.stderr.strip()[-300:]}")

    def look(name: str, where: GrpcWhere) -> str:
        seen = tmp_path / f"{name}.txt"
        ran([str(work / "door"), where.grpc, str(seen)], HOME=str(tmp_path))
        return seen.read_text("utf-8")

    ours, real = both(tmp_path, look)
    assert ours == real == "1 1 <nil>\nfrom go go 1 <nil>\n"


def test_rusts_client_sees_the_same(tmp_path: Path) -> None:
    if missing("cargo"):
        pytest.skip("Rust's client needs cargo")
    target = DOORS / "target" / "rust"
    cargo = ["cargo", "build", "--quiet", "--manifest-path", str(DOORS / "rust" / "Cargo.toml")]
    made = subprocess.run(
        [*cargo, "--target-dir", str(target)], capture_output=True, text=True, timeout=COMPILE_SECONDS, check=False
    )
    if made.returncode:
        pytest.skip(f"Rust's client cannot be built: {made.stderr.strip()[-300:]}")

    def look(name: str, where: GrpcWhere) -> str:
        seen = tmp_path / f"{name}.txt"
        ran([str(target / "debug" / "door"), where.grpc, str(seen)], HOME=str(tmp_path))
        return seen.read_text("utf-8")

    ours, real = both(tmp_path, look)
    assert ours == real == 'from rust rust ["k1"] attempt 1 sent true acked true\n'


def test_the_order_service_passes_against_the_real_proxy(tmp_path: Path) -> None:
    with real_grpc(tmp_path / "real") as where:
        command = [sys.executable, "-m", "pytest", "-q", "-p", "tests.interop.grpc_fixture", "-p", "no:cacheprovider"]
        command += ["-c", str(ORDER_SERVICE / "pyproject.toml"), str(ORDER_SERVICE)]
        ran(
            command,
            MQLAB_GRPC=where.grpc,
            MQLAB_NAMESRV=where.name_server,
            PYTHONPATH=os.pathsep.join((str(ROOT), str(ORDER_SERVICE))),
            PYTEST_DISABLE_PLUGIN_AUTOLOAD="1",
        )

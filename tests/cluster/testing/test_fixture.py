"""The pytest plugin in a project of its own: what the fixture costs, and that nothing is loaded before."""

from __future__ import annotations

import subprocess
import sys
import textwrap
from pathlib import Path

from tests.tidy.sources import ROOT

SESSION_SECONDS, TEST_SECONDS = 0.3, 0.005
SPARE = 4  # how much slower than an idle machine one may be whose other cores run this suite


def run(folder: Path, program: str, *words: str) -> subprocess.CompletedProcess[str]:
    """pytest with the plugin, in a folder with one file of tests."""
    (folder / "test_it.py").write_text(textwrap.dedent(program), "utf-8")
    command = [sys.executable, "-m", "pytest", "-q", "-p", "no:cacheprovider", *words, str(folder)]
    environment = {"PYTHONPATH": str(ROOT), "PATH": "/nowhere", "PYTEST_PLUGINS": "mqlab.cluster.testing.plugin"}
    environment["PYTEST_DISABLE_PLUGIN_AUTOLOAD"] = "1"
    return subprocess.run(command, capture_output=True, text=True, check=False, cwd=folder, env=environment)


def test_nothing_is_loaded_before_a_test_asks_for_the_fixture(tmp_path: Path) -> None:
    answer = run(
        tmp_path,
        """
        import sys

        def test_other_peoples_tests():
            assert "mqlab.cluster.testing.plugin" in sys.modules
            loaded = [name for name in sys.modules if name.startswith(("grpc", "google", "asyncio", "mqlab."))]
            plugin = ["mqlab.cluster", "mqlab.cluster.testing", "mqlab.cluster.testing.plugin"]
            assert sorted(loaded) == [*plugin, "mqlab.lazy_names"]
        """,
    )
    assert answer.returncode == 0, answer.stdout


def test_a_session_starts_in_a_moment_and_a_test_in_less(tmp_path: Path) -> None:
    """Names are each test's own; a server is made once."""
    answer = run(
        tmp_path,
        f"""
        import time
        import pytest
        import mqlab
        from mqlab import Message

        seen = []

        @pytest.fixture(scope="session")
        def began():
            import mqlab.cluster.testing.server
            return time.monotonic()

        @pytest.mark.parametrize("number", range(20))
        def test_each(began, rocketmq, number):
            seen.append((rocketmq.namesrv, time.monotonic(), rocketmq.topic("orders")))
            assert not rocketmq.messages("orders")
            if number == 0:
                with mqlab.connect(rocketmq.namesrv) as cluster:
                    cluster.producer("shop").send(Message(seen[0][2], b"1"))
                assert [each.body for each in rocketmq.messages("orders")] == [b"1"]

        def test_times(began):
            assert len({{server for server, _, _ in seen}}) == 1 and len({{topic for _, _, topic in seen}}) == 20
            assert seen[0][1] - began < {SESSION_SECONDS * SPARE}
            assert (seen[-1][1] - seen[1][1]) / 18 < {TEST_SECONDS * SPARE}
            print("session", seen[0][1] - began, "test", (seen[-1][1] - seen[1][1]) / 18)
        """,
        "-rP",
    )
    assert answer.returncode == 0, answer.stdout
    assert "session" in answer.stdout

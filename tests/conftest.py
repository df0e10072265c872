"""What every test run shares: repeatable hypothesis, one Spark session, and skips that must be owned up to.

With ``CI=true`` a skipped test fails the run unless allowed_skips.txt names it with the reason why CI cannot run it.
"""

from __future__ import annotations

import asyncio
import contextlib
import fnmatch
import gc
import os
import resource
import signal
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import TYPE_CHECKING

import hypothesis
import pytest

from tests.data.spark.short_lived import BY_ITSELF, NO_LINES_IN_ERRORS, OF_ALL_TESTS, PLANS_AS_THEY_ARE

if TYPE_CHECKING:
    from pyspark.sql import SparkSession

    from mqlab.rocketmq.promises import Promise
    from mqlab.rocketmq.wire.command import RemotingCommand

# The usual limit is 1024, on macOS 256 at first and raised by RealFiles. To look for garbage takes half a second.
OPEN_FILES = 300 if 0 <= resource.getrlimit(resource.RLIMIT_NOFILE)[0] < 16_000 else 1_500
_collect_above = OPEN_FILES
ALLOWED_SKIPS = Path(__file__).parent / "allowed_skips.txt"

# Where an environment forbids byte code, each of the hundreds of processes that tests start would compile mqlab anew.
sys.dont_write_bytecode = False
os.environ.pop("PYTHONDONTWRITEBYTECODE", None)
# Official gRPC clients live in a worker that starts Spark later; gRPC's fork handlers would kill that JVM now and then.
os.environ["GRPC_ENABLE_FORK_SUPPORT"] = "0"

hypothesis.settings.register_profile("mqlab", deadline=None, derandomize=True, database=None, max_examples=60)
hypothesis.settings.load_profile("mqlab")


def read_allowed_skips(text: str) -> dict[str, str]:
    """Lines of ``node id pattern  # reason``; a line without a reason is an error."""
    allowed = {}
    for number, line in enumerate(text.splitlines(), start=1):
        if not line.strip() or line.startswith("#"):
            continue
        pattern, _, reason = line.partition("  # ")
        if not reason.strip():
            raise ValueError(f"{ALLOWED_SKIPS.name} line {number}: expected 'node id  # reason', found {line!r}")
        allowed[pattern.strip()] = reason.strip()
    return allowed


def unexplained(skipped: dict[str, str], allowed: dict[str, str]) -> dict[str, str]:
    """The skipped node ids (with their own reasons) that no allowed pattern names; ``[`` is taken literally."""
    patterns = [pattern.replace("[", "[[]") for pattern in allowed]
    return {
        node: why
        for node, why in skipped.items()
        if not any(fnmatch.fnmatchcase(node, pattern) for pattern in patterns)
    }


class SkipsAreNamed:
    """Fails a CI run in which a test was skipped that allowed_skips.txt does not name."""

    def __init__(self) -> None:
        self.skipped: dict[str, str] = {}
        self.unexplained: dict[str, str] = {}

    def pytest_runtest_logreport(self, report: pytest.TestReport) -> None:
        if report.skipped and not hasattr(report, "wasxfail"):
            self.skipped[report.nodeid] = skip_reason(report)

    def pytest_collectreport(self, report: pytest.CollectReport) -> None:
        if report.skipped:
            self.skipped[report.nodeid] = skip_reason(report)

    @pytest.hookimpl(tryfirst=True)
    def pytest_sessionfinish(self, session: pytest.Session) -> None:
        self.unexplained = unexplained(self.skipped, read_allowed_skips(ALLOWED_SKIPS.read_text("utf-8")))
        if self.unexplained and session.exitstatus in (pytest.ExitCode.OK, pytest.ExitCode.NO_TESTS_COLLECTED):
            session.exitstatus = pytest.ExitCode.TESTS_FAILED

    def pytest_terminal_summary(self, terminalreporter: pytest.TerminalReporter) -> None:
        if self.unexplained:
            terminalreporter.section("skipped, and not named in tests/allowed_skips.txt", red=True)
            for node, why in self.unexplained.items():
                terminalreporter.line(f"{node}: {why}", red=True)


def skip_reason(report: pytest.TestReport | pytest.CollectReport) -> str:
    return report.longrepr[2] if isinstance(report.longrepr, tuple) else str(report.longrepr)


def pytest_configure(config: pytest.Config) -> None:
    # Begun in a shell's background, Ctrl-C is ignored, here and in all that tests start and then interrupt.
    signal.signal(signal.SIGINT, signal.default_int_handler)
    if os.environ.get("CI") == "true" and not hasattr(config, "workerinput"):  # the workers' reports all come here
        config.pluginmanager.register(SkipsAreNamed(), "skips-are-named")


@pytest.fixture(scope="session")
def spark() -> Iterator[SparkSession]:
    """The one Spark session of a test process; it takes seconds to start."""
    from mqlab.data.spark import session

    quick = {
        "spark.driver.extraJavaOptions": OF_ALL_TESTS,
        "spark.sql.shuffle.partitions": "2",
        "spark.sql.ui.explainMode": "simple",
    }
    started = session("local[2]", **quick, **PLANS_AS_THEY_ARE, **NO_LINES_IN_ERRORS)
    yield started
    started.stop()


@pytest.fixture
def plans_as_by_itself(spark: SparkSession, monkeypatch: pytest.MonkeyPatch) -> Iterator[None]:
    """Spark's own defaults in place of PLANS_AS_THEY_ARE: for notebooks, public checks and days with many rows."""
    from mqlab.course.given.lab12 import streams

    for name, value in BY_ITSELF.items():
        spark.conf.set(name, value)
        monkeypatch.setitem(streams.SMALL, name, value)  # streams of lab 12 have a session of their own
    yield
    for name, value in PLANS_AS_THEY_ARE.items():
        spark.conf.set(name, value)


@pytest.fixture
def calls_have_real_time(monkeypatch: pytest.MonkeyPatch) -> None:
    """Calls of a Lab on real threads may take longer by the wall than RocketMQ allows, though its clock runs faster.

    With ``speed=20`` their 3 s would be 150 ms, which a busy machine does not keep; here they are 15 s.
    """
    from mqlab.rocketmq.remoting.endpoint import Channel

    invoke = Channel.invoke

    def slowly(channel: Channel, command: RemotingCommand, timeout_ms: int = 3_000) -> Promise[RemotingCommand]:
        return invoke(channel, command, 100 * timeout_ms)

    monkeypatch.setattr(Channel, "invoke", slowly)


@contextlib.contextmanager
def outside_of_loops() -> Iterator[None]:
    """Inside it, asyncio knows of no running loop; what was running before is running again afterwards."""
    running = asyncio._get_running_loop()
    asyncio._set_running_loop(None)
    try:
        yield
    finally:
        asyncio._set_running_loop(running)


@pytest.fixture(autouse=True)
def loops_of_the_browser_are_out_of_sight(request: pytest.FixtureRequest) -> Iterator[None]:
    """Between its calls, and until the worker ends, Playwright leaves its loop marked as running in the main thread.

    A test that opens no page but runs a loop of its own would be refused, if it came after one that does.
    """
    if request.node.get_closest_marker("browser"):
        yield
        return
    with outside_of_loops():
        yield


@pytest.fixture(autouse=True)
def files_of_forgotten_worlds_are_closed() -> Iterator[None]:
    """A Lab that a test drops keeps its mapped files until Python's collector comes by: it comes in time."""
    global _collect_above
    yield
    if len(os.listdir("/dev/fd")) > _collect_above:
        gc.collect()
        _collect_above = len(os.listdir("/dev/fd")) + OPEN_FILES  # what is left is in use

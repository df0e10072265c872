"""What the real broker wrote, sent and answered, opened from the small copies in ``fixtures/`` (see its README)."""

from __future__ import annotations

import gzip
import json
import shutil
import tarfile
from collections.abc import Callable
from pathlib import Path
from typing import Any

import pytest

FIXTURES = Path(__file__).parent / "fixtures"


def unpack(archive: str, directory: Path) -> None:
    with tarfile.open(FIXTURES / archive) as packed:
        if hasattr(tarfile, "data_filter"):  # 3.11.4 and newer
            packed.extractall(directory, filter="data")
        else:
            packed.extractall(directory)


def read_json(name: str) -> Any:
    return json.loads(gzip.decompress((FIXTURES / f"{name}.json.gz").read_bytes()))


@pytest.fixture(scope="session")
def unpacked_stores(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The four stores, unpacked once; for reading only."""
    folder = tmp_path_factory.mktemp("real")
    unpack("stores.tar.xz", folder)
    return folder / "stores"


@pytest.fixture(scope="session")
def unpacked_expectations(tmp_path_factory: pytest.TempPathFactory) -> Path:
    folder = tmp_path_factory.mktemp("answers")
    unpack("expected.tar.xz", folder)
    return folder / "expected"


@pytest.fixture
def real_store(unpacked_stores: Path, tmp_path: Path) -> Callable[[str], Path]:
    """``real_store("clean")``: the path of this test's own writable copy of a store of the real broker."""

    def copied(name: str) -> Path:
        target = tmp_path / name
        if not target.exists():
            shutil.copytree(unpacked_stores / name, target)
        return target

    return copied


@pytest.fixture(scope="session")
def expected(unpacked_expectations: Path) -> Callable[[str], dict[str, Any]]:
    """``expected("clean")``: what the real store answers for it; also ``expected("edges-killed.damaged")``."""
    cache: dict[str, dict[str, Any]] = {}

    def answers(name: str) -> dict[str, Any]:
        if name not in cache:
            cache[name] = json.loads((unpacked_expectations / f"{name}.json").read_text(encoding="utf-8"))
        return cache[name]

    return answers


@pytest.fixture(scope="session")
def vectors() -> Callable[[str], Any]:
    """``vectors("hashes")``: answers of RocketMQ's own classes to random questions, and ``vectors("scenario")``."""
    return read_json


@pytest.fixture(scope="session")
def exchanges() -> list[dict[str, Any]]:
    """Request/response pairs between real clients, name server and broker."""
    text = gzip.decompress((FIXTURES / "exchanges.jsonl.gz").read_bytes()).decode("utf-8")
    return [json.loads(line) for line in text.splitlines()]

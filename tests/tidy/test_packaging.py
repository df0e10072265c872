"""pyproject.toml, environment.yml and requirements.lock name the same things."""

from __future__ import annotations

import re
import tomllib
from typing import Any

import yaml
from packaging.requirements import Requirement
from packaging.utils import canonicalize_name
from packaging.version import Version

from tests.tidy.sources import ROOT

CONDA_NAMES = {"python-graphviz": "graphviz", "python-duckdb": "duckdb"}  # conda: the bare names are the programs


def project() -> dict[str, Any]:
    return tomllib.loads((ROOT / "pyproject.toml").read_text("utf-8"))["project"]


def wanted(*extras: str) -> dict[str, str]:
    """What mqlab needs with these extras, and with the extras that they name: a package and its versions."""
    optional = {name: list(map(Requirement, lines)) for name, lines in project()["optional-dependencies"].items()}
    found, waiting = {}, list(map(Requirement, project()["dependencies"]))
    for extra in extras:
        waiting += optional[extra]
    while waiting:
        requirement = waiting.pop()
        if requirement.name == "mqlab":
            waiting += [needed for name in requirement.extras for needed in optional[name]]
        else:
            found[canonicalize_name(requirement.name)] = str(requirement.specifier)
    return found


def locked() -> dict[str, list[Requirement]]:
    pinned: dict[str, list[Requirement]] = {}
    for line in (ROOT / "requirements.lock").read_text("utf-8").splitlines():
        if re.match(r"[a-zA-Z0-9]", line):
            requirement = Requirement(line.rstrip(" \\"))
            pinned.setdefault(canonicalize_name(requirement.name), []).append(requirement)
    return pinned


def test_conda_users_get_the_same_things() -> None:
    listed = yaml.safe_load((ROOT / "environment.yml").read_text("utf-8"))["dependencies"]
    by_pip = next(entry["pip"] for entry in listed if isinstance(entry, dict))
    assert "-e ." in by_pip
    lines = [entry for entry in listed if isinstance(entry, str)] + [entry for entry in by_pip if entry != "-e ."]
    found = {}
    for line in lines:
        requirement = Requirement(line)
        name = canonicalize_name(CONDA_NAMES.get(requirement.name, requirement.name))
        found[name] = str(requirement.specifier)
    assert str(Requirement(f"python{project()['requires-python']}").specifier) == found.pop("python")
    found.pop("pip")
    assert found == wanted("dev")


def test_the_lock_satisfies_pyproject() -> None:
    pinned = locked()
    for name, specifier in wanted("dev", "bench").items():
        assert name in pinned, f"{name} is not locked: make lock"
        for requirement in pinned[name]:
            (pin,) = requirement.specifier
            assert Version(pin.version) in Requirement(f"{name}{specifier}").specifier, requirement


def test_everything_locked_is_pinned_with_hashes_and_names_no_index() -> None:
    text = (ROOT / "requirements.lock").read_text("utf-8")
    assert "://" not in text
    assert not re.search(r"^\s*-(?!-hash)", text, re.MULTILINE)
    blocks = re.split(r"\n(?=[a-zA-Z0-9])", text)[1:]
    assert len(blocks) > 80
    for block in blocks:
        assert re.match(r"[\w.\[\],-]+==\S+.*\\\n    --hash=sha256:[0-9a-f]{64}", block), block[:80]


def test_the_readme_begins_with_a_link_to_the_site() -> None:
    first = re.search(r"\]\(([^)]+)\)", (ROOT / "README.md").read_text("utf-8"))
    assert first is not None and first[1] == project()["urls"]["Site"]

"""Each wing imports what its extra brings, and where that is not installed, the error names the extra."""

from __future__ import annotations

import functools
import json
import subprocess
import sys
import sysconfig
import venv
from pathlib import Path

import pytest
from packaging.utils import canonicalize_name

from mqlab.extras import NEEDS, MissingExtra, need
from tests.tidy.sources import ROOT, Module, assert_none, imports, modules
from tests.tidy.test_packaging import project, wanted

BROUGHT = {  # modules that a listed package brings along
    "nbval": ("IPython", "ipykernel", "jupyter_client", "pytest", "_pytest", "traitlets"),
    "pyspark": ("py4j",),
    "grpcio": ("grpc",),
    "protobuf": ("google", "google.protobuf"),
}
LOADED_BY_PYTEST = {"mqlab.cluster.testing.plugin"}  # pytest finds it by its entry point
IN_A_BROWSER = {"pyodide"}  # there it is part of Python
EXTRAS_OF = {
    "rocketmq": (),
    "lab": ("lab",),
    "cluster": ("lab", "cluster", "grpc"),
    "data": ("spark",),
    "course": ("course", "spark"),  # labs 10 to 14 use days of traffic
    "cli": (),  # a verb imports what it needs when it is called
}


@functools.cache
def allowed(*extras: str) -> set[str]:
    """Modules that may be imported with these extras installed."""
    packages = wanted(*extras)
    brought = {name for package in packages for name in BROUGHT.get(package, ())}
    return {name.replace("-", "_") for name in packages} | brought


def foreign(module: Module) -> list[str]:
    """What a module imports when it is loaded that neither Python, mqlab nor its wing's extras have."""
    known = {*sys.stdlib_module_names, "mqlab", *IN_A_BROWSER, *allowed(*EXTRAS_OF.get(module.wing, ()))}
    known |= {"pytest"} if module.name in LOADED_BY_PYTEST else set()
    return [
        f"{module.at(found.line)}: {found.target} is in no extra of this wing"
        for found in imports(module)
        if not found.lazy and found.target.partition(".")[0] not in known
    ]


def test_mqlab_alone_needs_click_and_greenlet() -> None:
    assert set(wanted()) == {"click", "greenlet"}


def test_all_is_every_wing() -> None:
    assert set(wanted("all")) == {name for extra in NEEDS for name in wanted(extra)}
    assert set(wanted("all")) < set(wanted("dev"))


def test_wings_import_what_their_extras_bring() -> None:
    assert_none(line for module in modules() for line in foreign(module))


@pytest.mark.parametrize("extra", NEEDS)
def test_what_a_wing_asks_for_is_in_its_extra(extra: str) -> None:
    listed = {canonicalize_name(name.split(">")[0].split("[")[0]) for name in project()["optional-dependencies"][extra]}
    brought = {name for package in listed for name in BROUGHT.get(package, ())}
    assert {name for name in NEEDS[extra] if canonicalize_name(name) not in listed} <= brought


def test_what_is_installed_is_not_missed() -> None:
    for extra in NEEDS:
        need(extra)


@pytest.fixture(scope="module")
def bare(tmp_path_factory: pytest.TempPathFactory) -> Path:
    """The Python of an environment with this tree, click and greenlet alone."""
    folder = tmp_path_factory.mktemp("bare") / "env"
    venv.create(folder, with_pip=False)
    (site,) = folder.glob("lib/python*/site-packages")
    for name in ("click", "greenlet"):
        (site / name).symlink_to(Path(sysconfig.get_path("platlib")) / name)
    (site / "tree.pth").write_text(f"{ROOT}\n", "utf-8")
    return folder / "bin" / "python"


def run(bare: Path, *words: str) -> subprocess.CompletedProcess[str]:
    return subprocess.run([str(bare), "-I", *words], capture_output=True, text=True, check=False)


def assert_each_names_its_extra(bare: Path, program: str, begins: str, wanted: dict[str, str]) -> None:
    """``program`` prints what is said to each of its arguments; one Python answers for all of them."""
    answers = json.loads(run(bare, "-c", program, *wanted).stdout)
    assert answers.keys() == wanted.keys()
    for asked, extra in wanted.items():
        assert answers[asked].startswith(begins) and f'hint: pip install "mqlab[{extra}]"' in answers[asked]


def test_a_library_that_is_not_installed_is_named_with_its_extra(bare: Path) -> None:
    wanted = {
        "mqlab.lab.views.table": "lab",
        "mqlab.lab.inspector": "lab",
        "mqlab.data.arrow.reading": "spark",
        "mqlab.data.spark": "spark",
        "mqlab.course.teach": "course",
    }
    program = """
import importlib, json, sys
said = {}
for module in sys.argv[1:]:
    try:
        importlib.import_module(module)
    except ImportError as error:
        said[module] = f"{type(error).__name__}: {error}"
print(json.dumps(said))
"""
    assert_each_names_its_extra(bare, program, "MissingExtra: ", wanted)


def test_a_verb_says_which_extra_it_needs(bare: Path) -> None:
    wanted = {
        "lab": "course",
        "progress": "course",
        "check x.ipynb": "course",
        "inspect .": "lab",
        "traffic --messages 9 --out x": "spark",
        "sim --seeds 1": "lab",
    }
    program = """
import json, sys
from click.testing import CliRunner
from mqlab.cli import main
answers = {words: CliRunner().invoke(main, words.split()) for words in sys.argv[1:]}
print(json.dumps({words: f"{answer.exit_code} {answer.stderr}" for words, answer in answers.items()}))
"""
    assert_each_names_its_extra(bare, program, "2 mqlab: ", wanted)


def test_a_world_is_played_and_the_doctor_is_asked_without_any_extra(bare: Path) -> None:
    program = (
        "from mqlab import Lab, Message; lab = Lab(); shop = lab.producer('shop')\n"
        "print(shop.send(Message('orders', b'1')).send_status)"
    )
    assert "SEND_OK" in run(bare, "-c", program).stdout
    answer = run(bare, "-m", "mqlab.cli", "doctor")
    assert answer.returncode == 1 and 'to get it:    pip install "mqlab[course]"' in answer.stdout


def test_the_error_is_one_that_import_guards_catch() -> None:
    error = MissingExtra("spark", ("pyspark",))
    assert isinstance(error, ImportError) and error.extra == "spark"
    assert str(error) == 'pyspark is not installed\n  hint: pip install "mqlab[spark]"'

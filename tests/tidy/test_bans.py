"""The determinism contract as far as a parser sees it: what core packages may not import, call or iterate over."""

from __future__ import annotations

import ast
from collections.abc import Iterator
from pathlib import Path

import pytest

from tests.tidy.sources import Module, assert_none, in_rooms, modules, parse

CORE = frozenset(
    {"counts", "durations", "errors"}
    | {
        f"rocketmq.{room}"
        for room in ("answers", "ports", "promises", "settings", "signals", "state_table", "stats_item")
    }
    | {f"rocketmq.{room}" for room in ("wire", "filter", "store", "remoting", "broker", "client", "nameserver")}
)
BANNED_MODULES = {"time", "random", "uuid", "threading", "socket", "asyncio", "queue", "secrets"}
BANNED_CALLS = {"open", "input", "id", "hash"}  # id() and hash(text) differ between runs
BANNED_METHODS = {"now", "today", "utcnow"}  # of datetime and date: the clock comes through a port
READ_NUMBERS_AS_JAVA = frozenset(
    {f"rocketmq.{room}" for room in ("admin", "broker", "client", "nameserver", "remoting")} | {"cluster.grpc"}
)
BANNED_NAMES = {"utils", "util", "common", "helpers", "helper", "manager", "inspect", "misc"}


def objections(module: Module) -> Iterator[str]:
    for node in ast.walk(module.tree):
        if isinstance(node, ast.Import | ast.ImportFrom):
            names = [alias.name for alias in node.names] if isinstance(node, ast.Import) else [node.module or ""]
            for name in names:
                if name.split(".")[0] in BANNED_MODULES and not (name == "random" and only_as_type(module)):
                    yield f"{module.at(node.lineno)}: imports {name}; it comes through a port"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in BANNED_CALLS:
            yield f"{module.at(node.lineno)}: calls {node.func.id}()"
        elif isinstance(node, ast.Call) and isinstance(node.func, ast.Attribute) and node.func.attr in BANNED_METHODS:
            if ast.unparse(node.func).split(".")[-2:-1] in (["datetime"], ["date"]):
                yield f"{module.at(node.lineno)}: calls {ast.unparse(node.func)}()"
        elif isinstance(node, ast.FunctionDef):
            yield from set_loops(node, module)
    yield from set_loops(module.tree, module)


def only_as_type(module: Module) -> bool:
    """Whether ``random`` is there for the annotation ``random.Random`` alone: the numbers come from ports.rng."""
    called = {ast.unparse(node.func) for node in ast.walk(module.tree) if isinstance(node, ast.Call)}
    attributes = [node for node in ast.walk(module.tree) if isinstance(node, ast.Attribute)]
    used = {ast.unparse(node) for node in attributes if ast.unparse(node.value) == "random"}
    return used == {"random.Random"} and not used & called


def set_loops(scope: ast.FunctionDef | ast.Module, module: Module) -> Iterator[str]:
    """Loops over a set: a literal, a comprehension, a call of set(), or a name of this scope bound to one of these."""
    own = list(own_nodes(scope))
    names = {
        target.id
        for node in own
        if isinstance(node, ast.Assign | ast.AnnAssign) and node.value is not None and is_set(node.value, set())
        for target in (node.targets if isinstance(node, ast.Assign) else [node.target])
        if isinstance(target, ast.Name)
    }
    for node in own:
        over = []
        if isinstance(node, ast.For):
            over = [node.iter]
        elif isinstance(node, ast.ListComp | ast.DictComp | ast.GeneratorExp):
            over = [generator.iter for generator in node.generators]
        elif (
            isinstance(node, ast.Call) and isinstance(node.func, ast.Name) and node.func.id in ("list", "tuple", "iter")
        ):
            over = node.args[:1]
        elif isinstance(node, ast.Starred):
            over = [node.value]
        for iterated in over:
            if is_set(iterated, names):
                yield f"{module.at(iterated.lineno)}: goes through a set, whose order differs between runs; sort it"


def own_nodes(scope: ast.AST) -> Iterator[ast.AST]:
    """Nodes of a scope, without those of the functions in it."""
    for child in ast.iter_child_nodes(scope):
        if isinstance(child, ast.FunctionDef | ast.AsyncFunctionDef):
            continue
        yield child
        yield from own_nodes(child)


def is_set(node: ast.AST, names: set[str]) -> bool:
    if isinstance(node, ast.Set | ast.SetComp):
        return True
    if isinstance(node, ast.Call) and isinstance(node.func, ast.Name):
        return node.func.id in ("set", "frozenset")
    if isinstance(node, ast.BinOp) and isinstance(node.op, ast.BitOr | ast.BitAnd | ast.Sub | ast.BitXor):
        return is_set(node.left, names) or is_set(node.right, names)
    return isinstance(node, ast.Name) and node.id in names


def test_core_packages_keep_the_determinism_contract() -> None:
    assert_none(line for module in in_rooms(CORE) for line in objections(module))


def test_numbers_of_frames_and_files_are_read_as_java_does() -> None:
    """``int`` takes blanks and underscores that nothing of RocketMQ takes: java_numbers and java_json read numbers."""
    assert_none(
        f"{module.at(node.lineno)}: calls int()"
        for module in in_rooms(READ_NUMBERS_AS_JAVA)
        for node in ast.walk(module.tree)
        if isinstance(node, ast.Call) and ast.unparse(node.func) == "int"
    )


def test_no_module_has_a_name_that_says_nothing() -> None:
    bad = [module.name for module in modules() if module.name.split(".")[-1] in BANNED_NAMES]
    assert not bad


@pytest.mark.parametrize(
    ("source", "refused"),
    [
        ("import time", True),
        ("from random import Random", True),
        ("import random\nx = random.Random(7)", True),
        ("import random\ndef f(rng: random.Random): return random.random()", True),
        ("import random\ndef f(rng: random.Random): return rng.random()", False),
        ("def f():\n    import socket", True),
        ("text = open('x').read()", True),
        ("from datetime import datetime\nnow = datetime.now()", True),
        ("import datetime\nnow = datetime.datetime.utcnow()", True),
        ("from datetime import datetime\nd = datetime.strptime(text, '%Y')", False),
        ("for x in {1, 2}: pass", True),
        ("def f(a):\n    s = set(a)\n    for x in s: pass", True),
        ("def f(a, b):\n    return [x for x in set(a) - b]", True),
        ("def f(a):\n    return list({y for y in a})", True),
        ("def f(a):\n    return [*frozenset(a)]", True),
        ("def f(a):\n    for x in sorted(set(a)): pass", False),
        ("def f(a):\n    s = set(a)\n    return 3 in s", False),
        ("files.open_map('x')", False),
        ("def f(a):\n    return {x for x in set(a)}", False),
    ],
)
def test_the_rules_see_what_they_should(source: str, refused: bool) -> None:
    assert bool(list(objections(parse("mqlab.rocketmq.store.tried", Path(__file__), source)))) is refused

"""The measures of the package's structure: `make measure` prints them, tests hold some of them.

    files and functions   how long they are, in Python and in the boards' JavaScript
    lines                 of each wing of the package, and of the tests
    circles               groups of files that import each other, imports for types included
    comments              lines of functions that are comments
    class names           public ones that more than one file has
    fmt: skip             lines that the formatter may not touch
    calls, files          from producer.send to the committed offset: function calls per message, files and lines met
    repeats               runs of lines that are in two files

Runs on any tree that has a package mqlab: ``python -m tests.tidy.measures [ROOT]``.
"""

from __future__ import annotations

import ast
import io
import re
import sys
import tokenize
from collections import Counter, defaultdict
from collections.abc import Iterable, Iterator
from pathlib import Path
from types import CodeType
from typing import Any

from tests.tidy.sources import PACKAGE, ROOT, Module, imports, modules, modules_of

SAME_LINES = 6
FUNCTION_LINES = 60
PYTHON = ("mqlab", "tests", "solutions", "benchmarks")
JAVASCRIPT_FUNCTION = re.compile(
    r"( *)(?! |(?:if|for|while|switch|\} else|\} catch)\b)(?:.*(?:\bfunction\b.*|=>|\w\([^;]*\))|\)) \{$"
)


def import_graph(every: Iterable[Module]) -> dict[str, set[str]]:
    """Module -> the modules it names in an import, wherever in the file, for types too."""
    every = list(every)
    names = {module.name for module in every}
    graph: dict[str, set[str]] = {}
    for module in every:
        graph[module.name] = set()
        submodules = [
            f"{node.module}.{alias.name}"
            for node in ast.walk(module.tree)
            if isinstance(node, ast.ImportFrom) and node.module and not node.level
            for alias in node.names
        ]
        packages = {name.rpartition(".")[0] for name in submodules if name in names}
        targets = [imported.target for imported in imports(module) if imported.target not in packages]
        for target in [*targets, *(name for name in submodules if name in names)]:
            while target and target not in names:
                target = target.rpartition(".")[0]
            if target and target != module.name and target != "mqlab":
                graph[module.name].add(target)
    return graph


def circles(graph: dict[str, set[str]]) -> list[list[str]]:
    """The strongly connected groups of more than one file, largest first (Tarjan's algorithm, without recursion)."""
    index: dict[str, int] = {}
    low: dict[str, int] = {}
    on_path: set[str] = set()
    path: list[str] = []
    groups: list[list[str]] = []
    for start in sorted(graph):
        if start in index:
            continue
        index[start] = low[start] = len(index)
        path.append(start)
        on_path.add(start)
        work = [(start, iter(sorted(graph[start])))]
        while work:
            node, targets = work[-1]
            for target in targets:
                if target not in index:
                    index[target] = low[target] = len(index)
                    path.append(target)
                    on_path.add(target)
                    work.append((target, iter(sorted(graph[target]))))
                    break
                if target in on_path:
                    low[node] = min(low[node], index[target])
            else:
                work.pop()
                if work:
                    low[work[-1][0]] = min(low[work[-1][0]], low[node])
                if low[node] == index[node]:
                    group: list[str] = []
                    while not group or group[-1] != node:
                        group.append(path.pop())
                        on_path.discard(group[-1])
                    if len(group) > 1:
                        groups.append(sorted(group))
    return sorted(groups, key=lambda group: (-len(group), group))


def function_lines(module: Module) -> Iterator[tuple[str, int]]:
    """Name and number of lines of each function."""
    for node in ast.walk(module.tree):
        if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
            yield node.name, (node.end_lineno or node.lineno) - node.lineno + 1


def javascript_functions(text: str) -> Iterator[int]:
    """Number of lines of each function, by the indentation of its last brace."""
    lines = text.splitlines()
    for number, line in enumerate(lines):
        if begins := JAVASCRIPT_FUNCTION.match(line):
            last = f"{begins[1]}}}"
            yield next((end - number + 1 for end in range(number, len(lines)) if lines[end].startswith(last)), 0)


def double_class_names(every: Iterable[Module]) -> list[str]:
    """Names of public classes at the top of more than one file, with the files."""
    homes: dict[str, list[str]] = defaultdict(list)
    for module in every:
        for node in module.tree.body:
            if isinstance(node, ast.ClassDef) and not node.name.startswith("_"):
                homes[node.name].append(module.name)
    return [f"{name}: {', '.join(files)}" for name, files in sorted(homes.items()) if len(files) > 1]


def lines_by_wing(every: Iterable[Module]) -> Counter[str]:
    """Folder or file below the package -> lines of Python."""
    lines: Counter[str] = Counter()
    for module in every:
        lines[module.name.split(".")[1] if "." in module.name else module.name] += module.text.count("\n")
    return lines


def python_texts(root: Path) -> Iterator[tuple[str, str]]:
    """The top folder and the text of every Python file of a tree."""
    for folder in PYTHON:
        for path in sorted((root / folder).rglob("*.py")):
            yield folder, path.read_text("utf-8")


def comment_share(every: Iterable[Module]) -> float:
    """Which part of the lines of all functions, docstrings left out, has a comment (directives do not count)."""
    lines = comments = 0
    for module in every:
        inside: set[int] = set()
        for node in ast.walk(module.tree):
            if isinstance(node, ast.FunctionDef | ast.AsyncFunctionDef):
                first = node.body[0]
                is_docstring = isinstance(first, ast.Expr) and isinstance(first.value, ast.Constant)
                start = (first.end_lineno or first.lineno) + 1 if is_docstring else node.lineno + 1
                inside.update(range(start, (node.end_lineno or node.lineno) + 1))
        lines += len(inside)
        for token in tokenize.generate_tokens(io.StringIO(module.text).readline):
            if token.type == tokenize.COMMENT and token.start[0] in inside:
                comments += not re.match(r"#\s*(type: ignore|noqa|fmt:|pragma)", token.string)
    return comments / max(lines, 1)


def repeats(every: Iterable[Module]) -> Counter[tuple[str, str]]:
    """Pairs of files -> how many runs of six lines stand in both, comments, blank lines and imports left out."""
    places: dict[tuple[str, ...], set[str]] = defaultdict(set)
    for module in every:
        lines = [line.strip() for line in module.text.splitlines()]
        lines = [line for line in lines if len(line) > 3 and not line.startswith(("#", "import ", "from ", '"""'))]
        for start in range(len(lines) - SAME_LINES + 1):
            places[tuple(lines[start : start + SAME_LINES])].add(module.name)
    pairs: Counter[tuple[str, str]] = Counter()
    for files in places.values():
        ordered = sorted(files)
        pairs.update((one, other) for at, one in enumerate(ordered) for other in ordered[at + 1 :])
    return pairs


def one_message(package: Path = PACKAGE) -> dict[str, int]:
    """Calls per message, and the package's files and functions met, from producer.send to the committed offset."""
    import cProfile

    from mqlab import CONSUME_SUCCESS, Lab, Message

    count = 200
    lab = Lab(client={"enable_trace": False}, journal_limit=1_000)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")
    consumer.on_messages(lambda messages, context: CONSUME_SUCCESS)
    consumer.start()
    producer = lab.producer("shop")
    lab.run_for("40s")
    profiler = cProfile.Profile()

    def send_and_commit() -> None:
        for number in range(count):
            producer.send(Message("orders", b"x" * 100, tags="paid", keys=f"order-{number}"))
        lab.run_for("6s")

    profiler.runcall(send_and_commit)
    lab.close()
    entries: list[Any] = profiler.getstats()
    own = [e for e in entries if not isinstance(e.code, str) and str(package) in e.code.co_filename]
    files = {entry.code.co_filename for entry in own}
    return {
        "calls per message": sum(entry.callcount for entry in entries) // count,
        "files met by a message": len(files),
        "files met, without the drivers": len([name for name in files if "/runtime/" not in name]),
        "functions met": len(own),
        "lines of the functions met": sum(lines_of(entry.code) for entry in own),
    }


def lines_of(code: CodeType) -> int:
    """From the first line of a function to its last; 0 for a comprehension or a lambda, which its function contains."""
    last = max((line for _, _, line in code.co_lines() if line), default=0)
    return 0 if code.co_name.startswith("<") else last - code.co_firstlineno + 1


def folder_sizes(package: Path) -> Counter[str]:
    """Folder -> its Python files, ``__init__`` left out."""
    files = (path for path in package.rglob("*.py") if path.name != "__init__.py")
    return Counter(str(path.parent.relative_to(package)) for path in files)


def measured(root: Path) -> dict[str, Any]:
    """All measures of a tree, by name."""
    every = modules() if root == ROOT else modules_of(root / "mqlab")
    lengths = sorted(module.text.count("\n") for module in every)
    functions = sorted(lines for module in every for _, lines in function_lines(module))
    scripts = [path.read_text("utf-8") for path in sorted((root / "mqlab").rglob("*.js"))]
    javascript = sorted(lines for text in scripts for lines in javascript_functions(text))
    texts = list(python_texts(root))
    return {
        "files": len(every),
        "lines": sum(lengths),
        "lines by wing": ", ".join(f"{name} {count}" for name, count in lines_by_wing(every).most_common(6)),
        "lines of the tests": sum(text.count("\n") for folder, text in texts if folder == "tests"),
        "longest file": lengths[-1],
        "longest function": functions[-1],
        "function, 99th percentile": functions[len(functions) * 99 // 100],
        f"functions over {FUNCTION_LINES} lines": sum(lines > FUNCTION_LINES for lines in functions),
        "JavaScript files and lines": f"{len(scripts)}, {sum(text.count(chr(10)) for text in scripts)}",
        "longest function in JavaScript": javascript[-1] if javascript else 0,
        f"JavaScript functions over {FUNCTION_LINES} lines": sum(lines > FUNCTION_LINES for lines in javascript),
        "circles of imports (files in each)": [len(group) for group in circles(import_graph(every))],
        "public class names of several files": [line.partition(":")[0] for line in double_class_names(every)],
        "fmt: skip": sum(len(re.findall(r"# fmt: (?:skip|off)\b", text)) for _, text in texts),
        "type: ignore[misc]": sum(module.text.count("type: ignore[misc]") for module in every),
        "comments in functions": f"{comment_share(every):.1%}",
        "pairs of files that share runs of six lines": len(repeats(every)),
        "largest folders": ", ".join(f"{name} {count}" for name, count in folder_sizes(root / "mqlab").most_common(5)),
    }


if __name__ == "__main__":
    tree = Path(sys.argv[1]).resolve() if len(sys.argv) > 1 else ROOT
    rows = measured(tree)
    if tree == ROOT:
        rows |= one_message()
    for name, value in rows.items():
        print(f"{name:44} {value}")

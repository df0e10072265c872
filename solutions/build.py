"""Builds the notebooks from their one source each: labs/ for students, solutions/ with answers and outputs.

    solutions/source/00_a_messages_day.py ─┬─▶ labs/00-a-messages-day.ipynb        no answers, no outputs
                                           └─▶ solutions/00-a-messages-day.ipynb   answers, outputs of a fresh run
    solutions/source/index.py ───────────────▶ labs/index.ipynb
    solutions/source/07a_….py, 07b_….py ─────▶ mqlab/course/words/lab07.json        what the lab says beside its prose

A lab in parts has a source and two notebooks for each part; its exercises are still called lab07.schedule.

A source is py:percent text (jupytext reads it too): ``# %%`` begins a code cell, ``# %% [markdown]`` a text cell,
options such as ``tags=["explorer"]`` may follow. The minutes of a notebook are computed from its cells
(solutions/minutes.py). Questions, hints, refutations and model answers have cells of their own, between the prose:
``# %% [prediction] lab07.first_retry``, and ``[exercise]``, ``[answer]``, ``[reflection]``, ``[belief]``; how they are
written is at the head of solutions/words.py. What a lab with such cells must keep to is in solutions/lint.py.

Markers enclose an answer, and may enclose the student's text:

    # exercise: lab00.find                 first line of an answer cell; a cell with check("lab00.find") is its check
    def find(...):
        ### BEGIN SOLUTION
        return ...
        ### STARTER                        optional; its lines are comments that lose their "# "; default: STARTER below
        # ...  # your code
        ### END SOLUTION

Run ``make labs``, or ``python -m solutions.build [--check] [--keep-outputs] [00 10 index]``. The same source gives the
same bytes. With ``--keep-outputs`` a solution whose code is as it was keeps its outputs, with today's boards, unrun.
"""

from __future__ import annotations

import argparse
import ast
import json
import os
import re
import sys
from collections.abc import Iterator
from pathlib import Path
from typing import Any

from mqlab.course.teach.exercises import exercise, manifest
from mqlab.course.widgets.frame.board import WHOLE_PAGES
from mqlab.course.words import words_of
from mqlab.course.words.parts import FILE, parts
from mqlab.errors import UsageError
from solutions.boards import renewed
from solutions.cells import Cell, read, read_words, shown
from solutions.lint import complaints, new_complaints
from solutions.minutes import ANSWER_CELL, asked_in, cell_minutes, filled, filled_page, notebook_minutes
from solutions.plain_english import sentences_against_the_rules
from solutions.words import KINDS, Typed, compiled, lab_and_part
from solutions.wrong import beliefs_held

ROOT = Path(__file__).resolve().parents[1]
SOURCES = ROOT / "solutions" / "source"
STARTER = "...  # your code here"
BEGIN, MIDDLE, END = "### BEGIN SOLUTION", "### STARTER", "### END SOLUTION"
WORDS = ROOT / "mqlab" / "course" / "words"
PAGE = ROOT / "docs" / "instructors.md"
KEEP = "--keep-outputs"
EXERCISE = re.compile(r"^#+ Exercise (\d+): ", re.MULTILINE)
MENTIONED = re.compile(r"\b([Ee]xercise) (\d+)\b")
CHECK = re.compile(r'^check\("([^"]+)"', re.MULTILINE)
PLACE = re.compile(r' data-mqlab-place="\w+"')  # of the widget that was there during the run: another name each time
METADATA = {
    "kernelspec": {"display_name": "Python 3 (ipykernel)", "language": "python", "name": "python3"},
    "language_info": {"name": "python"},
}


def split(source: str, where: str) -> tuple[str, str]:
    """The student's and the solved text of a code cell. UsageError for markers unclosed, doubled or out of order."""
    student: list[str] = []
    solved: list[str] = []
    starter: list[str] = []
    # ``state`` is the marker that was met last; END means outside of an answer.
    state = END
    for number, line in enumerate(source.splitlines(), 1):
        marker = line.strip()
        # 1. A marker must be allowed after the one before it.
        if marker.startswith("###"):
            allowed = {END: (BEGIN,), BEGIN: (MIDDLE, END), MIDDLE: (END,)}[state]
            if marker not in allowed:
                raise UsageError(
                    f"{where}, line {number} of the cell: {marker!r} where {' or '.join(map(repr, allowed))} may stand"
                )
            indent = line[: len(line) - len(line.lstrip())]
            # 2. At the end of an answer, the student gets the starter in its place.
            if marker == END:
                student.extend(starter if state == MIDDLE else [indent + STARTER])
                starter = []
            state = marker
        # 3. Between the markers, lines go to one side only; outside, to both.
        elif state == BEGIN:
            solved.append(line)
        elif state == MIDDLE:
            if not line.lstrip().startswith("# "):
                raise UsageError(f"{where}, line {number} of the cell: a starter line begins with '# ', found {line!r}")
            starter.append(line.replace("# ", "", 1))
        else:
            student.append(line)
            solved.append(line)
    if state != END:
        raise UsageError(f"{where}: {state!r} is not closed by {END!r}")
    return "\n".join(student), "\n".join(solved)


def words_in(text: str, where: str) -> list[Typed]:
    """The cells of words of a source. UsageError for an id of another lab."""
    lab, _ = lab_and_part(where)
    found = [read_words(cell, where) for cell in read(text, where) if cell.kind in KINDS]
    for cell in found:
        if not cell.id.startswith(f"{lab}."):
            raise UsageError(f"{cell.where}: {cell.id} is not an id of {lab}")
    return found


def parts_of(lab: str) -> list[Path]:
    """The sources of a lab, one for each of its parts."""
    return [path for path in sorted(SOURCES.glob("*.py")) if lab_and_part(path.name)[0] == lab]


def words(lab: str) -> dict[str, Any] | None:
    """The words of all parts of a lab, as its file has them; None if its sources have none."""
    texts = {path.name: path.read_text("utf-8") for path in parts_of(lab)}
    found = [cell for where, text in texts.items() for cell in words_in(text, where)]
    return compiled(found) if found else None


def shown_cells(text: str, where: str) -> list[Cell]:
    """The cells of a source as its notebook has them, code as the student gets it."""
    found = numbered([cell for written in read(text, where) for cell in shown(written, where)])
    for cell in found:
        if cell.kind == "code":
            cell.source = split(cell.source, f"{where}, cell of line {cell.line}")[0]
    return found


def numbered(cells: list[Cell]) -> list[Cell]:
    """The cells with exercises counted from 1, whatever the source calls them; "exercise 4" in the text follows."""
    written = [found[1] for cell in cells if (found := EXERCISE.search(cell.source)) and cell.kind == "markdown"]
    number = {old: str(new) for new, old in enumerate(written, 1)}
    for cell in cells:
        cell.source = MENTIONED.sub(lambda found: f"{found[1]} {number.get(found[2], found[2])}", cell.source)
    return cells


def measured(text: str, where: str) -> dict[str, Any]:
    """What is known of a lab's notebook beside its cells: page, minutes, what it asks and how far in."""
    part, cells = lab_and_part(where)[1], shown_cells(text, where)
    before, asked, passed = [], [], 0.0
    for cell in cells:
        passed += cell_minutes(cell, part, points)
        asked += (ids := list(asked_in([cell])))
        before += [round(passed)] * len(ids)
    return {
        "page": targets(SOURCES / where)[0].name,
        "minutes": notebook_minutes(cells, part, points),
        "asked": asked,
        "before": before,
    }


def points(exercise_id: str) -> int:
    """What an exercise gives."""
    return exercise(exercise_id).points


def notebook(text: str, where: str, *, solved: bool) -> dict[str, Any]:
    """The notebook of a source, without outputs."""
    _, part = lab_and_part(where)
    own_minutes = notebook_minutes(shown_cells(text, where), part, points)
    cells, seen = [], set()
    every = numbered([cell for written in read(text, where) for cell in shown(written, where)])
    for number, cell in enumerate(every, 1):
        source = cell.source
        if cell.kind == "code":
            student, answered = split(source, f"{where}, cell of line {cell.line}")
            source = answered if solved else student
        else:
            source = filled(source, own_minutes, f"{where} line {cell.line}")
        identity, metadata = _identity(cell, f"lab{part}" if part[:2].isdigit() else part, number)
        # nbformat demands unique ids, and a submission's answers are found by them.
        if identity in seen:
            raise UsageError(
                f"{where} line {cell.line}: a second cell {identity!r}", hint="one answer cell an exercise"
            )
        seen.add(identity)
        if cell.tags:
            # An explorer's saved output holds its module, which may be newer than the notebook: nbval only runs it.
            metadata["tags"] = [*cell.tags, *(["nbval-ignore-output"] if "explorer" in cell.tags else [])]
        # The order of the keys does not matter: they are sorted when the file is written.
        made: dict[str, Any] = {"cell_type": cell.kind, "id": identity, "metadata": metadata}
        if cell.kind == "code":
            made |= {"execution_count": None, "outputs": []}
        made["source"] = source.splitlines(keepends=True)
        cells.append(made)
    return {"cells": cells, "metadata": METADATA, "nbformat": 4, "nbformat_minor": 5}


def _identity(cell: Cell, lab: str, number: int) -> tuple[str, dict[str, Any]]:
    """A cell's id and its grading metadata (shaped as nbgrader's): answers and checks are named by their exercise."""
    answer, check = ANSWER_CELL.match(cell.source), CHECK.search(cell.source)
    found = answer or check
    # A saved prediction is found by its cell's id, wherever the cell stands in the next version of the lab.
    if cell.kind == "code" and cell.id:
        return f"{cell.id.replace('.', '-')}-predict", {}
    if cell.kind == "markdown" or found is None:
        return f"{lab}-{number:02d}", {}
    asked = exercise(found[1])
    grade_id = asked.id.replace(".", "-") + ("" if answer else "-check")
    grading: dict[str, Any] = {
        "grade": not answer,
        "grade_id": grade_id,
        "locked": not answer,
        "schema_version": 3,
        "solution": bool(answer),
        "task": False,
    }
    if not answer:
        grading["points"] = asked.points
    return grade_id, {"nbgrader": grading}


def with_outputs(made: dict[str, Any]) -> dict[str, Any]:
    """The notebook after a fresh run from its own folder; explorers are saved as pages that need no kernel."""
    import nbformat
    from nbclient import NotebookClient

    node = nbformat.reads(json.dumps(made), as_version=4)
    client = NotebookClient(
        node,
        timeout=300,
        record_timing=False,
        resources={"metadata": {"path": str(ROOT / "solutions")}},
        coalesce_streams=True,  # on a busy machine what a cell prints comes in several pieces
    )
    # Progress bars are for those who wait: in a saved page they would be lines of noise.
    # Their boards have all runs, for readers without a kernel.
    client.execute(env={**os.environ, "TQDM_DISABLE": "1", WHOLE_PAGES: "1"})
    for cell in node.cells:
        cell.source = cell.source.splitlines(keepends=True)
        for output in cell.get("outputs", ()):
            data = output.get("data", {})
            if "text/html" in data:
                data["text/html"] = PLACE.sub("", data["text/html"])
            _split_texts(output)
    node.metadata = METADATA
    plain: dict[str, Any] = json.loads(json.dumps(node))
    return plain


def _split_texts(output: dict[str, Any]) -> None:
    for holder, names in ((output, ("text",)), (output.get("data", {}), tuple(output.get("data", {})))):
        for name in names:
            if isinstance(holder.get(name), str):
                holder[name] = holder[name].splitlines(keepends=True)


def dumped(made: dict[str, Any]) -> str:
    """A notebook as the text of its file: what Jupyter would write, keys in one order."""
    return json.dumps(made, indent=1, ensure_ascii=False, sort_keys=True) + "\n"


def spelled(words: dict[str, Any]) -> str:
    """A lab's words as the text of their file, in the order in which the source has them."""
    return json.dumps(words, indent=1, ensure_ascii=False) + "\n"


def targets(source: Path) -> tuple[Path, Path | None]:
    """The two files of a source; the index has no solution."""
    name = source.stem.replace("_", "-") + ".ipynb"
    return ROOT / "labs" / name, ROOT / "solutions" / name if source.stem[:2].isdigit() else None


def sources(chosen: list[str]) -> list[Path]:
    """All sources, or those whose name begins with one of ``chosen``. UsageError for a name that fits none."""
    found = sorted(SOURCES.glob("*.py"))
    for name in chosen:
        if not any(path.stem.startswith(name) for path in found):
            raise UsageError(f"no source begins with {name!r}", hint=f"there are: {', '.join(p.stem for p in found)}")
    return [path for path in found if not chosen or path.stem.startswith(tuple(chosen))]


def without_outputs(made: dict[str, Any]) -> dict[str, Any]:
    """A notebook as it is built before its run."""
    cells = [cell | ({"execution_count": None, "outputs": []} if "outputs" in cell else {}) for cell in made["cells"]]
    return made | {"cells": cells}


def against_the_rules(lab: str) -> list[str]:
    """What solutions.lint finds in a lab whose words are in its source; nothing for others."""
    found = words(lab)
    if found is None:
        return []
    parts = {
        path.name: [cell for written in read(path.read_text("utf-8"), path.name) for cell in shown(written, path.name)]
        for path in parts_of(lab)
    }
    wrong = new_complaints(lab, complaints(parts, found, manifest(lab), beliefs_held(lab)))
    for path in parts_of(lab):
        for rule, line, sentence in sentences_against_the_rules(path.name, read(path.read_text("utf-8"), path.name)):
            wrong.append(f"{path.name} line {line}: {sentence} ({rule})")
    return wrong


def generated(source: Path) -> Iterator[tuple[Path, str]]:
    """The texts beside the notebooks that a source gives, the words first: points, and so minutes, are read by them.

    Of a lab its words and what is known of its parts; of the index the instructor's page.
    """
    lab, part = lab_and_part(source.name)
    if lab == "index" and PAGE.exists():
        yield PAGE, filled_page(PAGE.read_text("utf-8"), PAGE.name)
    found = words(lab) if part[:2].isdigit() else None
    if found is not None:
        yield WORDS / f"{lab}.json", spelled(found)
        known = json.loads(FILE.read_text("utf-8")) if FILE.exists() else {}
        known[part] = measured(source.read_text("utf-8"), source.name)
        yield FILE, spelled(dict(sorted(known.items())))


def stale(source: Path) -> list[str]:
    """The files that differ from what the source gives: one line per file."""
    text, wrong = source.read_text("utf-8"), []
    lab, solution = targets(source)
    for page, content in generated(source):
        if not page.exists() or page.read_text("utf-8") != content:
            wrong.append(page)
    for path, solved in ((lab, False), (solution, True)):
        if path is None:
            continue
        kept = json.loads(path.read_text("utf-8")) if path.exists() else {"cells": []}
        built = notebook(text, source.name, solved=solved)
        # Outputs may differ from run to run (times, for example), so they are not compared.
        if (without_outputs(kept) if solved else kept) != built:
            wrong.append(path)
    return [f"{path.relative_to(ROOT)} is not what {source.name} says: run make labs" for path in wrong]


def same_code(kept: dict[str, Any], made: dict[str, Any]) -> bool:
    """Whether two notebooks run the same: their text, comments and the order of imports may differ."""
    return [_runs(cell) for cell in _code(kept)] == [_runs(cell) for cell in _code(made)]


def _code(made: dict[str, Any]) -> list[dict[str, Any]]:
    return [cell for cell in made["cells"] if cell["cell_type"] == "code"]


def _runs(cell: dict[str, Any]) -> list[str]:
    body = ast.parse("".join(cell["source"])).body
    imports = sorted(ast.dump(one) for one in body if isinstance(one, ast.Import | ast.ImportFrom))
    return imports + [ast.dump(one) for one in body if not isinstance(one, ast.Import | ast.ImportFrom)]


def solved_again(path: Path, made: dict[str, Any], *, keep: bool) -> dict[str, Any]:
    """A solution with its outputs: of a fresh run, or those it has where only its text is new and ``keep`` is asked."""
    kept = json.loads(path.read_text("utf-8")) if keep and path.exists() else {"cells": []}
    if not same_code(kept, made):
        return with_outputs(made)
    for cell, old in zip(_code(made), _code(kept), strict=True):
        cell |= {"execution_count": old["execution_count"], "outputs": renewed(old["outputs"])}
    return made


def build(source: Path, *, keep: bool = False) -> None:
    """Write a source's words and both of its notebooks."""
    text = source.read_text("utf-8")
    # The words come first: the manifest reads them, and the notebooks ask the manifest for points.
    for path, content in generated(source):
        path.write_text(content, "utf-8")
        words_of.cache_clear()
        parts.cache_clear()
    lab, solution = targets(source)
    lab.write_text(dumped(notebook(text, source.name, solved=False)), "utf-8")
    if solution is not None:
        made = solved_again(solution, notebook(text, source.name, solved=True), keep=keep)
        solution.write_text(dumped(made), "utf-8")


def main(arguments: list[str]) -> int:
    """Build, or with --check compare; 1 when something is stale, 2 when the arguments are wrong."""
    parser = argparse.ArgumentParser(prog="python -m solutions.build")
    parser.add_argument("names", nargs="*", metavar="NAME", help="beginnings of sources, such as 04a; default: all")
    parser.add_argument("--check", action="store_true", help="build nothing: name the notebooks that are stale")
    parser.add_argument(KEEP, action="store_true", help="run nothing: outputs stay, boards become today's")
    asked = parser.parse_args(arguments)
    try:
        chosen = sources(asked.names)
        wrong = [line for source in chosen for line in stale(source)] if asked.check else []
        for source in () if asked.check else chosen:
            print(f"building {source.name}", file=sys.stderr)
            build(source, keep=asked.keep_outputs)
        for lab in dict.fromkeys(lab_and_part(source.name)[0] for source in chosen):
            wrong += against_the_rules(lab)
    except UsageError as error:
        print(error, file=sys.stderr)
        return 2
    print("\n".join(wrong), file=sys.stderr)
    return 1 if wrong else 0


if __name__ == "__main__":
    sys.exit(main(sys.argv[1:]))

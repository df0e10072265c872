from __future__ import annotations

import json
from pathlib import Path

import jupytext
import nbformat
import pytest

from mqlab.course.teach import exercises
from mqlab.course.teach.exercises import Case, Exercise, Manifest
from mqlab.errors import UsageError
from solutions import build

SOURCE = '''# %% [markdown]
# # Заголовок 标题 🙂
#
# ### Text

# %% tags=["explorer"]
x = 1

# %%
# exercise: lab99.find
def find(data):
    """Find it."""
    ### BEGIN SOLUTION
    return data.index(b"secret")
    ### END SOLUTION

# %%
check("lab99.find")

# %%
### BEGIN SOLUTION
predict("lab99.kept", "stays")
### STARTER
# predict("lab99.kept", ...)  # "stays" or "gone"
### END SOLUTION
'''


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch) -> None:
    def no_case(seed: int) -> Case:
        raise AssertionError("building runs nothing")

    found = Exercise("lab99.find", "Find", 3, ("find",), no_case, (1,), ("a", "b", "c"), "note")
    monkeypatch.setattr(exercises, "manifest", lambda lab: Manifest(lab, (), (found,)))


def cells(solved: bool) -> list[dict[str, object]]:
    made = build.notebook(SOURCE, "99_test.py", solved=solved)["cells"]
    assert isinstance(made, list)
    return made


def source_of(cell: dict[str, object]) -> str:
    return "".join(cell["source"])  # type: ignore[arg-type]


def test_the_student_gets_starters_and_no_answer() -> None:
    texts = [source_of(cell) for cell in cells(False)]
    assert texts[0] == "# Заголовок 标题 🙂\n\n### Text"
    assert texts[2] == '# exercise: lab99.find\ndef find(data):\n    """Find it."""\n    ...  # your code here'
    assert texts[4] == 'predict("lab99.kept", ...)  # "stays" or "gone"'
    assert "secret" not in "".join(texts) and "###" not in "".join(texts[1:])


def test_the_solution_gets_answers_and_no_markers() -> None:
    texts = [source_of(cell) for cell in cells(True)]
    assert texts[2].endswith('    """Find it."""\n    return data.index(b"secret")')
    assert texts[4] == 'predict("lab99.kept", "stays")'
    assert "###" not in "".join(texts[1:])


def test_ids_are_the_same_in_both_and_name_the_exercise() -> None:
    ids = [cell["id"] for cell in cells(False)]
    assert ids == ["lab99-01", "lab99-02", "lab99-find", "lab99-find-check", "lab99-05"]
    assert ids == [cell["id"] for cell in cells(True)]


def test_grading_metadata_is_shaped_as_nbgraders() -> None:
    answer, check = (cell["metadata"]["nbgrader"] for cell in cells(False)[2:4])  # type: ignore[index]
    assert answer == {
        "grade": False,
        "grade_id": "lab99-find",
        "locked": False,
        "schema_version": 3,
        "solution": True,
        "task": False,
    }
    assert (check["grade"], check["locked"], check["solution"], check["points"]) == (True, True, False, 3)


def test_a_built_notebook_is_valid_and_the_same_every_time() -> None:
    text = build.dumped(build.notebook(SOURCE, "99_test.py", solved=False))
    nbformat.validate(nbformat.reads(text, as_version=4))
    assert text == build.dumped(build.notebook(SOURCE, "99_test.py", solved=False))
    assert "Заголовок 标题 🙂" in text


def test_jupytext_reads_the_same_cells() -> None:
    theirs = jupytext.reads(SOURCE, fmt="py:percent").cells
    ours = build.read(SOURCE, "99_test.py")
    assert [(c.kind, c.source, c.tags) for c in ours] == [
        (c.cell_type, c.source, c.metadata.get("tags", [])) for c in theirs
    ]


@pytest.mark.parametrize(
    ("text", "message"),
    [
        ("x = 1\n# %%\n", "text before the first cell"),
        ("# %% [raw]\n", "line 1: not a cell header"),
        ('# %% id="x"\n', "unknown option 'id'"),
        ("# %% minutes=3\n", "unknown option 'minutes'"),
        ("# %% [prediction]\n# Why?\n", "line 1: not a cell header"),
        ("# %% [markdown] lab99.kept\n# Why?\n", "line 1: not a cell header"),
        ("# %% [markdown]\nplain\n", "every line of a text cell begins with '# ', found 'plain'"),
        ("# %%\n### BEGIN SOLUTION\nx = 1\n", "'### BEGIN SOLUTION' is not closed"),
        ("# %%\n### BEGIN SOLUTION\n### STARTER\n# x\n", "'### STARTER' is not closed"),
        ("# %%\n### END SOLUTION\n", "'### END SOLUTION' where '### BEGIN SOLUTION' may stand"),
        (
            "# %%\n### BEGIN SOLUTION\n### BEGIN SOLUTION\n### END SOLUTION\n",
            "line 2 of the cell: '### BEGIN SOLUTION'",
        ),
        ("# %%\n### BEGIN SOLUTION\n### STARTER\n### STARTER\n### END SOLUTION\n", "'### STARTER' where"),
        ("# %%\n### begin solution\n", "'### begin solution' where"),
        ("# %%\n### BEGIN SOLUTION\n### STARTER\nx = 1\n### END SOLUTION\n", "a starter line begins with '# '"),
        ("# %%\n# exercise: lab99.find\n# %%\n# exercise: lab99.find\n", "a second cell 'lab99-find'"),
        ("# %%\n# exercise: lab99.nothing\n", "there is no exercise 'lab99.nothing'"),
    ],
)
def test_mistakes_in_a_source_are_errors_that_say_where(text: str, message: str) -> None:
    with pytest.raises(UsageError) as error:
        build.notebook(text, "99_test.py", solved=False)
    assert message in str(error.value)


def test_check_says_what_is_stale_and_writes_nothing(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch, capsys: pytest.CaptureFixture[str]
) -> None:
    monkeypatch.setattr(build, "ROOT", tmp_path)
    monkeypatch.setattr(build, "SOURCES", tmp_path)
    (tmp_path / "99_test.py").write_text(SOURCE, "utf-8")
    (tmp_path / "labs").mkdir()
    assert build.main(["--check", "99"]) == 1
    assert "labs/99-test.ipynb is not what 99_test.py says" in capsys.readouterr().err
    assert not list((tmp_path / "labs").iterdir())
    assert build.main(["77"]) == 2
    assert "no source begins with '77'" in capsys.readouterr().err


def test_a_solution_with_outputs_is_not_stale(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(build, "ROOT", tmp_path)
    source = tmp_path / "99_test.py"
    source.write_text(SOURCE, "utf-8")
    for folder, solved in (("labs", False), ("solutions", True)):
        (tmp_path / folder).mkdir()
        made = build.notebook(SOURCE, source.name, solved=solved)
        if solved:
            made["cells"][1] |= {
                "execution_count": 1,
                "outputs": [{"name": "stdout", "output_type": "stream", "text": []}],
            }
        (tmp_path / folder / "99-test.ipynb").write_text(json.dumps(made), "utf-8")
    assert build.stale(source) == []
    lab = tmp_path / "labs" / "99-test.ipynb"
    lab.write_text(lab.read_text("utf-8").replace("your code here", "return 1"), "utf-8")
    assert build.stale(source) == ["labs/99-test.ipynb is not what 99_test.py says: run make labs"]

"""The words of a lab's source: what becomes of them in the notebook and in the lab's file, and what is refused."""

from __future__ import annotations

import re
from collections.abc import Mapping
from dataclasses import replace
from pathlib import Path

import pytest

from mqlab.course.teach import exercises
from mqlab.course.teach.exercises import Case, Exercise, Manifest
from mqlab.course.teach.tasks import Task
from mqlab.course.words import Choice, from_data, words_of
from mqlab.course.words.parts import minutes_of, parts
from mqlab.course.words.paths import PATHS, path_minutes, path_named, path_parts
from mqlab.errors import UsageError
from solutions import build, lint, minutes

SOURCE = """# %% [markdown] tags=["reading"]
# # Lab 99: Words
#
# ## Why
#
# About {minutes} minutes.

# %% [markdown]
# ## Run

# %% [prediction] lab99.kept
# ### Predict
#
# Two orders are read
# and acknowledged. 还剩多少?
#
# - 2: both;
#   nothing goes
#   = The log keeps them.
# - 0: none {lab99.deletes}
#   > Nothing was deleted:
#   > look at the file.
# note: A number moves.
#
#   Nothing else.

# %%
lab.timeline()
reveal("lab99.kept", 2)

# %% [exercise] lab99.find
# ### Exercise 1: find it
#
# Write `find`.
# question: is this prose? Yes.
#
# hint: First.
# hint: Second: it has
#   two lines.
# hint: Third.
# note: Found.

# %%
# exercise: lab99.find
def find(data):
    ### BEGIN SOLUTION
    return data.index(b"secret")
    ### END SOLUTION

# %%
check("lab99.find")

# %% [answer] lab99.waiting
# Change `PAUSE`.
#
# How many wait?
#
# wrong all: Those are all.
# wrong: Count again.
# note: So it is.

# %%
### BEGIN SOLUTION
answer("lab99.waiting", 2, lab)
### STARTER
# answer("lab99.waiting", ..., lab)
### END SOLUTION

# %% [reflection] lab99.cost
# What does it cost?
#
# answer: Little.
#
#   - one number
#   - one file

# %% [belief] lab99.signed
# question: Which sign?
# claim: Always plus.
# refutation: Not for every tag.
"""


def no_case(seed: int) -> Case:
    raise AssertionError("building runs nothing")


def an_exercise(name: str, points: int = 3) -> Exercise:
    return Exercise(f"lab99.{name}", name, points, (name,), no_case, (1,), ("a", "b", "c"), "note")


TASKS = (Task("lab99.waiting", right=lambda lab: 2, wrong={"all": lambda lab: 5}),)


@pytest.fixture(autouse=True)
def a_lab(monkeypatch: pytest.MonkeyPatch, tmp_path: Path) -> None:
    monkeypatch.setattr(exercises, "manifest", lambda lab: Manifest(lab, (), (an_exercise("find"),), TASKS))
    monkeypatch.setattr(build, "SOURCES", tmp_path)


def made(*parts: str) -> dict[str, object]:
    for letter, text in zip("abc", parts or (SOURCE,), strict=False):
        (build.SOURCES / f"99{letter if len(parts) > 1 else ''}_words.py").write_text(text, "utf-8")
    found = build.words("lab99")
    assert found is not None
    return found


def cells(solved: bool = False) -> list[tuple[str, str, str]]:
    built = build.notebook(SOURCE, "99_words.py", solved=solved)["cells"]
    return [(cell["cell_type"], cell["id"], "".join(cell["source"])) for cell in built]


def test_a_prediction_is_readable_text_and_a_cell_to_click() -> None:
    (_, _, text), (kind, name, code) = cells()[2:4]
    assert text == (
        "### Predict\n\n**Predict.** Two orders are read\nand acknowledged. 还剩多少?\n\n"
        "- **2**: both; nothing goes\n- **0**: none"
    )
    assert (kind, name, code) == ("code", "lab99-kept-predict", 'predict("lab99.kept")')
    assert cells(solved=True)[3] == ("code", "lab99-kept-predict", 'predict("lab99.kept", "2")')


def test_hints_notes_and_refutations_are_not_in_the_notebook() -> None:
    text = "\n".join(source for _, _, source in cells())
    assert not any(words in text for words in ("First.", "Found.", "look at the file", "Count again", "Always plus"))
    assert "Write `find`.\nquestion: is this prose? Yes." in text
    assert "<details><summary>A model answer</summary>\n\nLittle.\n\n- one number\n- one file\n\n</details>" in text


def test_the_file_of_words_has_everything() -> None:
    found = from_data("lab99", made())
    asked = found.predictions["lab99.kept"]
    assert asked.question == "Two orders are read and acknowledged. 还剩多少?"
    assert asked.choices[1] == Choice("0", "none", "Nothing was deleted: look at the file.")
    assert (asked.right, asked.note) == ("2", "A number moves.\n\nNothing else.")
    assert asked.beliefs == {"0": "lab99.deletes"}
    assert found.beliefs["lab99.deletes"].claim == "none" and found.beliefs["lab99.signed"].claim == "Always plus."
    assert found.exercises["lab99.find"].title == "Find it"
    assert found.exercises["lab99.find"].hints == ("First.", "Second: it has two lines.", "Third.")
    assert found.tasks["lab99.waiting"].wrong == {"all": "Those are all.", "": "Count again."}
    assert found.tasks["lab99.waiting"].question == "How many wait?"
    assert found.reflections["lab99.cost"].answer == "Little.\n\n- one number\n- one file"


def test_parts_share_one_file() -> None:
    other = "# %% [markdown]\n# ## More\n\n# %% [reflection] lab99.why\n# Why?\n#\n# answer: So.\n"
    found = from_data("lab99", made(SOURCE, other))
    assert list(found.reflections) == ["lab99.cost", "lab99.why"]
    built = build.notebook(other, "99b_words.py", solved=False)["cells"]
    assert [cell["id"] for cell in built] == ["lab99b-01", "lab99b-02"]


def test_a_source_without_such_cells_has_no_words() -> None:
    (build.SOURCES / "99_words.py").write_text("# %% [markdown]\n# # Lab\n", "utf-8")
    assert build.words("lab99") is None and build.against_the_rules("lab99") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#   = The log keeps them.\n", "", "there is no text for choice '2' of lab99.kept"),
        ("#   = The log", "#   > The log", "needs one choice with a line '= …', it has 0"),
        ("# - 0: none", "# - 2: none", "two choices of lab99.kept have the same key"),
        ("# hint: Third.\n", "", "lab99.find needs three blocks 'hint:', it has 2"),
        ("# note: Found.\n", "", "lab99.find needs one block 'note:', it has 0"),
        ("# ### Exercise 1: find it\n#\n", "", "lab99.find has no heading"),
        ("# wrong: Count again.\n", "", "needs a block 'wrong:' for all other wrong answers"),
        ("# claim: Always plus.\n", "", "lab99.signed needs one block 'claim:', it has 0"),
        ("[reflection] lab99.cost", "[reflection] lab98.cost", "lab98.cost is not an id of lab99"),
        ("# %% [belief] lab99.signed", "# %% [belief] lab99.deletes", "the words of lab99.deletes are there twice"),
        ("#   two lines.", "# two lines.", "a line that belongs to nothing: 'two lines.'"),
        (
            "both;\n#   nothing goes",
            "both {lab99.stays}",
            "choice '2' of lab99.kept is right, so it is not a wrong belief",
        ),
    ],
)
def test_mistakes_in_words_are_errors_that_say_where(old: str, new: str, message: str) -> None:
    assert SOURCE.count(old) == 1
    with pytest.raises(UsageError) as error:
        made(SOURCE.replace(old, new))
    assert message in str(error.value) and "99_words.py line" in str(error.value)


HELD = {"lab99.find.one": "lab99.deletes", "lab99.find.two": "lab99.signed"}


def complaints(text: str, held: Mapping[str, str] = HELD) -> list[str]:
    asked = Manifest("lab99", (), (an_exercise("find"), an_exercise("later", 1)), TASKS)
    words = made(text)
    shown = [cell for one in build.read(text, "99_words.py") for cell in build.shown(one, "99_words.py")]
    later = frozenset({"lab99.later is among the exercises of the manifest and not among the [exercise] cells"})
    found = lint.complaints({"99_words.py": shown}, words, asked, held)
    return [f"{one.rule}: {one.words}" for one in found if one.words not in later]


def test_a_lab_that_keeps_to_the_rules() -> None:
    assert complaints(SOURCE) == []


@pytest.mark.parametrize(
    ("old", "new", "complaint"),
    [
        ("lab.timeline()\n", "\n\n".join(["x = 1\n\n# %%"] * 9) + "\n", "pictures: 9 cells in a row"),
        ("# About {minutes} minutes.\n", f"# {'word ' * 2880}\n", "first exercise: 16 minutes pass before"),
        ('check("lab99.find")', "# exercise: lab99.later\n...", "easiest first: lab99.find comes first"),
        ('reveal("lab99.kept", 2)', "", "words: lab99.kept is among the [prediction] cells"),
        ('answer("lab99.waiting", 2, lab)', "2", "words: lab99.waiting is among the [answer] cells"),
        (
            "lab.timeline()\n",
            "lab = play(one)\nlab.timeline()\n\n# %%\n(lab, rest) = play(two), 0\n",
            "own names: lab99.waiting is given 'lab', which 2 other cells bind",
        ),
        (
            'reveal("lab99.kept", 2)',
            'reveal("lab99.kept", 2)\nTable([])',
            "hidden reveals: the reveal of lab99.kept is not its cell's last statement",
        ),
        (
            "# refutation: Not for",
            "# refutation: No. Not for",
            "beliefs: the refutation of lab99.signed begins with Yes",
        ),
        ("look at the file", "the table below shows it", "no places: lab99.kept says 'table below'"),
        ("wrong: Count again.", "wrong: See the table below.", "no places: lab99.waiting says 'table below'"),
        ("# wrong all: Those", "# wrong some: Those", "words: the wrong answer 'all' of lab99.waiting has a rule only"),
        ("[exercise] lab99.find", "[exercise] lab99.found", "words: lab99.find is among the exercises of the manifest"),
    ],
)
def test_a_lab_that_breaks_a_rule_is_told_so(old: str, new: str, complaint: str) -> None:
    assert SOURCE.count(old) == 1
    found = complaints(SOURCE.replace(old, new))
    assert any(one.startswith(complaint) for one in found), found


@pytest.mark.parametrize(
    ("other", "answered"),
    [
        ("lab = play(one)", 'lab = play(two)\nanswer("lab99.waiting", 2, lab)'),
        ("def again(lab):\n    lab = lab.play()", 'answer("lab99.waiting", 2, plan_of(lab))'),
        ("[lab for lab in range(3)]", 'answer("lab99.waiting", 2, lab)'),
    ],
)
def test_a_world_that_no_other_cell_makes_may_be_given(other: str, answered: str) -> None:
    text = SOURCE.replace("lab.timeline()\n", f"lab.timeline()\n{other}\n\n# %%\nlab = play(mine)\n")
    text = text if other != "lab = play(one)" else text.replace("lab = play(mine)\n", "")
    assert complaints(text.replace('answer("lab99.waiting", 2, lab)', answered)) == []


def test_what_a_check_says_to_a_belief_needs_no_question() -> None:
    opens_an_answer = re.compile(r"(It|They|Never|That|This|Then|Not|None|Both|Only (if|for|as)|.*, so \d+\.)\b")
    checks = "".join(path.read_text("utf-8") for path in (build.ROOT / "mqlab/course/cases").rglob("*.py"))
    shown, labs = set(re.findall(r"lab\d\d\.\w+", checks)), {f"lab{name[:2]}" for name in parts()}
    beliefs = {name: words.refutation for lab in labs for name, words in words_of(lab).beliefs.items()}
    assert [name for name in shown & beliefs.keys() if opens_an_answer.match(beliefs[name])] == []


def test_half_a_belief_is_missing() -> None:
    assert complaints(SOURCE, {"lab99.find.one": "lab99.signed", "lab99.find.two": "lab99.lonely"}) == [
        "beliefs: lab99.deletes has words, but no wrong answer with the hidden cases holds it",
        "beliefs: lab99.lonely is held by a wrong answer, and the source has no words for it",
    ]


def test_a_belief_in_prose_is_asked_for_its_id(monkeypatch: pytest.MonkeyPatch) -> None:
    held = HELD | {"lab99.find.three": "a hash is never negative"}
    (complaint,) = complaints(SOURCE, held)
    assert "lab99.find.three has a belief in prose, 'a hash is never negative': give the id of one" in complaint
    monkeypatch.setattr(lint, "BELIEFS_IN_PROSE", ("lab99",))
    assert complaints(SOURCE, held) == []


def test_an_excuse_that_is_not_needed_is_a_complaint(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(lint, "NOT_YET", {("lab99", "pictures"): "later"})
    assert lint.new_complaints("lab99", []) == ["lab99 keeps to the rule 'pictures': take it out of NOT_YET"]
    assert lint.new_complaints("lab99", [lint.Complaint("pictures", "here", "none")]) == []


def test_a_notebook_takes_what_its_cells_take() -> None:
    """180 words a minute, 36 s a code cell, 90 s a prediction, 4 min a task, 18, 28 or 42 an exercise."""
    read = build.shown_cells(SOURCE, "99_words.py")
    words = sum(len(cell.source.split()) for cell in read if cell.kind == "markdown")
    plain = 2  # the timeline and the check
    whole = words / 180 + 0.6 * plain + 1.5 + 4 + 28
    assert sum(minutes.cell_minutes(cell, "99", build.points) for cell in read) == pytest.approx(whole)
    assert minutes.notebook_minutes(read, "99", build.points) == 30
    assert minutes.notebook_minutes(read, "99", lambda name: 2) == 30 - 15 + 15 * round((whole - 25) / 15)
    assert minutes.notebook_minutes(read, "10", build.points) == 15 * round((whole + 14) / 15)
    assert minutes.notebook_minutes([], "99", build.points) == 15
    assert "About 30 minutes." in cells()[0][2]


def test_waits_are_part_of_the_minutes(monkeypatch: pytest.MonkeyPatch) -> None:
    monkeypatch.setattr(minutes, "WAITS_S", {"99": 1800})
    assert minutes.notebook_minutes([], "99", build.points) == 30


def test_what_a_notebook_asks_is_known_with_the_minutes_until_it() -> None:
    made = build.measured(SOURCE, "99_words.py")
    assert made["page"] == "99-words.ipynb" and made["minutes"] == 30
    assert made["asked"] == ["lab99.kept", "lab99.find", "lab99.waiting"]
    assert made["before"] == sorted(made["before"]) and made["before"][1] - made["before"][0] >= 28


def test_minutes_are_told_as_a_reader_likes_them() -> None:
    assert minutes.filled("{minutes} and {group: 3}", 30, "x.py") == "30 min and {group: 3}"
    assert minutes.filled("About {minutes} minutes.", 135, "x.py") == "About 2¼ hours."
    total = minutes_of("00")
    assert total > 60 and minutes.filled("{minutes:00}", 7, "index.py") == minutes.hours(total)
    assert minutes_of("01") == minutes_of("01a") + minutes_of("01b") + minutes_of("01c")
    page = minutes.filled_page("<!-- minutes 00 -->?<!-- end --> <!-- hours 00 --><!-- end -->", "page.md")
    assert f"-->{total}<!--" in page and " h<!-- end -->" in page
    with pytest.raises(UsageError, match="no minutes are known of '98'"):
        minutes.filled("{minutes:98}", 7, "index.py")


def test_every_path_is_on_the_index_with_the_sum_of_its_parts() -> None:
    rows = minutes.path_rows().splitlines()
    assert len(rows) == len(PATHS) and all(f"`{path.name}`" in row for path, row in zip(PATHS, rows, strict=True))
    data = path_named("data")
    assert path_minutes(data) == sum(minutes_of(name) for name in ("10", "11", "12", "13"))
    assert path_minutes(path_named("all")) == sum(part.minutes for part in parts().values())
    for path in PATHS:
        assert minutes.filled(f"{{minutes:{path.name}}}", 0, "index.py") == minutes.hours(path_minutes(path))
        assert all((build.ROOT / "labs" / part.page).is_file() for part in path_parts(path))
    with pytest.raises(UsageError, match="no path 'morning'"):
        path_named("morning")


def test_one_evening_is_short_and_ends_within_its_lab() -> None:
    evening = path_named("evening")
    (half,) = path_parts(evening)
    assert half.asked[-1] == evening.until and len(half.asked) < len(parts()["00"].asked)
    assert 90 <= path_minutes(evening) <= 135
    with pytest.raises(UsageError, match=r"ends at lab00\.nothing"):
        path_parts(replace(evening, until="lab00.nothing"))


def test_exercises_are_counted_in_each_notebook() -> None:
    text = SOURCE.replace("### Exercise 1: find it", "### Exercise 4: find it")
    text += "\n# %% [markdown]\n# See exercise 4, and exercise 9.\n\n# %%\nmine = []  # exercise 4 is open\n"
    (build.SOURCES / "99_words.py").write_text(text, "utf-8")
    shown = "\n".join("".join(cell["source"]) for cell in build.notebook(text, "99_words.py", solved=False)["cells"])
    assert "### Exercise 1: find it" in shown and "# exercise 1 is open" in shown
    assert "See exercise 1, and exercise 9." in shown


def test_a_solution_keeps_its_outputs_where_only_its_text_is_new(
    tmp_path: Path, monkeypatch: pytest.MonkeyPatch
) -> None:
    path = tmp_path / "99.ipynb"
    kept = build.notebook(SOURCE, "99_words.py", solved=True)
    code = [cell for cell in kept["cells"] if cell["cell_type"] == "code"]
    code[1]["outputs"], code[1]["execution_count"] = [{"output_type": "stream", "name": "stdout", "text": ["a"]}], 2
    path.write_text(build.dumped(kept), "utf-8")
    monkeypatch.setattr(build, "with_outputs", lambda made: {"cells": "run"})
    other = SOURCE.replace("Nothing else.", "No more.").replace("lab.timeline()", "lab.timeline()  # look")
    made = build.solved_again(path, build.notebook(other, "99_words.py", solved=True), keep=True)
    assert [cell["outputs"] for cell in made["cells"] if cell["cell_type"] == "code"] == [
        cell["outputs"] for cell in code
    ]
    changed = build.notebook(SOURCE.replace("lab.timeline()", "lab.timeline(1)"), "99_words.py", solved=True)
    assert build.solved_again(path, changed, keep=True) == {"cells": "run"}
    assert build.solved_again(path, kept, keep=False) == {"cells": "run"}

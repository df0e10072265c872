"""The words of a lab's source: what becomes of them in the notebook and in the lab's file, and what is refused."""

from __future__ import annotations

from collections.abc import Mapping
from pathlib import Path

import pytest

from mqlab.course.teach import exercises
from mqlab.course.teach.exercises import Case, Exercise, Manifest
from mqlab.course.teach.tasks import Task
from mqlab.course.words import Choice, from_data
from mqlab.errors import UsageError
from solutions import build, lint, minutes

SOURCE = """# %% [markdown] minutes=2 tags=["reading"]
# # Lab 99: Words
#
# ## Why
#
# About {minutes} minutes.

# %% [markdown] minutes=9
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
    assert found.minutes == {"99": {"Why": 2, "Run": 9}} and found.total_minutes() == 11
    assert "About 11 minutes." in cells()[0][2]


def test_parts_share_one_file_and_keep_their_minutes() -> None:
    other = "# %% [markdown] minutes=20\n# ## More\n\n# %% [reflection] lab99.why\n# Why?\n#\n# answer: So.\n"
    found = from_data("lab99", made(SOURCE, other))
    assert list(found.reflections) == ["lab99.cost", "lab99.why"]
    assert (found.total_minutes(), found.total_minutes("99a"), found.total_minutes("99b")) == (31, 11, 20)
    built = build.notebook(other, "99b_words.py", solved=False)["cells"]
    assert [cell["id"] for cell in built] == ["lab99b-01", "lab99b-02"]


def test_a_source_without_such_cells_has_no_words() -> None:
    (build.SOURCES / "99_words.py").write_text("# %% [markdown]\n# # Lab\n", "utf-8")
    assert build.words("lab99") is None and build.against_the_rules("lab99") == []


@pytest.mark.parametrize(
    ("old", "new", "message"),
    [
        ("#   = The log keeps them.\n", "", "nothing is said to choice '2' of lab99.kept"),
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
            "choice '2' of lab99.kept is right, so it is no wrong belief",
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
        (" minutes=9", "", "minutes: the section 'Run' has no minutes"),
        ("lab.timeline()\n", "\n\n".join(["x = 1\n\n# %%"] * 9) + "\n", "pictures: 9 cells in a row"),
        ('minutes=2 tags=["reading"]', "minutes=16", "first exercise: 16 minutes pass before"),
        ('check("lab99.find")', "# exercise: lab99.later\n...", "easiest first: lab99.find comes first"),
        ('reveal("lab99.kept", 2)', "", "words: lab99.kept is among the [prediction] cells"),
        ('answer("lab99.waiting", 2, lab)', "2", "words: lab99.waiting is among the [answer] cells"),
        (
            "lab.timeline()\n",
            "lab = play(one)\nlab.timeline()\n\n# %%\n(lab, rest) = play(two), 0\n",
            "own names: lab99.waiting is given 'lab', which 2 other cells bind",
        ),
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


def test_half_a_belief_is_missing() -> None:
    assert complaints(SOURCE, {"lab99.find.one": "lab99.signed", "lab99.find.two": "lab99.lonely"}) == [
        "beliefs: lab99.deletes has words, but no wrong answer beside the hidden cases holds it",
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


def test_minutes_come_from_the_words_of_a_lab() -> None:
    assert minutes.filled("{minutes} and {group: 3}", 7, "x.py") == "7 and {group: 3}"
    total = minutes.minutes_of("00", "x.py")
    assert total > 60 and minutes.filled("{minutes:00}", 7, "index.py") == str(total)
    page = minutes.filled_page("<!-- minutes 00 -->?<!-- end --> <!-- hours 00 --><!-- end -->", "page.md")
    assert f"-->{total}<!--" in page and " h<!-- end -->" in page
    with pytest.raises(UsageError, match="no minutes are known of '98'"):
        minutes.filled("{minutes:98}", 7, "index.py")
    with pytest.raises(UsageError, match="minutes belong to a cell that has a heading"):
        minutes.sections([("text", 3, "x.py")])

"""What `make measure` prints stays within its limits, and the measures themselves see what they should."""

from __future__ import annotations

from pathlib import Path

from tests.tidy.measures import (
    circles,
    comment_share,
    folder_sizes,
    import_graph,
    javascript_functions,
    one_message,
    repeats,
)
from tests.tidy.sources import PACKAGE, modules, parse

LARGEST_CIRCLE, IGNORED_MISC, LARGEST_FOLDER, CALLS_PER_MESSAGE = 3, 5, 32, 1_000


def test_no_circle_of_imports_is_larger_than_three_files() -> None:
    assert [group for group in circles(import_graph(modules())) if len(group) > LARGEST_CIRCLE] == []


def test_no_folder_is_too_full_to_look_over() -> None:
    assert {name: files for name, files in folder_sizes(PACKAGE).items() if files > LARGEST_FOLDER} == {}


def test_few_errors_of_mypy_are_ignored_as_misc() -> None:
    assert sum(module.text.count("type: ignore[misc]") for module in modules()) <= IGNORED_MISC


def test_a_message_takes_a_thousand_calls_from_the_send_to_the_committed_offset() -> None:
    assert one_message()["calls per message"] <= CALLS_PER_MESSAGE


def test_a_circle_is_found_also_where_an_import_is_only_for_types() -> None:
    first = parse("mqlab.a", Path(__file__), "from mqlab.b import B")
    second = parse("mqlab.b", Path(__file__), "if TYPE_CHECKING:\n    from mqlab.c import C")
    third = parse("mqlab.c", Path(__file__), "def f():\n    from mqlab import a")
    alone = parse("mqlab.d", Path(__file__), "import mqlab.a")
    assert circles(import_graph([first, second, third, alone])) == [["mqlab.a", "mqlab.b", "mqlab.c"]]


def test_comments_are_counted_in_functions_alone() -> None:
    text = '# above\ndef f(a):\n    """Says."""\n    # why\n    return a  # noqa: E501\n'
    assert comment_share([parse("mqlab.a", Path(__file__), text)]) == 0.5


def test_functions_of_javascript_are_measured_by_their_last_brace() -> None:
    text = """
export function first(a) {
  if (a) {
    return a;
  }
}
class Board {
  draw({ model, el }) {
    for (const row of model.rows) {
      el.append(row);
    }
  }
  static named = (name) => {
    return name;
  };
}
items.forEach((item) => {
  item.draw();
});
"""
    assert list(javascript_functions(text)) == [5, 5, 3, 3]


def test_the_same_six_lines_in_two_files_are_found() -> None:
    lines = "".join(f"value_{number} = {number}\n" for number in range(6))
    same = [parse(f"mqlab.{name}", Path(__file__), lines) for name in "ab"]
    other = parse("mqlab.c", Path(__file__), lines.replace("value_3", "other_3"))
    assert repeats([*same, other]) == {("mqlab.a", "mqlab.b"): 1}

"""The parts of the site that need no browser: the mend, the list of packages, the pages, and what they keep back."""

from __future__ import annotations

import ast
import json
import re
import subprocess
import sys
import tarfile
import zipfile
from pathlib import Path
from typing import Any

import pytest

from mqlab.course.site import python
from mqlab.course.site.board_pages import BOARDS, board_page
from mqlab.course.site.build import LABS, build
from mqlab.course.site.front import front_page
from mqlab.course.site.lite import INSTEAD, NOTES, in_a_browser, progress_notebook
from mqlab.course.site.materials import listed
from mqlab.course.site.pages import put_pages, readable, shown
from mqlab.course.site.repository import repository
from mqlab.errors import UsageError

ROOT = Path(__file__).parents[3]


def notebook(folder: str, name: str) -> dict[str, Any]:
    found: dict[str, Any] = json.loads((ROOT / folder / name).read_text("utf-8"))
    return found


@pytest.mark.parametrize("mends", python.MENDS.values(), ids=python.MENDS)
def test_the_mend_fits_once_or_the_site_is_not_built(mends: dict[str, str]) -> None:
    program = ";".join(("a", *mends, "c"))
    mended = python.mended(program, mends)
    assert all(after in mended for after in mends.values())
    for other in (mended, program + next(iter(mends)), "another release"):
        with pytest.raises(UsageError, match="times"):
            python.mended(other, mends)


def test_a_lean_wheel_has_what_ipython_imports_of_pygments(tmp_path: Path) -> None:
    import pygments

    whole = tmp_path / "pygments-2.0-py3-none-any.whl"
    folder = Path(pygments.__file__).parent
    with zipfile.ZipFile(whole, "w") as wheel:
        for path in folder.rglob("*.py"):
            wheel.write(path, path.relative_to(folder.parent))
        wheel.writestr("pygments-2.0.data/data/share/copy.js", "")
    (tmp_path / "lean").mkdir()
    python.put_lean(whole, tmp_path / "lean")
    lean = tmp_path / "lean" / whole.name
    names = zipfile.ZipFile(lean).namelist()
    assert "pygments/lexers/python.py" in names and "pygments/lexers/haskell.py" not in names
    assert not any("copy.js" in name for name in names)
    assert python.is_read("mqlab/cli/__init__.py")  # what a check withholds from answers is anywhere in mqlab
    code = (
        f"import sys; sys.path.insert(0, {str(lean)!r})\n"
        "import pygments, pygments.formatters, ipython_pygments_lexers\n"
        f"assert pygments.__file__.startswith({str(lean)!r})\n"
        "print(pygments.highlight('def f(): ...', ipython_pygments_lexers.IPython3Lexer(),"
        " pygments.formatters.HtmlFormatter()).count('span'))"
    )
    run = subprocess.run([sys.executable, "-c", code], capture_output=True, text=True, check=False)
    assert (run.stderr, int(run.stdout) > 4) == ("", True)


def test_packages_name_what_they_need_in_a_page_and_is_there(tmp_path: Path) -> None:
    about = {
        "first_one": "Requires-Dist: Second.One>=2\nRequires-Dist: pexpect; sys_platform != 'emscripten'\n"
        "Requires-Dist: pandas\nRequires-Dist: third; extra == 'test'\n",
        "second_one": "",
        "third": "",
    }
    for name, needs in about.items():
        with zipfile.ZipFile(tmp_path / f"{name}-1.0-py3-none-any.whl", "w") as wheel:
            wheel.writestr(f"{name}/__init__.py", "")
            wheel.writestr(f"{name}/part.py", "")
            wheel.writestr(f"{name}-1.0.dist-info/METADATA", f"Name: {name}\nVersion: 1.0\n{needs}")
    found = python.packages(sorted(tmp_path.glob("*.whl")))
    assert {name: one["depends"] for name, one in found.items()} == {
        "first-one": ["second-one"],
        "second-one": [],
        "third": [],
    }
    assert found["first-one"]["imports"] == ["first_one"]
    file = tmp_path / found["first-one"]["file_name"]  # another digest is another name, for caches
    assert file.name == f"first_one-1.0-0{found['first-one']['sha256'][:12]}.tar.bz2"
    with tarfile.open(file) as packed:
        assert packed.getnames() == ["first_one/__init__.py", "first_one/part.py", "first_one-1.0.dist-info/METADATA"]
    assert not list(tmp_path.glob("*.whl"))


def test_every_wheel_is_pinned_by_its_hash() -> None:
    for name in ("wheels_of_the_page.txt", "wheels_of_the_builder.txt"):
        lines = [line for line in listed(name).splitlines() if not line.startswith("#")]
        assert lines and all(re.fullmatch(r"[\w-]+==[\w.]+ --hash=sha256:[0-9a-f]{64}", line) for line in lines)


@pytest.mark.parametrize("path", sorted((ROOT / "solutions").glob("*.ipynb")), ids=lambda path: path.name[:3])
def test_a_page_shows_runs_and_no_answers(path: Path) -> None:
    handed_out, solved = notebook("labs", path.name), notebook("solutions", path.name)
    answers = ["".join(cell["source"]) for cell in solved["cells"] if "".join(cell["source"]).startswith("# exercise:")]
    page = shown(handed_out, solved)
    with_outputs = [cell for cell in page["cells"] if cell.get("outputs")]
    assert with_outputs
    for cell in with_outputs:
        source = "".join(cell["source"])
        assert not re.search(r"(?<![.\w])(check|show_me|predict|reveal|answer|hint)\(", source), source
        assert not source.startswith("# exercise:")
    whole = json.dumps(page, ensure_ascii=False)
    for text in answers:
        body = "\n".join(text.splitlines()[2:])
        assert not body or json.dumps(body, ensure_ascii=False)[1:-1] not in whole


def test_a_cell_that_uses_an_answer_has_no_output_in_the_page() -> None:
    def cell(name: str, source: str, output: str = "") -> dict[str, Any]:
        outputs = [{"output_type": "stream", "name": "stdout", "text": output}] if output else []
        return {"id": name, "cell_type": "code", "metadata": {}, "source": source, "outputs": outputs}

    rest = [
        ("uses", "found = mine(3)\nfound"),
        ("uses again", "len(found)"),
        ("fills", "rows = []\nrows.append(mine(1))"),
        ("filled", "rows"),
        ("free", "other = 3\nother"),
        (
            "has names of its own",
            "class Other:\n    def found(self, rows):\n        self.rows = list([rows])\n\nOther().found(3)",
        ),
        ("checks", 'check("lab.mine")\nother'),
    ]
    solved = {"cells": [cell("a", "# exercise: lab.mine\ndef mine(self):\n    self.n: list[int] = []", "x")]}
    solved["cells"] += [cell(name, source, "result") for name, source in rest]
    handed_out = {"cells": [cell("a", "# exercise: lab.mine\ndef mine(n):\n    ...")]}
    handed_out["cells"] += [cell(name, source) for name, source in rest]
    assert [one["id"] for one in shown(handed_out, solved)["cells"] if one["outputs"]] == [
        "free",
        "has names of its own",
    ]


def test_a_page_asks_no_other_server_and_links_to_pages() -> None:
    text = (
        '<body class="x"><script src="https://cdn.example/require.js"></script><script type="module">import m from '
        '"https://cdn.example/m.mjs"; m()</script><a href="01a-x.ipynb#y">next</a><script>own()</script></body>'
    )
    made = readable(text)
    assert "example" not in made and "own()" in made
    assert 'href="01a-x.html#y"' in made and 'href="../index.html"' in made


def test_a_page_leads_to_files_in_the_repository(tmp_path: Path) -> None:
    cell = {"id": "a", "cell_type": "markdown", "metadata": {}, "source": ["[differences](../docs/differences.md)"]}
    (tmp_path / "labs").mkdir()
    (tmp_path / "labs" / "notes.ipynb").write_text(json.dumps(progress_notebook() | {"cells": [cell]}), "utf-8")
    put_pages(tmp_path / "pages", tmp_path)
    page = (tmp_path / "pages" / "notes.html").read_text("utf-8")
    assert f'href="{repository()}/blob/main/docs/differences.md"' in page


def test_words_stand_where_a_browser_does_something_else() -> None:
    for part in NOTES:
        (path,) = (ROOT / "labs").glob(f"{part}[-.]*")
        before = notebook("labs", path.name)
        after = in_a_browser(path.name, notebook("labs", path.name))
        assert after["cells"][1]["source"] == NOTES[part]
        ids = [cell["id"] for cell in after["cells"] if cell["id"] != "in-a-browser"]
        assert ids == [cell["id"] for cell in before["cells"]]


@pytest.mark.parametrize("path", sorted((ROOT / "labs").glob("*.ipynb")), ids=lambda path: path.stem)
def test_a_link_leads_to_a_notebook_of_the_site_or_to_the_repository(path: Path) -> None:
    names = {other.name for other in path.parent.glob("*.ipynb")} | {"progress.ipynb"}
    cells = in_a_browser(path.name, notebook("labs", path.name))["cells"]
    prose = "\n".join("".join(cell["source"]) for cell in cells if cell["cell_type"] == "markdown")
    for target in re.findall(r"\]\(([^)#]+)", prose):
        _, is_there, file = target.partition(f"{repository()}/blob/main/")
        assert (ROOT / file).is_file() if is_there else target in names or target == repository(), target


@pytest.mark.parametrize("part", INSTEAD)
def test_a_cell_that_no_browser_runs_has_a_second_form_and_is_no_answer(part: str) -> None:
    (path,) = (ROOT / "labs").glob(f"{part}-*.ipynb")
    before, after = notebook("labs", path.name), in_a_browser(path.name, notebook("labs", path.name))
    kept = [cell for cell in after["cells"] if cell["id"] != "in-a-browser"]
    changed = [old for old, new in zip(before["cells"], kept, strict=True) if old["source"] != new["source"]]
    assert len(changed) == len(INSTEAD[part])
    assert not any("".join(cell["source"]).startswith("# exercise:") for cell in changed)
    for source in INSTEAD[part].values():
        assert "browser has no" in source
        ast.parse(source)
    with pytest.raises(UsageError, match="another form"):
        in_a_browser(path.name, {"cells": []})


def test_the_first_page_leads_to_every_lab_and_board() -> None:
    playable = [path.name for path in (ROOT / "labs").glob("*.ipynb") if path.name[:2] in LABS]
    page = front_page(ROOT, LABS)
    assert page.count('<td class="runs"><a href="lab/index.html?path=labs/') == len(playable) > 20
    assert 'href="lab/index.html?path=labs/explorers.ipynb"' in page
    assert all(f'href="pages/{path.stem}.html"' in page for path in (ROOT / "labs").glob("*.ipynb"))
    assert all(f'href="boards/{name}.html"' in page for name in BOARDS)
    assert re.findall('href="(http[^"]*)', page) == [f"{repository()}#readme"]
    assert 'src="http' not in page
    assert "JSPI" in page


def test_a_board_page_has_its_state_in_the_address() -> None:
    page = board_page("lanes")
    assert "data-mqlab-alone" in page and "askedState" in page and 'src="http' not in page


def test_the_page_of_progress_runs_on_saved_notebooks(tmp_path: Path, monkeypatch: pytest.MonkeyPatch) -> None:
    (tmp_path / "00.ipynb").write_bytes((ROOT / "solutions" / "00-a-messages-day.ipynb").read_bytes())
    monkeypatch.chdir(tmp_path)
    names: dict[str, Any] = {}
    source = progress_notebook()["cells"][1]["source"]
    head, _, last = source.rpartition("\n")
    exec(head, names)
    assert "00" in str(eval(last, names))


@pytest.mark.parametrize("labs", [("10",), ("00", "99")])
def test_a_lab_that_no_browser_runs_is_refused(tmp_path: Path, labs: tuple[str, ...]) -> None:
    with pytest.raises(UsageError, match="does not run in a browser"):
        build(tmp_path / "site", ROOT, labs)


def test_a_folder_with_something_else_is_left_alone(tmp_path: Path) -> None:
    (tmp_path / "thesis.txt").write_text("mine")
    with pytest.raises(UsageError, match="holds no site"):
        build(tmp_path, ROOT)
    assert (tmp_path / "thesis.txt").read_text() == "mine"

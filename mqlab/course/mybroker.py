"""The parts of your own broker: those you kept, and mqlab's own for those you have not written.

from mqlab.course import keep, mybroker

keep("lab04.process_queue")     under a check that passes: mybroker/process_queue.py
mybroker.fill("lab04.process_queue")   the parts of exercises before that one which are missing, as mqlab's own
mybroker.parts()                what Lab(parts=…) takes; play(story, mine=True) does the same
mybroker.parts(store=MyStore)   the same with a part of this notebook in its place, kept or not
"""

from __future__ import annotations

from dataclasses import replace
from pathlib import Path
from typing import Any

from mqlab.course.teach.checking import is_untouched
from mqlab.course.teach.keeping import FILLED, INIT, is_filled, write_part
from mqlab.course.teach.said import AskedWrongly, Said
from mqlab.lab.parts import ANSWERS, FOLDER, KINDS, OwnParts, PartKind, parts_in
from mqlab.lab.views import Table

OWN_PARTS = {
    "strategy": "from mqlab.rocketmq.client.sending.fault_strategy import LatencyFaultStrategy as MyFaults",
    "sticky": """from mqlab.rocketmq.client.allocate import Averagely


def sticky(queues, members):
    return {member: Averagely().allocate("", member, queues, members) for member in members}""",
    "process_queue": "from mqlab.rocketmq.client.consuming.process_queue import ProcessQueue as MyProcessQueue",
    "pulls": "from mqlab.course.cases.lab16.right import RightPulls as MyPulls",
    "groups": "from mqlab.course.cases.lab16.right import RightGroups as MyGroups",
    "retries": "from mqlab.course.cases.lab16.right import RightRetries as MyRetries",
}
"""mqlab's own parts by the name of the file. Without a store or handlers in it, a broker has its own."""

YOURS, MQLABS, NO_FILE = "yours", "mqlab's", ""


def fill(before: str = "") -> Said:
    """Write mqlab's own part for each exercise before this one that has none of yours; default: for all of them.

    A file says at its head that it is not yours. A part without a file is mqlab's own as well, so store and handlers
    get none. UsageError for an exercise that is not a part.
    """
    exercises = list(ANSWERS)
    if before and before not in exercises:
        raise AskedWrongly(f"{before} is not a part of a broker", hint=f"parts are {', '.join(exercises)}")
    wanted = exercises[: exercises.index(before)] if before else exercises
    folder = Path(FOLDER)
    folder.mkdir(exist_ok=True)
    if not (folder / "__init__.py").exists():
        (folder / "__init__.py").write_text(INIT, "utf-8")
    for kind in (ANSWERS[exercise] for exercise in wanted):
        path = _path(folder, kind)
        if kind.file in OWN_PARTS and not path.exists():
            write_part(path, kind.exercise, OWN_PARTS[kind.file], FILLED)
    by_owner: dict[str, list[str]] = {}
    for kind in KINDS:
        by_owner.setdefault(_owner(folder, kind), []).append(kind.file)
    facts = [
        ("yours", ", ".join(by_owner.get(YOURS, ())) or "none yet"),
        ("filled in", ", ".join(by_owner.get(MQLABS, ())) or "nothing"),
    ]
    if NO_FILE in by_owner:
        facts.append(("needs no file", f"{', '.join(by_owner[NO_FILE])}: mqlab's own runs"))
    return Said("note", "Your broker has every part that this needs", facts)


def parts(**of_this_notebook: Any) -> OwnParts:
    """Returns the parts in ``mybroker`` here, with those given in their place: ``parts(store=MyStore)``.

    A given part that is still the starter is left out. Raises UsageError if none is given and none is there, and for a
    name that no part has.
    """
    names = [kind.file for kind in KINDS]
    unknown = [name for name in of_this_notebook if name not in names]
    if unknown:
        raise AskedWrongly(f"there is no part {unknown[0]!r}", hint=f"parts are {', '.join(names)}")
    begun = {name: part for name, part in of_this_notebook.items() if not is_untouched(part)}
    has_kept = any(_path(Path(FOLDER), kind).is_file() for kind in KINDS)
    kept = OwnParts() if of_this_notebook and not has_kept else parts_in(Path(FOLDER))
    return replace(kept, **begun)


def table(folder: Path) -> Table:
    """The kept parts of a folder of notebooks, one row per part: which exercise it is, and whose."""
    home = folder / FOLDER
    owners = [(kind, _owner(home, kind)) for kind in KINDS]
    return Table(
        {"part": kind.file, "exercise": kind.exercise, "whose": owner} for kind, owner in owners if owner != NO_FILE
    )


def _owner(folder: Path, kind: PartKind) -> str:
    """Whose part a file has: YOURS, MQLABS, or NO_FILE."""
    path = _path(folder, kind)
    return NO_FILE if not path.is_file() else MQLABS if is_filled(path) else YOURS


def _path(folder: Path, kind: PartKind) -> Path:
    return folder / f"{kind.file}.py"

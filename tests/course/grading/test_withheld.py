"""What an exercise forbids of mqlab is not there for its answer, whatever way the answer takes."""

from __future__ import annotations

import py_compile
from pathlib import Path

import pytest

from mqlab.course.cases.forbids import FORBIDS
from mqlab.course.grading.judging.desk import Desk
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.grading.sandbox.withheld import PACKAGE, withhold, without
from mqlab.course.grading.submissions.lab_files import lab_numbers, open_lab
from mqlab.course.material import course_folder
from mqlab.errors import NotGiven, UsageError
from mqlab.rocketmq.wire import record
from mqlab.rocketmq.wire.record import Record
from tests.course.grading.conftest import PATIENT

SOME = (
    "mqlab.rocketmq.wire.record.decode",
    "mqlab.rocketmq.wire.java_hash.tags_code",
    "mqlab.rocketmq.wire.java_hash.string_hash",
    "mqlab.lab.inspector",
    "mqlab.rocketmq.store",
    "mqlab.rocketmq.broker",
    "mqlab.lab.world",
)
UNIT = record.encode(Record("orders", b"letter"))

BYPASSES = {
    "by its name": "from mqlab.rocketmq.wire.record import decode\ndef answer(unit):\n    return decode(unit).topic\n",
    "importlib": (
        "import importlib\n"
        "def answer(unit):\n    return importlib.import_module('mqlab.rocketmq.wire.record').decode(unit).topic\n"
    ),
    "__import__": (
        "def answer(unit):\n"
        "    return __import__('mqlab.rocketmq.wire.record').rocketmq.wire.record.decode(unit).topic\n"
    ),
    "sys.modules": (
        "import sys\ndef answer(unit):\n    return sys.modules['mqlab.rocketmq.wire.record'].decode(unit).topic\n"
    ),
    "getattr of an object at hand": (
        "import sys\nfrom mqlab import Message\n"
        "def answer(unit):\n"
        "    return getattr(sys.modules[Message.__module__], 'dec' + 'ode_messages')(unit)[0].topic\n"
    ),
    "globals of a function at hand": (
        "from mqlab.rocketmq.wire.record import encode\n"
        "def answer(unit):\n    return encode.__globals__['decode'](unit).topic\n"
    ),
    "a higher function": (
        "from mqlab.rocketmq.wire.message import decode_messages\n"
        "def answer(unit):\n    return decode_messages(unit)[0].topic\n"
    ),
    "loaded again": (
        "import importlib\nfrom mqlab.rocketmq.wire import record\n"
        "def answer(unit):\n    return importlib.reload(record).decode(unit).topic\n"
    ),
    "its source": (
        "import inspect\nfrom mqlab.rocketmq.wire import record\n"
        "def answer(unit):\n"
        "    names = dict(vars(record))\n"
        "    exec(inspect.getsource(record.decode), names)\n"
        "    return names['decode'](unit).topic\n"
    ),
    "its file": (
        "from mqlab.rocketmq.wire import record\n"
        "def answer(unit):\n"
        "    names = {'__name__': 'copy'}\n"
        "    exec(open(record.__file__).read(), names)\n"
        "    return names['decode'](unit).topic\n"
    ),
    "its byte code": (
        "import glob, marshal, os\nfrom mqlab.rocketmq.wire import record\n"
        "def answer(unit):\n"
        "    kept = glob.glob(os.path.dirname(record.__file__) + '/__pycache__/record.*.pyc')\n"
        "    for path in kept:\n"
        "        data = open(path, 'rb').read()\n"
        "        if data:\n"
        "            names = {'__name__': 'copy'}\n"
        "            exec(marshal.loads(data[16:]), names)\n"
        "            return names['decode'](unit).topic\n"
        "    raise ImportError('no byte code')\n"
    ),
    "another process": (
        "import subprocess, sys\n"
        "def answer(unit):\n"
        "    code = 'import sys; from mqlab.rocketmq.wire.record import decode; "
        "print(decode(sys.stdin.buffer.read()).topic)'\n"
        ""
        "    done = subprocess.run([sys.executable, '-c', code], input=unit, capture_output=True, check=True)\n"
        "    return done.stdout.decode().strip()\n"
    ),
    "what the collector knows": (
        "import gc, types\n"
        "def answer(unit):\n"
        "    for found in gc.get_objects():\n"
        "        name = isinstance(found, types.FunctionType) and f'{found.__module__}.{found.__name__}'\n"
        "        if name == 'mqlab.rocketmq.wire.record.decode':\n"
        "            return found(unit).topic\n"
    ),
    "under the cache": (
        "from mqlab.rocketmq.wire import java_hash\n"
        "def answer(unit):\n"
        "    return getattr(java_hash.tags_code, '__wrapped__', java_hash.tags_code)('paid')\n"
    ),
    "a function that hashes too": (
        "from mqlab.rocketmq.wire.java_hash import index_key_hash\ndef answer(unit):\n"
        "    return index_key_hash('paid')\n"
    ),
    "a store of its own": (
        "from mqlab.rocketmq.store import MessageStore\n"
        "def answer(unit):\n"
        "    with MessageStore.open('/tmp/mine') as store:\n        return type(store).__name__\n"
    ),
    "an inspector": (
        "import importlib\n"
        "def answer(unit):\n"
        "    return importlib.import_module('mqlab.lab.inspector.inspector').StoreInspector.messages.__name__\n"
    ),
    "a lab of its own": "from mqlab import Lab\ndef answer(unit):\n    return Lab(seed=1).now_ms\n",
    "a class made of it": (
        "from mqlab.rocketmq.store import MessageStore\n"
        "def answer(unit):\n    class Mine(MessageStore):\n        pass\n    return Mine.__name__\n"
    ),
    "the file beneath": (
        "import os\n"
        "def answer(unit):\n"
        "    for place, _, files in os.walk('/'):\n"
        "        if place.endswith('mqlab/rocketmq/wire') and 'record.py' in files:\n"
        "            names = {'__name__': 'copy'}\n"
        "            exec(open(place + '/record.py').read(), names)\n"
        "            return names['decode'](unit).topic\n"
    ),
}
FILES_READ = ("its byte code", "the file beneath")
"""Ways that only walls close: a process without them can read all files."""


@pytest.fixture(scope="module", autouse=True)
def byte_code() -> None:
    """Python has kept byte code of the module, as on a machine on which mqlab was used."""
    py_compile.compile(record.__file__, doraise=True)


@pytest.mark.parametrize(
    ("desk", "way"),
    [(walls, way) for walls in ("process", "bwrap") for way in BYPASSES if walls == "bwrap" or way not in FILES_READ],
    indirect=["desk"],
)
def test_no_way_leads_to_what_is_forbidden(desk: Desk, way: str) -> None:
    desk.withhold(SOME)
    answer = desk.load("lab.a", BYPASSES[way], ["answer"])["answer"]
    with pytest.raises(Exception) as raised:
        answer(UNIT)
    told = str(raised.value)
    assert isinstance(raised.value, (NotGiven, ImportError, PermissionError)) or "CalledProcessError" in told, told


@pytest.mark.parametrize("way", BYPASSES)
def test_each_way_leads_there_where_nothing_is_forbidden(way: str, tmp_path: Path) -> None:
    desk = Desk(Sandbox("process", limits=PATIENT))
    # The folder of scratch files first: the package may be below /tmp itself.
    source = BYPASSES[way].replace("/tmp", str(tmp_path)).replace("walk('/')", f"walk({str(PACKAGE)!r})")
    answer = desk.load("lab.a", source, ["answer"])["answer"]
    try:
        assert answer(UNIT) is not None
    except (NotGiven, ImportError) as error:
        pytest.fail(f"this way leads nowhere: {error}")
    finally:
        desk.close()


def test_the_worker_changes_when_another_exercise_forbids_something_else(desk: Desk) -> None:
    source = "from mqlab.rocketmq.wire.record import decode\ndef answer(unit):\n    return decode(unit).topic\n"
    desk.withhold(("mqlab.rocketmq.wire.record.decode",))
    answer = desk.load("lab.a", source, ["answer"])["answer"]
    with pytest.raises(NotGiven, match=r"mqlab\.rocketmq\.wire\.record\.decode cannot be used in this exercise"):
        answer(UNIT)
    desk.withhold(())
    assert answer(UNIT) == "orders"
    desk.withhold(("mqlab.rocketmq.wire.record.decode",))
    with pytest.raises(NotGiven):
        answer(UNIT)


def test_what_is_not_forbidden_works_beside_it(desk: Desk) -> None:
    source = (
        "from mqlab.rocketmq.wire import record, units\nfrom mqlab.rocketmq.wire.java_hash import utf16_units\n"
        "from mqlab.rocketmq.store import MessageStore\n"
        "def answer(unit):\n    return record.LAYOUT[0].name, len(utf16_units('ab')), units.CQ_UNIT.size\n"
    )
    desk.withhold(SOME)
    assert desk.load("lab.a", source, ["answer"])["answer"](UNIT) == ("total_size", 2, 20)


def test_another_copy_of_mqlab_in_a_readable_folder_is_covered(walls: Sandbox, tmp_path: Path) -> None:
    tmp_path.chmod(0o755)
    copy = tmp_path / "packages" / "mqlab"
    for place in ("wire/record.py", "course/cases/lab01.py"):
        (copy / place).parent.mkdir(parents=True)
        (copy / place).write_text("SECRET = 1\n", "utf-8")
    (tmp_path / "packages" / "shown.txt").write_text("shown", "utf-8")
    hidden = (str(copy / "course" / "cases"),)
    desk = Desk(Sandbox("bwrap", readable=(str(tmp_path),), hidden=hidden, limits=PATIENT))
    source = "import os\ndef listed(path):\n    return sorted(os.listdir(path))\n"
    listed = desk.load("lab.a", source, ["listed"])["listed"]
    assert listed(str(tmp_path / "packages")) == ["mqlab", "shown.txt"]
    assert listed(str(copy)) == []
    desk.close()


def test_names_that_do_not_exist_are_refused(tmp_path: Path) -> None:
    for name in ("os.path", "mqlab"):
        with pytest.raises(UsageError, match="is not a name of mqlab"):
            withhold((name,), tmp_path)
    for name in (
        "mqlab.rocketmq.wire.record.nothing",
        "mqlab.rocketmq.wire.nothing",
        "mqlab.rocketmq.wire.record.LAYOUT",
    ):
        with pytest.raises(UsageError, match="no function or class"):
            withhold((name,), tmp_path)


OTHER_FORBIDS = {forbids: exercise for exercise, forbids in FORBIDS.items()}.values()
ONE_OF_EACH_LAB = {exercise[:5]: exercise for exercise in OTHER_FORBIDS}.values()


@pytest.mark.parametrize(
    "exercise",
    [pytest.param(one, marks=() if one in ONE_OF_EACH_LAB else pytest.mark.long) for one in OTHER_FORBIDS],
)
def test_a_worker_without_these_names_starts_and_the_rest_of_mqlab_can_be_imported(exercise: str) -> None:
    desk = Desk(Sandbox("process", limits=PATIENT))
    desk.withhold(FORBIDS[exercise])
    source = (
        "from mqlab import CONSUME_SUCCESS, Lab, Message, MessageQueue, every_crash, play\n"
        "from mqlab.rocketmq.client.statuses import COMMIT_MESSAGE\n"
        "from mqlab.lab.inspector import StoreInspector\nfrom mqlab.rocketmq.store import MessageStore\n"
        "from mqlab.rocketmq.admin import Admin\nfrom mqlab.lab.views import Table\n"
        "from mqlab.course import check, hint\n"
        "from mqlab.rocketmq.wire import layout, record, units\nfrom mqlab.rocketmq.filter import sql\n"
        "def answer():\n    return Message('orders', b'x').topic\n"
    )
    assert desk.load("lab.a", source, ["answer"])["answer"]() == "orders"
    desk.close()


def test_a_class_loses_its_methods() -> None:
    names: dict[str, object] = {"__name__": "mqlab.x"}
    exec(without("class One:\n    @property\n    def two(self): return 2\n", ["One"]), names)
    kind = names["One"]
    assert isinstance(kind, type)
    with pytest.raises(NotGiven, match=r"mqlab\.x\.One"):
        kind()
    with pytest.raises(NotGiven, match=r"mqlab\.x\.One"):
        assert object.__new__(kind).two  # type: ignore[attr-defined]


def test_every_exercise_forbids_names_that_there_are(tmp_path: Path) -> None:
    for number in lab_numbers(course_folder()):
        for exercise in open_lab(course_folder(), number).exercises:
            shown = withhold(exercise.forbids, tmp_path / exercise.id)
            assert exercise.forbids == FORBIDS.get(exercise.id, ())
            assert bool(shown) == bool(exercise.forbids)

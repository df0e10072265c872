"""The judge's side of the wall: loads answers into a worker, calls them, and serves their questions meanwhile.

The rebuilt notebook opens one desk; checks use its stand-ins as if they were the answers.

    desk.load("lab01.unit", source, ["decode_unit"])    ─▶ {"decode_unit": <answer decode_unit>}
    decode_unit(b"...")                                  ─▶ call ─▶ return | raise | ask .. resume .. return

A worker that dies, hangs or writes garbage is killed. The exercise under way is over; the others continue in a new
worker. Whether a value is right is decided elsewhere (mqlab.course.grading.judging.cases).
"""

from __future__ import annotations

from collections.abc import Sequence
from dataclasses import replace
from typing import Any

from mqlab.course.grading.judging.answers import (
    ATTRIBUTE_ACCESS,
    AnswerFunction,
    AnswerObject,
    AnswerTable,
    answer_class,
    number_of,
)
from mqlab.course.grading.judging.loaded import AnswerStopped, Loaded
from mqlab.course.grading.judging.world.world import JudgeWorld
from mqlab.course.grading.running.meter import Spent, why_over
from mqlab.course.grading.running.replies import are_names, checked, down
from mqlab.course.grading.sandbox.answer_process import (
    START_SECONDS,
    AnswerProcess,
    Garbled,
    Gone,
    Overfull,
    Silent,
    TooSlow,
    within,
)
from mqlab.course.grading.sandbox.handing import let_read
from mqlab.course.grading.sandbox.limits import Limits
from mqlab.course.grading.sandbox.values import Codec, Malformed, NotPlain
from mqlab.course.grading.sandbox.walled import Sandbox
from mqlab.course.teach.exercises import is_table
from mqlab.errors import NodeDown
from mqlab.lab.runtime.line_watch import LineWatch
from mqlab.lab.runtime.sim_workers import current_listener

NEW_AT_FIRST, NEW_AFTERWARDS = 12, 23  # so many lives are new processes; later one in so many, a prime
BREAKS = "what its cell leaves behind breaks the lab's own cells"


class Desk:
    """One worker at a time, started when first needed, and everything that was loaded into it."""

    def __init__(self, sandbox: Sandbox) -> None:
        self._sandbox = sandbox
        self._process: AnswerProcess | None = None
        self._life = 0
        self._calls = 0
        self._forbids: tuple[str, ...] = ()  # what the worker lacks of mqlab
        self._has_copies = False  # the worker works in a copy of itself, made when all was loaded: see renew
        self._called: set[str] = set()  # whose answers were called in this life of the worker
        self._loaded: dict[str, Loaded] = {}
        self._lives = 0  # how many new processes answers have had for a life: each has another hash() of texts
        self.fresh_workers = True  # before a cell is run, too; where a worker takes seconds to start, it is kept
        self.new_processes = False  # lives are new processes behind walls of their own; a copy costs a tenth
        self._renewals = 0  # lives of the exercise's answers
        self._world = JudgeWorld()
        self._codecs: dict[str, Codec] = {}
        self.incidents: list[dict[str, str]] = []

    def load(
        self, exercise: str, source: str, names: Sequence[str] = (), limits: Limits | None = None
    ) -> dict[str, Any]:
        """Run source in the worker; returns those of ``names`` that it defined, as stand-ins or plain values.

        Raises what the source raises, and AnswerStopped.
        """
        piece = Loaded(exercise, source, tuple(names), limits or self._sandbox.limits)
        # A copy's original knows nothing that is loaded later; what a call left behind must not break another cell.
        if self._has_copies or (self._called and (self.fresh_workers or not names)):
            self.close()
        self._loaded.pop(exercise, None)
        self._ensure_process(piece)
        self._loaded[exercise] = piece
        return self._load(piece)

    def load_given(self, name: str, source: str, limits: Limits) -> None:
        """Run a cell of the lab itself. If it fails because of answers' cells, they are over, and it is run again.

        Raises as ``load`` if it fails without them.
        """
        answers = [piece for piece in self._loaded.values() if piece.names and piece.stopped is None]
        blamed: list[Loaded] = []
        while True:
            try:
                self.load(name, source, limits=limits)
            except (AnswerStopped, Exception):
                self.close()
                if not answers:
                    for piece in blamed:
                        piece.stopped = None
                    raise
                blamed.append(answers.pop())
                blamed[-1].stopped = AnswerStopped("died", f"{blamed[-1].exercise}: {BREAKS}")
            else:
                return

    def call(self, exercise: str, target: tuple[int, int], method: str | None, args: Any, kwargs: Any) -> Any:
        """Call an object of the worker. ``target``: the worker's life and the object's number, from a stand-in."""
        piece = self._loaded[exercise]
        self._must_go_on(piece)
        if self._process is None or target[0] != self._life:
            raise AnswerStopped("lost", f"{exercise}: this object was lost with its process")
        self._called.add(exercise)
        codec = self._codec(exercise)
        if self._sandbox.drops_root:
            let_read([*args, *kwargs.values()])
        self._process.hand_over([*args, *kwargs.values()])
        message = {
            "op": "call",
            "object": target[1],
            "method": method,
            "args": [codec.encode(value) for value in args],
            "kwargs": {name: codec.encode(value) for name, value in kwargs.items()},
            "lines": _line_watch() is not None,
        }
        return codec.decode(self._converse(piece, message))

    @property
    def asked(self) -> int:
        """How often answers were used: loads, calls, and look-ups of names that no longer exist."""
        return self._calls

    def locate(self, exercise: str, name: str) -> tuple[int, int]:
        """The present place of an answer's name; starts a new worker if the last one has ended."""
        piece = self._loaded[exercise]
        self._must_go_on(piece)
        self._ensure_process(piece)
        if name not in piece.numbers:
            self._calls += 1
            raise NameError(f"name {name!r} is not defined", name=name)
        return self._life, piece.numbers[name]

    def withhold(self, forbids: tuple[str, ...]) -> None:
        """From now on answers run in a worker that lacks these names of mqlab; see course.grading.sandbox.withheld."""
        if forbids != self._forbids:
            self.close()
            self._forbids = forbids

    def begin(self, exercise: str) -> None:
        """Prepare to judge an exercise: use a worker in which no other exercise's answer has been called.

        Otherwise this exercise could fail because of what another left behind (processes, patches, threads).
        """
        self._renewals = 0
        if self._called - {exercise}:
            self.close()

    def renew(self, exercise: str) -> None:
        """Replace the process of an answer that died. The next one has run all cells, and nothing in it was called."""
        piece = self._loaded[exercise]
        self._must_go_on(piece)
        self._renewals += 1
        is_young = self.new_processes and self._renewals <= NEW_AT_FIRST
        is_new = is_young or (self.new_processes and self._renewals % NEW_AFTERWARDS == 0)
        if is_new or (self._called and not self._has_copies):
            self.close()
        self._lives += is_new
        self._ensure_process(piece)
        if is_young:
            return
        assert self._process is not None
        try:
            if self._process.exchange({"op": "life"}, within(START_SECONDS)).get("op") != "ready":
                raise Garbled("it wrote something other than that it is ready")
        except Gone as gone:
            raise self._stop(piece, gone) from None
        self._has_copies = True
        self._begin_life()

    def close(self) -> None:
        """End the worker."""
        if self._process is not None:
            self._process.end()
            self._process = None
        self._has_copies = False

    def _ensure_process(self, piece: Loaded) -> None:
        """Start a worker if there is none, and load all pieces that still work; a piece that is stopped now is over."""
        if self._process is not None:
            return
        self._process = AnswerProcess(replace(self._sandbox, hash_seed=self._lives), self._forbids)
        self._has_copies = False
        self._begin_life()
        for other in list(self._loaded.values()):
            if other.stopped is not None or (other is piece and not piece.numbers):
                continue
            before = replace(other.spent)
            try:
                self._load(other)
                other.spent = before  # charged when loaded first; how often processes are made is not its choice
            except AnswerStopped:
                return self._ensure_process(piece)
            except Exception:  # this was reported when the piece was first loaded
                continue

    def _begin_life(self) -> None:
        """A process in which nothing was called, and that was given nothing."""
        self._life += 1
        self._called.clear()
        self._world.forget()

    def _load(self, piece: Loaded) -> dict[str, Any]:
        message = {"op": "load", "exercise": piece.exercise, "source": piece.source, "names": list(piece.names)}
        data = self._converse(piece, message)
        try:
            ((_, pairs),) = data.items()
            piece.numbers = {
                name: item["answer"][0]
                for name, item in pairs
                if name in piece.names and isinstance(item, dict) and "answer" in item
            }
            values = self._codec(piece.exercise).decode(data)
        except (Malformed, TypeError, ValueError, AttributeError, KeyError, IndexError) as error:
            raise self._stop(piece, Garbled(f"it wrote something other than an answer: {error}")) from error
        return {name: self._found_by_name(piece, name, values[name]) for name in piece.names if name in values}

    def _found_by_name(self, piece: Loaded, name: str, value: Any) -> Any:
        """A stand-in that outlives its worker: in the next worker it is looked up by the name its cell binds it to."""
        if is_table(value):
            keys = {key: f"{name}[{key!r}]" for key in value}
            piece.numbers |= {spelled: number_of(value[key]) or 0 for key, spelled in keys.items()}
            entries = {key: self._found_by_name(piece, spelled, value[key]) for key, spelled in keys.items()}
            return AnswerTable(self, piece.exercise, entries)
        if name not in piece.numbers:
            return value
        if isinstance(value, AnswerObject):
            origin = self, piece.exercise, self._life, piece.numbers[name]
            return AnswerObject.standing_for(*origin, value._mqlab_methods, name)
        where = self, piece.exercise, self._life, piece.numbers[name], name
        if isinstance(value, AnswerFunction):
            return AnswerFunction(*where, value.parameters, by_name=True)
        return answer_class(*where, frozenset(), by_name=True)

    def _must_go_on(self, piece: Loaded) -> None:
        if piece.stopped is not None:
            raise AnswerStopped(piece.stopped.kind, str(piece.stopped))

    def _stop(self, piece: Loaded, gone: Gone) -> AnswerStopped:
        self.close()
        kind = {TooSlow: "timeout", Garbled: "garbled", Silent: "garbled"}.get(type(gone), "died")
        what = "it wrote something other than an answer" if type(gone) is Garbled else str(gone)  # which line is a race
        piece.stopped = AnswerStopped(kind, f"{piece.exercise}: {what}")
        self.incidents.append({"exercise": piece.exercise, "kind": kind, "text": what})
        return piece.stopped

    def _converse(self, piece: Loaded, message: dict[str, Any]) -> Any:
        """Send a message and serve questions until the result comes. The result is still encoded."""
        # 1. Number the call, so that a forged or late reply to another call is noticed.
        self._calls += 1
        number, spent = self._calls, Spent()
        is_work = bool(message.get("lines")) and message["method"] not in ATTRIBUTE_ACCESS
        ended: BaseException | None = None
        while True:
            # 2. Only the worker's own time counts against the limit, not what the judge does for it.
            reply = self._exchange(piece, {**message, "call": number}, spent)
            try:
                op = checked(reply, number)
            except (Malformed, KeyError, TypeError) as error:
                raise self._stop(piece, Garbled(f"it wrote something other than an answer: {error}")) from error
            # 3. A question of the answer: the reply goes back, and the call continues.
            if op in ("ask", "line"):
                message, ended = self._reply(piece, op, reply, ended)
                continue
            # 4. The call is over. A death that happened meanwhile outweighs whatever the answer returned after it.
            if ended is not None:
                raise ended
            if op == "return":
                if is_work:
                    self._return_is_a_place_to_die(piece, reply["value"])
                return reply["value"]
            raise self._failure(piece, op, reply)

    def _exchange(self, piece: Loaded, message: dict[str, Any], spent: Spent) -> dict[str, Any]:
        process = self._process
        if process is None:
            raise AnswerStopped("lost", f"{piece.exercise}: its process is gone")

        def charge() -> None:
            process.meter.charge(spent, piece.spent)
            if over := why_over(spent, piece.spent, piece.limits):
                raise TooSlow(over)
            if process.meter.files > piece.limits.scratch_files:
                raise Overfull(f"it keeps more than {piece.limits.scratch_files} files in /tmp")

        process.meter.begin()
        try:
            reply = process.exchange(message, charge)
            charge()
        except Gone as gone:
            raise self._stop(piece, gone) from None
        except NotPlain:
            raise
        except BaseException:
            self._process = None
            raise
        return reply

    def _return_is_a_place_to_die(self, piece: Loaded, value: Any) -> None:
        """Count the end of a listener's call. One that has shown no line hides them: its process reports them."""
        is_object = isinstance(value, dict) and "answer" in value  # a class as listener is made, and runs no line
        if watch := _line_watch():
            if not watch.lines and not is_object:
                raise self._stop(piece, Silent("its listener was called and shows none of its lines"))
            watch.requested("its return")

    def _reply(
        self, piece: Loaded, op: str, question: dict[str, Any], ended: BaseException | None
    ) -> tuple[dict[str, Any], BaseException | None]:
        """The message to send back, and the exception that ends the call whatever the answer does afterwards."""
        if ended is not None and not (op == "ask" and question["verb"] == "__exit__"):
            return down(ended), ended
        watch = _line_watch()
        try:
            if watch is not None and op == "ask":
                watch.requested(question["verb"])
            elif watch is not None:
                watch.reached(question["where"])
        except NodeDown as error:
            return down(error), error
        if op == "ask":
            message, now_ended = self._answer(piece, question)
            return message, ended or now_ended
        return {"op": "resume", "value": None}, None

    def _answer(self, piece: Loaded, question: dict[str, Any]) -> tuple[dict[str, Any], BaseException | None]:
        """Perform an answer's request; the message to send back, and the exception that ends the call, if any."""
        codec = self._codec(piece.exercise)
        try:
            args = [codec.decode(value) for value in question["args"]]
            kwargs = {name: codec.decode(value) for name, value in question["kwargs"].items()}
            value = self._world.perform(question["world"], question["verb"], args, kwargs, self._forbids)
            return {"op": "resume", "value": codec.encode(value)}, None
        except Exception as error:
            return {"op": "resume", "error": Codec().encode(error)}, None
        except NodeDown as error:
            return down(error), error
        except AnswerStopped as error:
            if self._process is None:
                raise
            return down(error), error

    def _failure(self, piece: Loaded, op: str, reply: dict[str, Any]) -> BaseException:
        if op == "refused":
            return NotPlain(f"{piece.exercise}: {reply['text']}")
        try:
            error = self._codec(piece.exercise).decode(reply["error"])
        except Malformed as malformed:
            return self._stop(piece, Garbled(f"it wrote something other than an answer: {malformed}"))
        if not isinstance(error, Exception):
            return self._stop(piece, Garbled("it raised something that is not an exception"))
        error.answer_trace = reply["trace"].rstrip()  # type: ignore[attr-defined]
        error.add_note(reply["trace"].rstrip())
        return error

    def _codec(self, exercise: str) -> Codec:
        if exercise not in self._codecs:
            self._codecs[exercise] = Codec(self._refer, lambda tag, payload: self._resolve(exercise, tag, payload))
        return self._codecs[exercise]

    def _refer(self, value: Any) -> dict[str, Any] | None:
        number = number_of(value)
        return {"answer": [number]} if number is not None else self._world.refer(value)

    def _resolve(self, exercise: str, tag: str, payload: Any) -> Any:
        if tag in ("world", "given"):
            return self._world.find(payload[0]) if tag == "world" else self._world.given(payload[0])
        if tag != "answer":
            raise Malformed(f"unknown tag {tag!r}")
        number, kind, name, parameters, methods = payload
        if not (type(number) is int and isinstance(name, str) and are_names(parameters) and are_names(methods)):
            raise Malformed("a reference that no worker writes")
        where = exercise, self._life, number
        if kind == "function":
            return AnswerFunction(self, *where, name[:80], tuple(parameters))
        if kind == "class":
            return answer_class(self, *where, name[:80], frozenset(methods))
        return AnswerObject.standing_for(self, *where, frozenset(methods))


def _line_watch() -> LineWatch | None:
    """The counter of the running listener's lines; every_crash sets one for one node of its world."""
    current = current_listener()
    if current is None:
        return None
    watch = current.workers.world.line_watch
    return watch if watch is not None and watch.node == current.workers.node.name else None

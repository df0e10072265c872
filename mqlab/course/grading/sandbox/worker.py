"""The process in which answers run: reads one JSON line, runs the learner's code, answers with one line.

Started by mqlab.course.grading.judging.desk behind the walls of mqlab.course.grading.sandbox.walled.

    judge ─▶ {"op": "load", "call": 1, "exercise": "lab01.unit", "source": "..", "names": ["decode_unit"]}
    judge ─▶ {"op": "call", "call": 2, "object": 5, "method": null, "args": [..], "kwargs": {..}}
          ◀─ {"op": "return", "call": 2, "value": ..}     or raise, refused (a value that cannot cross)
          ◀─ {"op": "ask", "call": 2, "world": 9, "verb": "sleep", "args": ["20ms"], "kwargs": {}}
          ◀─ {"op": "line", "call": 2, "where": "listener line 3"}     only if the judge asked for each line
    judge ─▶ {"op": "resume", "call": 2, "value": null}   or "error"
    judge ─▶ {"op": "life"}   ◀─ {"op": "ready"}     a copy of the process goes on; at the next "life" it ends, and
                                                     another begins where it did: what the answers kept is gone

Each call is a coroutine, so that one can wait for the world while others run. Standard output, standard error and
standard input of the answers lead nowhere; the two pipes of the judge are kept on other numbers.
The judge does not trust this process: whatever happens here, the judge reads lines of JSON only.
"""

from __future__ import annotations

import contextlib
import linecache
import os
import signal
import sys
import traceback
import types
from types import FrameType
from typing import Any, BinaryIO

import greenlet

from mqlab.course.grading.judging.world.stand_in import WorldObject, make_world_object
from mqlab.course.grading.running.process_copy import copied
from mqlab.course.grading.sandbox import limits, user_namespaces
from mqlab.course.grading.sandbox.namespaces import Namespaces
from mqlab.course.grading.sandbox.values import Codec, Malformed, NotPlain, describe, dump_line, load_line
from mqlab.errors import NodeDown, is_of_spark, words_of
from mqlab.lab.runtime.line_watch import is_learners

TRACE_CHARACTERS = 4_000
ANSWER_FILE = "<answer {}>"
NEXT_LIFE = 113  # the exit code of a copy that makes room for the next one


class JudgeCall(greenlet.greenlet):  # type: ignore[misc]
    """One call of the judge, from its line to its result."""

    number = 0


class Worker:
    """The answers' names, the objects that stay here, and the calls under way."""

    def __init__(self, receive: BinaryIO, send: BinaryIO) -> None:
        self._receive = receive
        self._send = send
        self._hub = greenlet.getcurrent()
        self._waiting: dict[int, greenlet.greenlet] = {}
        self._objects: dict[int, Any] = {}
        self._numbers: dict[int, int] = {}
        self._world: dict[int, WorldObject] = {}
        self._given: dict[int, tuple[Any, int, Any]] = {}
        self._codec = Codec(self._refer, self._resolve)
        self.namespaces = Namespaces()
        self._is_copy = False

    def serve(self) -> None:
        """Answer lines until the input ends."""
        while line := self._receive.readline():
            message = load_line(line)
            if message["op"] == "life":
                self._next_life()
                continue
            self._send.write(self.reply(message))
            self._send.flush()

    def reply(self, message: dict[str, Any]) -> bytes:
        """The line that answers a load, a call or a resume."""
        self._hub = greenlet.getcurrent()
        number = message["call"]
        # A coroutine runs until its call is over or asks the judge; either gives the line to send.
        if message["op"] == "resume":
            coroutine = self._waiting.pop(number)
        else:
            coroutine = JudgeCall(self._load if message["op"] == "load" else self._call)
            coroutine.number = number
        line: bytes = coroutine.switch(message)
        return line

    def _next_life(self) -> None:
        """Returns in a copy of this process. The original waits: when a copy ends for the next life, it makes one."""
        # 1. A copy ends; its exit code asks the original for another copy.
        if self._is_copy:
            os._exit(NEXT_LIFE)
        # 2. The original has run all cells and called nothing. It makes a copy, and waits for the copy's end.
        from mqlab.course.teach.lives import hash_in_process  # once, and not in each copy

        number = 1
        while (copy := copied()) is not None:
            number += 1
            code = copy.wait()
            # 3. A copy that died by a signal: die in the same way, so that the judge sees the true cause.
            if code < 0:
                with contextlib.suppress(OSError):  # the action of SIGKILL cannot be set
                    signal.signal(-code, signal.SIG_DFL)
                os.kill(os.getpid(), -code)
            if code != NEXT_LIFE:
                os._exit(code)
        self._is_copy = True
        self.namespaces.go_elsewhere(hash_in_process(number))
        self._send.write(dump_line({"op": "ready"}))
        self._send.flush()

    def _load(self, message: dict[str, Any]) -> bytes:
        def run() -> Any:
            self._run_source(message["exercise"], message["source"], is_answer=bool(message["names"]))
            return self.namespaces.find(message["exercise"], message["names"])

        return self._outcome(message["call"], run)

    def _call(self, message: dict[str, Any]) -> bytes:
        def run() -> Any:
            target = self._objects[message["object"]]
            args = [self._codec.decode(value) for value in message["args"]]
            kwargs = {name: self._codec.decode(value) for name, value in message["kwargs"].items()}
            method = message["method"]
            sys.settrace(self._trace if message["lines"] else None)
            if method == "__getattr__":
                return getattr(target, *args)
            if method == "__setattr__":
                return setattr(target, *args)
            return (target if method in (None, "__call__") else getattr(target, method))(*args, **kwargs)

        return self._outcome(message["call"], run)

    def _outcome(self, number: int, run: Any) -> bytes:
        try:
            value = run()
        except BaseException as error:
            return self._failure(number, error)
        finally:
            # The result is encoded without reporting lines.
            sys.settrace(None)
        try:
            return dump_line({"op": "return", "call": number, "value": self._codec.encode(value)})
        except NotPlain as error:
            return dump_line({"op": "refused", "call": number, "text": str(error)})
        except BaseException as error:
            return self._failure(number, error)

    def _failure(self, number: int, error: BaseException) -> bytes:
        trace = _learners_lines(error)
        try:
            encoded = Codec().encode(error)
            return dump_line({"op": "raise", "call": number, "error": encoded, "trace": trace})
        except BaseException:
            plain = {"error": ["", type(error).__qualname__, [], {}]}
            return dump_line({"op": "raise", "call": number, "error": plain, "trace": trace})

    def _run_source(self, exercise: str, source: str, *, is_answer: bool) -> None:
        """Run a cell. A cell without names to return is a set-up cell: all others see what it defines."""
        file = ANSWER_FILE.format(exercise)
        linecache.cache[file] = (len(source), None, source.splitlines(keepends=True), file)
        names = self.namespaces.begin(exercise, is_answer=is_answer)
        try:
            exec(compile(source, file, "exec", dont_inherit=True), names)
        finally:
            self.namespaces.end(exercise)

    def ask(self, world: int, verb: str, args: tuple[Any, ...], kwargs: dict[str, Any]) -> Any:
        """Ask the judge to do something with an object of its world; other calls may run meanwhile."""
        return self._wait_for_answer(
            {
                "op": "ask",
                "world": world,
                "verb": verb,
                "args": [self._codec.encode(value) for value in args],
                "kwargs": {name: self._codec.encode(value) for name, value in kwargs.items()},
            }
        )

    def _wait_for_answer(self, question: dict[str, Any]) -> Any:
        current = greenlet.getcurrent()
        # The answer may use greenlets of its own: the call is one of their parents.
        call: Any = current
        while call is not None and not isinstance(call, JudgeCall):
            call = call.parent
        if call is None:
            raise RuntimeError("the world can be asked from the answer's own thread only")
        self._waiting[call.number] = current
        # Another call may end meanwhile, and stop reporting lines: this one goes on as it was.
        reporting = sys.gettrace()
        message = self._hub.switch(dump_line({**question, "call": call.number}))
        sys.settrace(reporting)
        if "error" not in message:
            return self._codec.decode(message["value"])
        if message["error"] == "NodeDown":
            raise NodeDown(message["text"])
        raise self._codec.decode(message["error"])

    def _trace(self, frame: FrameType, event: str, argument: Any) -> Any:
        """Report each line of an answer to the judge before it runs: the process may be killed just before it."""
        if not is_learners(frame):
            return None
        if event == "line":
            self._wait_for_answer({"op": "line", "where": f"{frame.f_code.co_name} line {frame.f_lineno}"})
        return self._trace

    def _refer(self, value: Any) -> dict[str, Any] | None:
        if isinstance(value, WorldObject):
            return {"world": [value._mqlab_number]}
        # A message that the answer has changed is no longer the judge's and crosses by value.
        if id(value) in self._given:
            _, number, data = self._given[id(value)]
            return {"given": [number]} if Codec().encode(value) == data else None
        kind = _kind_of(value)
        if kind is None:
            return None
        number = self._numbers.setdefault(id(value), len(self._numbers) + 1)
        self._objects[number] = value
        return {"answer": [number, kind, _name_of(value), _parameters_of(value), _methods_of(value)]}

    def _resolve(self, tag: str, payload: Any) -> Any:
        if tag == "answer":
            return self._objects[payload[0]]
        if tag == "given":
            number, data = payload
            value = self._codec.decode(data)
            self._given[id(value)] = (value, number, data)
            return value
        if tag == "world":
            number, role, verbs, attributes = payload
            if number not in self._world:
                self._world[number] = make_world_object(self.ask, number, role, verbs, attributes)
            return self._world[number]
        raise Malformed(f"unknown tag {tag!r}")


def _kind_of(value: Any) -> str | None:
    """The kind of a value that stays here and is used by the judge; only values that the answer made may do so."""
    if isinstance(value, type):
        return "class" if value.__module__ == "__main__" else None
    if isinstance(value, (BaseException, list, tuple, dict, set, frozenset)):
        return None
    if type(value).__module__ == "__main__":
        return "object"
    return "function" if callable(value) else None


def _name_of(value: Any) -> str:
    name = getattr(value, "__name__", type(value).__name__)
    return name[:80] if isinstance(name, str) else "answer"


def _parameters_of(value: Any) -> list[str]:
    code = getattr(getattr(value, "__func__", value), "__code__", None)
    if not isinstance(code, types.CodeType):
        return ["*"]
    names = list(code.co_varnames[: code.co_argcount])
    optional = len(getattr(value, "__defaults__", None) or ())
    required = len(names) - optional
    spelled = names[:required] + [f"{name}=" for name in names[required:]] + (["*"] if code.co_flags & 4 else [])
    return spelled[1:] if isinstance(value, types.MethodType) else spelled


def _methods_of(value: Any) -> list[str]:
    kind = value if isinstance(value, type) else type(value)
    return [name for name in dir(kind) if not name.startswith("__") and callable(getattr(kind, name, None))][:200]


def _learners_lines(error: BaseException) -> str:
    """The traceback, cut to the lines of answers."""
    try:
        frames = [frame for frame in traceback.extract_tb(error.__traceback__) if frame.filename.startswith("<answer ")]
        says = traceback.format_exception_only(error)
        if is_of_spark(error):
            says = [f"{type(error).__name__}: {words_of(error)}\n"]
        text = "".join(traceback.format_list(frames[-8:]) + says)
        return text[-TRACE_CHARACTERS:]
    except BaseException:
        return describe(error)


def main(arguments: list[str]) -> None:
    """Serve the judge on standard input and output, or try the walls with ``--probe USER_ID FORBIDDEN..``."""
    if arguments[:1] == ["--probe"]:
        from mqlab.course.grading.sandbox.wall_probe import try_walls

        give_up_root(int(arguments[1]))
        user_namespaces.switch_off()
        print(try_walls(arguments[2:]))
        return
    # 1. Keep the judge's pipes under other numbers, and set the limits before any code of an answer runs.
    receive, send = os.fdopen(os.dup(0), "rb"), os.fdopen(os.dup(1), "wb")
    hello = load_line(receive.readline())
    if hello["user_id"] is not None:
        give_up_root(hello["user_id"])
    if hello["walled"]:
        user_namespaces.switch_off()
    limits.apply(limits.Limits.of(hello["limits"]), hello["processes_outside"])
    # 2. What answers print must not reach the judge.
    nowhere = os.open(os.devnull, os.O_RDWR)
    for stream in (0, 1, 2):
        os.dup2(nowhere, stream)
    send.write(dump_line({"op": "ready"}))
    send.flush()
    with contextlib.suppress(BrokenPipeError):
        Worker(receive, send).serve()


def give_up_root(user_id: int) -> None:
    """Change from root to a user who owns nothing, for good."""
    if os.geteuid() != 0:
        return
    # Groups first: only root may change them.
    os.setgroups([])
    os.setresgid(user_id, user_id, user_id)
    os.setresuid(user_id, user_id, user_id)


if __name__ == "__main__":
    main(sys.argv[1:])

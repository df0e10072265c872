"""Stacks in a browser: the part of greenlet that mqlab uses, on JavaScript's promise integration (JSPI).

    from A to B         B's gate opens, then run_sync(A's gate): A's stack is put aside until its gate opens
    to a new stack B    callPromising in a microtask: B's function has a stack of its own from there on

No task, timer or turn of the event loop is between two stacks: through asyncio a switch costs ten times as much.
Pyodide gives each stack a thread state of its own, so that a tracer is carried over by the switch. It is off while a
stack waits: what run_sync does is nobody's line.

Left out: greenlet's switches with keywords, and the end of stacks without a reference; they wait for ever.
"""

from __future__ import annotations

import sys
from collections.abc import Callable, Generator
from typing import Any

from mqlab.browser import IN_BROWSER

if IN_BROWSER:
    from pyodide.code import run_js
    from pyodide.ffi import create_proxy, run_sync

    _begin = run_js("""(run) => {
        Promise.resolve().then(async () => { try { await run.callPromising(); } finally { run.destroy(); } });
    }""")


class StackExit(BaseException):
    """Ends a stack without an error: the default of ``throw``, as greenlet's GreenletExit."""


class _Gate:
    """What run_sync takes for a future. It asks for ``add_done_callback`` in a later microtask: it may be open then."""

    __slots__ = ("_is_open", "_settle")
    _asyncio_future_blocking = False

    def __init__(self) -> None:
        self._settle: Callable[[_Gate], None] | None = None
        self._is_open = False

    def add_done_callback(self, settle: Callable[[_Gate], None]) -> None:
        if self._is_open:
            settle(self)
        else:
            self._settle = settle

    def open(self) -> None:
        self._is_open = True
        if self._settle is not None:
            self._settle(self)

    def result(self) -> None:
        return None

    def __await__(self) -> Generator[_Gate, None, None]:  # run_sync only looks whether there is one
        yield self


class Stack:
    """A function on a stack of its own; the names and their meaning are greenlet's (mqlab.lab.runtime.stacks)."""

    def __init__(self, run: Callable[..., Any] | None = None, parent: Stack | None = None) -> None:
        self.parent: Stack | None = parent if parent is not None else current_stack()
        self.dead = False
        self._run = run
        self._has_begun = False
        self._gate = _Gate()
        self._brought: tuple[Any, ...] = ()
        self._raised: BaseException | None = None

    def __bool__(self) -> bool:
        return self._has_begun and not self.dead

    def switch(self, *values: Any) -> Any:
        """Go there; returns what the next switch to the caller brings, and raises what is thrown at it."""
        return _switch(self, values, None)

    def throw(self, error: BaseException | type[BaseException] = StackExit) -> Any:
        """Go there and raise an error; a stack that has not begun ends, and its parent gets the error."""
        return _switch(self, (), error() if isinstance(error, type) else error)

    def _body(self) -> None:
        run, self._run = self._run, None
        assert run is not None
        values, self._brought = self._brought, ()
        brought: tuple[Any, ...] = ()
        raised: BaseException | None = None
        sys.settrace(_state.tracer)
        try:
            brought = (run(*values),)
        except StackExit as ended:
            brought = (ended,)
        except BaseException as error:
            raised = error
        del run, values
        _state.tracer = sys.gettrace()
        sys.settrace(None)
        self.dead = True
        _state.current = target = _living(self)
        target._brought, target._raised = brought, raised
        target._gate.open()


class _State:
    """What all stacks share: a plain object, for each stack has thread locals of its own."""

    def __init__(self) -> None:
        self.tracer: Any = None  # the one that the stack which runs next gets
        self.current = main = Stack.__new__(Stack)
        main.parent, main.dead = None, False
        main._run, main._has_begun, main._gate, main._brought, main._raised = None, True, _Gate(), (), None


def current_stack() -> Stack:
    """The stack that runs now; the one of the notebook's cells has no parent."""
    return _state.current


def _living(stack: Stack) -> Stack:
    """This stack, or if it has ended the nearest parent that has not; the first stack never ends."""
    while stack.dead:
        assert stack.parent is not None
        stack = stack.parent
    return stack


def _switch(target: Stack, values: tuple[Any, ...], error: BaseException | None) -> Any:
    if error is not None and not target:  # a stack that runs no function: its parent gets the error, or its exit
        target._has_begun = target.dead = True
        target._run = None
        if isinstance(error, StackExit):
            values, error = (error,), None
    target, source = _living(target), _state.current
    if target is source:
        return _arrived(values, error)
    source._gate = gate = _Gate()
    _state.current, _state.tracer = target, sys.gettrace()
    sys.settrace(None)
    target._brought, target._raised = values, error
    if target._has_begun:
        target._gate.open()
    else:
        target._has_begun = True
        _begin(create_proxy(target._body))
    run_sync(gate)
    sys.settrace(_state.tracer)
    values, source._brought = source._brought, ()
    error, source._raised = source._raised, None
    return _arrived(values, error)


def _arrived(values: tuple[Any, ...], error: BaseException | None) -> Any:
    if error is not None:
        raise error
    return values[0] if len(values) == 1 else values


_state = _State()

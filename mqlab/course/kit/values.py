"""Pure and Fields exercises: values in, a value out, compared with the right one part by part.

    schedule = Pure(
        "lab07.schedule", "schedule(levels, max_reconsume_times)", points=3, about="a table of levels",
        calls=plans,                                              # seed -> calls with their right values
        returns=[tuple_of("retry", level=int, second=int)],       # the form, and harmless other forms with it
        rules={"level": "The first retry waits …", "second": "Each wait begins …", "number": "…"},
        slips=[Slip("starts at 1 s", lambda call: …, "…"), slips.milliseconds],
    )

A wrong value is met with the first of these that is true: it has another form; it is what a slip would answer; the
rule that ``explain`` chooses; the rule of the first part that differs.
"""

from __future__ import annotations

from collections.abc import Callable, Iterable, Mapping, Sequence
from dataclasses import dataclass
from typing import Any

from mqlab.course.kit import slips as general
from mqlab.course.kit.calls import ask
from mqlab.course.kit.form import exercise_of
from mqlab.course.kit.shapes import (
    Difference,
    Misfit,
    Parts,
    described,
    difference,
    fitted,
    leaves,
    record,
    with_fractions,
)
from mqlab.course.kit.slips import PartSlip, Slip
from mqlab.course.teach.exercises import Answers, Call, Exercise, Finding
from mqlab.course.teach.lives import anew
from mqlab.course.words import ExerciseWords, refutation

Calls = Callable[[int], Iterable[Call]]
Explain = Callable[[Call, Any, Difference], str]  # call, the whole value, the first difference -> a rule, or ""
Also = Callable[[Call], Finding | None]
Place = Callable[[Call, Difference | None], str]
Compare = Callable[[Call, Any], Difference | None]  # a call, the value in the right form -> the first difference
Show = Callable[[str, Any], object]  # a part's name, a value of it -> what a finding shows
LONG_BYTES = 24


@dataclass(frozen=True)
class Values:
    """The form of Pure and Fields exercises."""

    id: str
    name: str
    signature: str
    about: str
    calls: Calls
    returns: Any
    rules: Mapping[str, str]
    slips: Sequence[Slip | PartSlip]
    explain: Explain | None
    place: Place | None
    also: Also | None
    compares: Compare | None
    shows: Show | None
    weights: Mapping[str, float]

    def make(self, seed: int) -> list[Call]:
        """The calls of a seed."""
        return list(self.calls(seed))

    def judge(self, answers: Answers, trial: Iterable[Call]) -> Finding | None:
        """Call by call, up to the first wrong value."""
        calls = list(trial)
        for number, call in enumerate(calls):
            returned, printed = ask(answers, self.name, call)
            finding = self._judged(answers, calls, call, returned, printed)
            if finding is not None:
                return (self._remembered(answers, call, returned) if number else None) or finding
        return None

    def _remembered(self, answers: Answers, call: Call, returned: Any) -> Finding | None:
        """A finding if an answer that nobody has called yet gives the right value: an earlier call left something."""
        name = call.to or self.name
        try:
            again = ask({**answers, name: anew(answers[name], name)}, self.name, call)[0]
            wrong = self._differs(call, fitted(self.returns, again))
        except Exception:
            return None
        where = f"{self._place(call, None)}: after other calls"
        rule = general.REMEMBERS.format(name=name)
        return None if wrong is not None else Finding(rule, where, call.right, returned, call=call)

    def _differs(self, call: Call, value: Any) -> Difference | None:
        own = self.compares
        return difference(self.returns, call.right, value) if own is None else own(call, value)

    def _judged(self, answers: Answers, calls: list[Call], call: Call, returned: Any, printed: str) -> Finding | None:
        # 1. The form.
        try:
            value = fitted(self.returns, returned)
        except Misfit as misfit:
            finding = self._fraction(answers, calls, call, returned)
            return finding or self._misfit(answers, calls, call, returned, printed, misfit)
        seen = self._differs(call, value)
        if seen is None:
            return self.also(call) if self.also is not None else None
        # 2. A slip that explains it, here and at the other calls.
        for number, slip in enumerate(self.slips):
            if isinstance(slip, Slip):
                if self._is_slip(slip, answers, calls, call, value):
                    others = (slip for slip in self.slips[number + 1 :] if isinstance(slip, Slip))
                    # Where several misunderstandings give the same, it is not known which one it was.
                    alone = not any(self._is_slip(other, answers, calls, call, value) for other in others)
                    return self._finding(slip.says, call, seen, slip.belief if alone else "")
            elif self._is_part_slip(slip, answers, calls, call, seen):
                return self._finding(slip.says, call, seen)
        if general.transposed(self.returns, call.right, value):
            parts = ", ".join(name for name, _ in self.returns.parts)
            return self._finding(general.TRANSPOSED.format(name=self.name, parts=parts), call, seen)
        # 3. The rule of the part that differs; a comparison of the exercise's own may name a belief in its place.
        if seen.part.startswith(f"{self.id.partition('.')[0]}."):
            return self._finding(refutation(seen.part), call, seen, seen.part)
        rule = self.explain(call, value, seen) if self.explain is not None else ""
        return self._finding(rule or self._rule(seen), call, seen)

    def _rule(self, seen: Difference) -> str:
        names = [*reversed(seen.path), seen.part, ""]
        rule = next((self.rules[name] for name in names if name in self.rules), None)
        return rule if rule is not None else f"{self.name} returned another value than the right one"

    def _misfit(
        self, answers: Answers, calls: list[Call], call: Call, returned: Any, printed: str, misfit: Misfit
    ) -> Finding:
        rule = f"{self.name} returns {described(self.returns)}"
        if returned is None:
            said = printed.strip() in (str(call.right), repr(call.right)) or printed.strip().endswith(str(call.right))
            rule = general.PRINTED if printed.strip() and said else general.NOTHING
            if rule == general.NOTHING and any(self._again(answers, other) not in (None, _Raised) for other in calls):
                rule = general.SOMETIMES_NOTHING
            rule = rule.format(name=self.name)
        elif general.number_as_text(call.right, returned):
            rule = general.AS_TEXT.format(name=self.name)
        elif general.transposed(self.returns, call.right, returned):
            parts = ", ".join(name for name, _ in self.returns.parts)
            rule = general.TRANSPOSED.format(name=self.name, parts=parts)
        elif misfit.path:
            wanted = "" if misfit.found == "no such key" else f": {misfit.path[-1]} is {described(misfit.shape)}"
            rule += wanted
        wrong = misfit.found if misfit.path else returned
        where = ": ".join([self._place(call, None), *misfit.path])
        expected = described(misfit.shape) if misfit.path and misfit.found != "no such key" else call.right
        if self.compares is not None:  # many values are right, and the one of the call would give one away
            expected = described(misfit.shape)
        return Finding(rule, where, expected, wrong, call=call)

    def _fraction(self, answers: Answers, calls: list[Call], call: Call, returned: Any) -> Finding | None:
        """A number that is not whole where a slip explains it, such as seconds with a fraction for milliseconds."""
        shape = with_fractions(self.returns)
        try:
            value = fitted(shape, returned)
        except Misfit:
            return None
        seen = difference(shape, call.right, value)
        for slip in self.slips:
            if seen is None or isinstance(slip, Slip) or not isinstance(seen.found, float):
                continue
            if self._is_part_slip(slip, answers, calls, call, seen, shape):
                return self._finding(slip.says, call, seen)
        return None

    def _is_slip(self, slip: Slip, answers: Answers, calls: list[Call], call: Call, value: Any) -> bool:
        def fits(other: Call, got: Any) -> bool:
            if got is _Raised:  # a second mistake does not hide the first where the first changes nothing
                got = other.right
            # What a slip leaves open does not show it at the call where it would be told.
            return any(
                other is not call if wrong is general.ANY else _same(self.returns, wrong, got)
                for wrong in slip.values(other)
            )

        return fits(call, value) and all(
            fits(other, self._again(answers, other)) for other in calls if other is not call
        )

    def _is_part_slip(
        self, slip: PartSlip, answers: Answers, calls: list[Call], call: Call, seen: Difference, shape: Any = None
    ) -> bool:
        shape = self.returns if shape is None else shape
        sign = slip.sign(seen.right, seen.found)
        if sign is None or seen.part == "number":  # how many there are is not one of the values
            return False
        if slip.alone:
            return True
        # All numbers of that part must show the same sign, in this call and in every other one.
        for other in calls:
            try:
                value = fitted(shape, self._again(answers, other))
            except Misfit:
                return False
            wanted, got = leaves(shape, other.right, seen.part), leaves(shape, value, seen.part)
            wrong = [list(slip.wrong(leaf))[sign:][:1] or [leaf] for leaf in wanted]
            if [[leaf] for leaf in got] != wrong:
                return False
        return True

    def _again(self, answers: Answers, call: Call) -> Any:
        try:
            return ask(answers, self.name, call)[0]
        except Exception:
            return _Raised

    def _finding(self, rule: str, call: Call, seen: Difference, belief: str = "") -> Finding:
        where = self._place(call, seen)
        shows = self.shows or (lambda part, value: value)
        right, actual = (_shown(shows(seen.part, value)) for value in (seen.right, seen.found))
        return Finding(rule, where, right, actual, call=call, belief=belief)

    def _place(self, call: Call, seen: Difference | None) -> str:
        if self.place is not None:
            return self.place(call, seen)
        where = call.about or ", ".join(f"{name} {value!r}" for name, value in call.arguments.items())
        return f"{where}: {seen.place}" if seen is not None and seen.path else where


class _Raised:
    """What stands for the value of a call that raised."""


def _same(shape: Any, wanted: Any, value: Any) -> bool:
    try:
        return bool(fitted(shape, wanted) == fitted(shape, value))
    except Misfit:
        return False


def _shown(value: object) -> object:
    """Long bytes by their length and both ends: the first hundred bytes of two units look alike."""
    if not isinstance(value, bytes) or len(value) <= LONG_BYTES:
        return value
    return f"{len(value)} bytes: {value[:8].hex(' ', 4)} … {value[-8:].hex(' ', 4)}"


def Pure(
    id: str,
    signature: str,
    *,
    points: int,
    about: str,
    calls: Calls,
    returns: Any,
    rules: Mapping[str, str] | str = "",
    slips: Sequence[Slip | PartSlip] = (),
    explain: Explain | None = None,
    place_of: Place | None = None,
    also: Also | None = None,
    compares: Compare | None = None,
    shows: Show | None = None,
    seeds: Sequence[int] = (1, 2),
    weights: Mapping[str, float] | None = None,
    words: ExerciseWords | None = None,
    limits: Mapping[str, float] | None = None,
    forbids: Sequence[str] = (),
) -> Exercise:
    """An exercise whose answer is a function of values; the head of this file has an example.

    ``rules``: name of a part -> what it breaks when it is wrong ("number": how many there are; "": any other).
    ``weights``: name of a case -> what it counts for partial credit; "" for each seed's case.
    ``compares`` finds the first difference, where it is not simply the first part that differs; its part may be a
    belief's id, whose refutation is said then. ``shows`` says how a value is shown. ``also`` looks at a call whose
    value was right: at what else the answer did, such as how often it read.
    """
    name = signature.partition("(")[0]
    by_part = {"": rules} if isinstance(rules, str) and rules else dict(rules or {})
    weighed = weights or {}
    form = Values(
        id, name, signature, about, calls, returns, by_part, slips, explain, place_of, also, compares, shows, weighed
    )
    return exercise_of(form, points=points, seeds=seeds, words=words, limits=limits, forbids=forbids)


def Fields(id: str, signature: str, *, fields: Mapping[str, tuple[Any, str]], **more: Any) -> Exercise:
    """An exercise whose answer is a record, compared name by name: ``fields`` are name -> (form, rule).

    The other arguments are those of Pure.
    """
    form: Parts = record(**{name: shape for name, (shape, _) in fields.items()})
    rules = {name: rule for name, (_, rule) in fields.items()}
    return Pure(id, signature, returns=form, rules=rules, **more)

"""SQL92 filter expressions: parsed as RocketMQ's parser does, quirks included, and evaluated with three truth values.

Mirrors: SqlFilter, SelectorParser, the expression classes of org.apache.rocketmq.filter.

    or      and (OR and)*                        and   equality (AND equality)*
    equal   compare (= | <> compare | IS [NOT] NULL)*
    compare unary (< <= > >= unary | [NOT] CONTAINS STARTSWITH ENDSWITH 'x' | [NOT] BETWEEN … AND … | [NOT] IN (…))*
    unary   + - NOT unary | literal | property | ( or )

    compile("a > 1 AND name IN ('x')").evaluate({"a": "2"})      True | False | None (unknown)

Quirks that are RocketMQ's: whatever follows a whole expression is ignored; NOT binds tighter than any comparison; a
bare property is FALSE when present; ``0.0`` is an error; ``missing = missing`` is TRUE.
Left out: the Bloom filter that saves evaluations; more than 100 levels of nesting.
"""

from __future__ import annotations

from collections.abc import Callable, Mapping
from dataclasses import dataclass
from functools import lru_cache

from mqlab.errors import FilterError
from mqlab.rocketmq.filter.sql_tokens import END, Token, token_at
from mqlab.rocketmq.filter.sql_values import MAX_INTEGER, MAX_LONG, Number, Value, equal, order

Properties = Mapping[str, str]
Evaluate = Callable[[Properties], Value]

LITERAL, PROPERTY, NEGATED, BOOLEAN = "literal", "property", "negated", "boolean"
MIN_DOUBLE, MAX_DOUBLE = 4.9e-324, 1.7976931348623157e308  # Double.MIN_VALUE, Double.MAX_VALUE
CACHED_EXPRESSIONS = 100
MAX_LENGTH = 100_000
MAX_DEPTH = 100

_ORDERS: dict[str, Callable[[int], bool]] = {
    "<": lambda sign: sign < 0,
    "<=": lambda sign: sign <= 0,
    ">": lambda sign: sign > 0,
    ">=": lambda sign: sign >= 0,
}
_TEXT_TESTS: dict[str, Callable[[str, str], bool]] = {
    "CONTAINS": lambda text, part: part in text,
    "STARTSWITH": str.startswith,
    "ENDSWITH": str.endswith,
}


@dataclass(frozen=True, slots=True)
class Node:
    """One part of an expression: its kind for the parser's checks, how to evaluate it, a literal's value, its depth."""

    kind: str
    evaluate: Evaluate
    literal: Value = None
    depth: int = 1


@dataclass(frozen=True, slots=True)
class Expression:
    """A compiled expression.

    >>> compile("price > 10 AND region = 'eu'").evaluate({"price": "12", "region": "eu"})
    True
    >>> compile("price > 10").evaluate({}) is None
    True
    """

    text: str
    node: Node

    def evaluate(self, properties: Properties) -> bool | None:
        """True, False, or None for unknown; only True lets a message pass. Raises FilterError."""
        return _truth(self.node.evaluate(properties))


@lru_cache(maxsize=CACHED_EXPRESSIONS)
def compile(text: str) -> Expression:
    """Parse an expression. Raises FilterError with the position of what is wrong."""
    source: object = text
    if not isinstance(source, str):
        raise FilterError(f"{source!r} is not an expression", hint='expected a string such as "amount > 10"')
    if len(text) > MAX_LENGTH:
        raise FilterError(f"an expression of {len(text)} characters is too long", hint=f"at most {MAX_LENGTH}")
    return Expression(text, _Parser(text).whole())


def _text_of(properties: Properties, name: str) -> str | None:
    value: object = properties.get(name)
    if value is None or isinstance(value, str):
        return value
    raise FilterError(f"the property {name} is {value!r}, no text", hint=f"properties={{{name!r}: {str(value)!r}}}")


def _truth(value: Value) -> bool | None:
    """Only a Boolean is true or false; a property's text counts as FALSE, nothing as unknown."""
    return value if value is None or isinstance(value, bool) else False


def _not(value: bool | None) -> bool | None:
    return None if value is None else not value


class _Parser:
    """Recursive descent with one token of look-ahead, as the generated parser has it."""

    def __init__(self, text: str) -> None:
        self._text = text
        self._token, self._next = token_at(text, 0)
        self._depth = 0

    def _advance(self) -> Token:
        token = self._token
        self._token, self._next = token_at(self._text, self._next)
        return token

    def _accept(self, *kinds: str) -> Token | None:
        return self._advance() if self._token.kind in kinds else None

    def _expect(self, *kinds: str) -> Token:
        # The parser looks at one token only, so the position of the error is exact.
        if self._token.kind not in kinds:
            token = "the end" if self._token.kind == END else repr(self._token.text)
            raise self._error(f"expected {' or '.join(kinds)}, found {token}")
        return self._advance()

    def _error(self, what: str, hint: str = "", position: int | None = None) -> FilterError:
        index = self._token.position if position is None else position
        return FilterError(f"{what} at position {index} of {self._text!r}", position=index, hint=hint)

    def whole(self) -> Node:
        """The expression the text begins with; only the first token after it is looked at."""
        return self._as_boolean(self._any_of(), 0)

    def _any_of(self) -> Node:
        return self._joined("OR", self._all_of, _or)

    def _all_of(self) -> Node:
        return self._joined("AND", self._equality, _and)

    def _joined(self, word: str, part: Callable[[], Node], join: Callable[[list[Node]], Node]) -> Node:
        """One part, or all parts that a word joins: a flat list, so that a thousand of them do not count as nesting."""
        position = self._token.position
        parts = [part()]
        while self._token.kind == word:
            parts[-1] = self._as_boolean(parts[-1], position)
            self._advance()
            position = self._token.position
            parts.append(part())
        if len(parts) == 1:
            return parts[0]
        parts[-1] = self._as_boolean(parts[-1], position)
        return join(parts)

    def _equality(self) -> Node:
        left = self._comparison()
        while operator := self._accept("=", "<>", "IS"):
            if operator.kind == "IS":
                negated = self._accept("NOT") is not None
                self._expect("NULL")
                left = self._not_too_deep(_is_null(left, negated))
            else:
                right = self._comparison()
                self._check_equality(left, right)
                left = self._not_too_deep(_equality(left, right, operator.kind == "<>"))
        return left

    def _comparison(self) -> Node:
        left = self._unary()
        while True:
            # Comparisons of equal rank are read from left to right: each becomes the left side of the next.
            if operator := self._accept("<", "<=", ">", ">="):
                left = self._ordered(left, operator.kind, self._unary())
                continue
            negated = self._accept("NOT") is not None
            if test := self._accept("CONTAINS", "STARTSWITH", "ENDSWITH"):
                left = self._not_too_deep(_text_test(left, test.kind, self._expect("text").text, negated))
            elif self._accept("BETWEEN"):
                left = self._between(left, negated)
            elif self._accept("IN"):
                left = self._in(left, negated)
            elif negated:
                raise self._error("expected CONTAINS, STARTSWITH, ENDSWITH, BETWEEN or IN after NOT")
            else:
                return left

    def _unary(self) -> Node:
        self._depth += 1
        if self._depth > MAX_DEPTH:
            raise self._too_deep()
        try:
            # Signs and NOT bind tighter than any comparison, as in RocketMQ's grammar.
            if self._accept("+"):
                return self._unary()
            if self._accept("-"):
                return _negative(self._unary())
            if self._accept("NOT"):
                position = self._token.position
                return _negation(self._as_boolean(self._unary(), position))
            if self._accept("("):
                inside = self._any_of()
                self._expect(")")
                return inside
            return self._primary()
        finally:
            self._depth -= 1

    def _not_too_deep(self, node: Node) -> Node:
        if node.depth > MAX_DEPTH:
            raise self._too_deep()
        return node

    def _too_deep(self) -> FilterError:
        return self._error(f"nested deeper than {MAX_DEPTH} levels", "AND and OR may join any number of conditions")

    def _primary(self) -> Node:
        token = self._expect("text", "integer", "float", "TRUE", "FALSE", "NULL", "name")
        if token.kind == "name":
            name = token.text
            return Node(PROPERTY, lambda properties: _text_of(properties, name))
        value: Value
        if token.kind == "text":
            value = token.text
        elif token.kind == "integer":
            value = self._integer(token)
        elif token.kind == "float":
            value = self._float(token)
        else:
            value = None if token.kind == "NULL" else token.kind == "TRUE"
        return Node(LITERAL, lambda properties: value, value)

    def _integer(self, token: Token) -> Number:
        # A very long literal is not converted: it is too large in any case.
        digits = token.text.rstrip("lL")
        value = int(digits) if len(digits) < 40 else MAX_LONG + 1
        if value > MAX_LONG:
            raise self._error(f"{token.text} is over the largest Long, {MAX_LONG}", position=token.position)
        return Number(value, MAX_INTEGER if value <= MAX_INTEGER else MAX_LONG)

    def _float(self, token: Token) -> Number:
        value = float(token.text)
        if not MIN_DOUBLE <= value <= MAX_DOUBLE:
            raise self._error(
                f"{token.text} is outside {MIN_DOUBLE} .. {MAX_DOUBLE}", "write 0 for zero", token.position
            )
        return Number(value)

    def _as_boolean(self, node: Node, position: int) -> Node:
        """The node, if it may be used as a truth value. Raises FilterError."""
        if node.kind in (BOOLEAN, PROPERTY) or (node.kind == LITERAL and _is_truth_literal(node)):
            return node
        raise self._error("a number or text stands where a condition is wanted", position=position)

    def _check_equality(self, left: Node, right: Node) -> None:
        for side in (left, right):
            if side.kind == LITERAL and side.literal is None:
                raise self._error("NULL cannot be compared", hint="write IS NULL or IS NOT NULL")
        literals = left.kind == right.kind == LITERAL
        if literals and isinstance(left.literal, bool) and not isinstance(right.literal, bool):
            raise self._error("TRUE and FALSE cannot be compared with a number or text")

    def _ordered(self, left: Node, operator: str, right: Node) -> Node:
        for side in (left, right):
            if side.kind == BOOLEAN or (side.kind == LITERAL and not isinstance(side.literal, Number)):
                raise self._error(f"only properties and numbers can be compared with {operator}")
        return _ordering(left, operator, right)

    def _between(self, left: Node, negated: bool) -> Node:
        low = self._unary()
        self._expect("AND")
        high = self._unary()
        if negated:
            return _or([self._ordered(left, "<", low), self._ordered(left, ">", high)])
        between = _and([self._ordered(left, ">=", low), self._ordered(left, "<=", high)])
        # Only literals can be compared here; properties are known at evaluation.
        least, most = low.literal, high.literal
        if isinstance(least, Number) and isinstance(most, Number) and order(least, most) > 0:
            raise self._error("the lower bound of BETWEEN is above the upper one")
        return between

    def _in(self, left: Node, negated: bool) -> Node:
        self._expect("(")
        texts = [self._expect("text").text]
        while self._accept(","):
            texts.append(self._expect("text").text)
        self._expect(")")
        if left.kind != PROPERTY:
            raise self._error("only a property can stand before IN")

        def evaluate(properties: Properties) -> Value:
            value = left.evaluate(properties)
            return None if value is None else (value in texts) != negated

        return Node(BOOLEAN, evaluate)


def _is_truth_literal(node: Node) -> bool:
    return node.literal is None or isinstance(node.literal, bool)


def _deeper(*parts: Node) -> int:
    return 1 + max(part.depth for part in parts)


def _and(parts: list[Node]) -> Node:
    def evaluate(properties: Properties) -> Value:
        result: bool | None = True
        for part in parts:
            value = _truth(part.evaluate(properties))
            if value is False:
                return False
            if value is None:
                result = None
        return result

    return Node(BOOLEAN, evaluate, depth=_deeper(*parts))


def _or(parts: list[Node]) -> Node:
    def evaluate(properties: Properties) -> Value:
        result: bool | None = False
        for part in parts:
            value = _truth(part.evaluate(properties))
            if value:
                return True
            if value is None:
                result = None
        return result

    return Node(BOOLEAN, evaluate, depth=_deeper(*parts))


def _negation(operand: Node) -> Node:
    return Node(BOOLEAN, lambda properties: _not(_truth(operand.evaluate(properties))), depth=_deeper(operand))


def _equality(left: Node, right: Node, negated: bool) -> Node:
    def evaluate(properties: Properties) -> Value:
        result = equal(left.evaluate(properties), right.evaluate(properties))
        return _not(result) if negated else result

    return Node(BOOLEAN, evaluate, depth=_deeper(left, right))


def _is_null(operand: Node, negated: bool) -> Node:
    return Node(BOOLEAN, lambda properties: (operand.evaluate(properties) is None) != negated, depth=_deeper(operand))


def _ordering(left: Node, operator: str, right: Node) -> Node:
    holds = _ORDERS[operator]

    def evaluate(properties: Properties) -> Value:
        value, other = left.evaluate(properties), right.evaluate(properties)
        if value is None or other is None:
            return None
        assert not isinstance(value, bool) and not isinstance(other, bool)
        return holds(order(value, other))

    return Node(BOOLEAN, evaluate, depth=_deeper(left, right))


def _text_test(operand: Node, test: str, part: str, negated: bool) -> Node:
    passes = _TEXT_TESTS[test]

    def evaluate(properties: Properties) -> Value:
        value = operand.evaluate(properties)
        return isinstance(value, str) and bool(part) and passes(value, part) != negated

    return Node(BOOLEAN, evaluate, depth=_deeper(operand))


def _negative(operand: Node) -> Node:
    def evaluate(properties: Properties) -> Value:
        value = operand.evaluate(properties)
        return value.negated() if isinstance(value, Number) else None

    return Node(NEGATED, evaluate, depth=_deeper(operand))

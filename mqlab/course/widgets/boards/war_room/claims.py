"""The claim board: what colleagues say about a day, what the facts say about each claim, and your verdict.

    board = claim_board(facts, CLAIMS)
    board.ask("Mei", lambda facts: int(...))     an evidence query: any value, short enough for a line
    board.judge("Mei", "false")                  true, false, or "cannot be told"

    who   says                      evidence   verdict
    Mei   billing lost nothing      12 lost    false

The board judges nothing: it keeps claims, evidence and verdicts together, as a war room's wall does.
"""

from __future__ import annotations

from collections.abc import Callable, Sequence
from dataclasses import dataclass
from typing import Any

from markupsafe import Markup

from mqlab.data.traffic.day_facts import DayFacts
from mqlab.errors import UsageError
from mqlab.lab.views.table import Table
from mqlab.lab.views.view import View

VERDICTS = ("true", "false", "cannot be told")
OPEN = "–"
LONGEST = 120


@dataclass(frozen=True, slots=True)
class Claim:
    """A claim in words."""

    who: str
    says: str


class ClaimBoard(View):
    """Claims with their evidence and verdicts; ``claim_board`` makes one."""

    def __init__(self, facts: DayFacts, claims: Sequence[Claim]) -> None:
        self.facts, self.claims = facts, tuple(claims)
        self.evidence: dict[str, str] = {}
        self.verdicts: dict[str, str] = {}

    def ask(self, who: str, query: Callable[[DayFacts], Any]) -> ClaimBoard:
        """Put the answer of an evidence query next to a claim. Raises UsageError for a name without a claim."""
        self._claim_of(who)
        shown = " ".join(str(query(self.facts)).split())
        self.evidence[who] = shown if len(shown) <= LONGEST else f"{shown[: LONGEST - 1]}…"
        return self

    def judge(self, who: str, verdict: str) -> ClaimBoard:
        """Give your verdict on a claim. Raises UsageError for an unknown verdict, and for a claim without evidence."""
        self._claim_of(who)
        if verdict not in VERDICTS:
            raise UsageError(f"{verdict!r} is not a verdict", hint=f"say one of {', '.join(VERDICTS)}")
        if who not in self.evidence:
            raise UsageError(
                f"nothing was asked about {who}'s claim yet", hint=f"board.ask({who!r}, query) comes first"
            )
        self.verdicts[who] = verdict
        return self

    def _claim_of(self, who: str) -> Claim:
        claim = next((claim for claim in self.claims if claim.who == who), None)
        if claim is None:
            known = ", ".join(claim.who for claim in self.claims)
            raise UsageError(f"there is no claim of {who!r}", hint=f"there are claims of {known}")
        return claim

    def table(self) -> Table:
        """One row per claim."""
        rows = [
            {
                "who": claim.who,
                "says": claim.says,
                "evidence": self.evidence.get(claim.who, OPEN),
                "verdict": self.verdicts.get(claim.who, OPEN),
            }
            for claim in self.claims
        ]
        return Table(rows, columns=["who", "says", "evidence", "verdict"], title="Claims")

    def text(self) -> str:
        return str(self.table())

    def html(self) -> Markup:
        return self.table().html()


def claim_board(facts: DayFacts, claims: Sequence[Claim]) -> ClaimBoard:
    """A board for these claims about a day."""
    return ClaimBoard(facts, claims)

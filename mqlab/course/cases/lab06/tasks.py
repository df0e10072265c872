"""Lab 06's your-turn tasks: what is right is counted in the learner's own world.

    in_vain  widen  retries_go  trap         the first part: messages sent for nothing, who gets what, the board
    every  woken  scope  no_coupon  wait     the second part: pulls, held pulls, a filter, a change of tags

What is said to a wrong answer is in the lab's sources.
"""

from __future__ import annotations

from collections import Counter
from typing import Any

from mqlab.course.teach.tasks import Task
from mqlab.lab.views.fates import Fate, show_fates
from mqlab.rocketmq.client.statuses import CONSUME_SUCCESS
from mqlab.rocketmq.wire.codes import ResponseCode, response_name

SHARED, ALONE = "order-service", "billing"
NO_MATCH = response_name(ResponseCode.PULL_RETRY_IMMEDIATELY)


def _fates(lab: Any, group: str = SHARED) -> list[Fate]:
    return show_fates(lab, group).fates


def _count(lab: Any, status: str) -> int:
    return Counter(fate.status for fate in _fates(lab))[status]


def _sent_in_vain(lab: Any) -> int:
    return _count(lab, "FILTERED_BY_CLIENT")


def _something_was_in_vain(lab: Any) -> str:
    if _sent_in_vain(lab):
        return ""
    return (
        "In your last run the broker sent nothing that the client dropped: OTHER needs the code of paid. "
        "java_hash tells you the code."
    )


def _not_delivered(lab: Any) -> int:
    return sum(fate.status != CONSUME_SUCCESS for fate in _fates(lab))


def _billing_gets_its_own(lab: Any) -> str:
    got = [fate for fate in _fates(lab) if fate.words == "✓ billing"]
    if any(fate.tag != "paid" for fate in got):
        return "In your last run billing got more than paid: leave billing as it is, and change SHIPPING only."
    if not got:
        return "In your last run billing got nothing: change SHIPPING so that the broker lets paid through."
    return ""


def _retries(lab: Any) -> list[tuple[str, str]]:
    """Tag and member of each delivery that was a retry."""
    tags = {message.msg_id: message.tags for message in lab.store().messages("orders")}
    rows = lab.deliveries(SHARED, absences=False)
    return [(tags[row.msg_id], row.client) for row in rows if row.reconsume_times == 1]


def _strange_retries(lab: Any) -> int:
    wants = {"billing": "paid", "shipping": "shipped"}
    return sum(wants[client] != tag for tag, client in _retries(lab))


def _billing_failed(lab: Any) -> str:
    if any(tag == "paid" for tag, _ in _retries(lab)):
        return ""
    return 'In your last run it was shipping whose orders failed: set FAILS_AT to "billing" and run it again.'


def _lanes_that_end(board: Any) -> int:
    return len(board.nobody())


def _two_tags_with_one_code(board: Any) -> str:
    now = board.settings
    if now.post_subscription_when_pull or now.groups != 1:
        return "The board shows another setting now: one group, and the pull without its text. Set that and press Play."
    if {now.billing, now.shipping} != {"Aa", "BB"}:
        return "The board has not played these tags yet: give billing Aa and shipping BB, and press Play."
    return ""


def _answered_at_once(lab: Any) -> int:
    return sum(pull.answered_ms is not None and pull.woken is None for pull in lab.pulls(ALONE))


def _one_in_thirty_or_more(lab: Any) -> str:
    stored = list(lab.store().messages("orders"))
    paid = sum(message.tags == "paid" for message in stored)
    if paid and 30 <= len(stored) // paid <= 200:
        return ""
    return "Your last run had another EVERY: choose one from 30 to 200 and run it again."


def _waited_on(lab: Any) -> int:
    """Whole seconds from the first order until the pull that it did not fit was answered."""
    (order,) = lab.store().messages("orders")
    answered = [pull.left_ms for pull in lab.pulls(ALONE) if pull.status == NO_MATCH]
    return int(answered[0] - order.store_timestamp) // 1000


def _it_did_not_fit(lab: Any) -> str:
    if any(pull.status == NO_MATCH for pull in lab.pulls(ALONE)):
        return ""
    return (
        "In your last run the order fitted, or its code did: set TAG to another tag, such as created, and run it again."
    )


def _empty(scope: Any, reader: str) -> int:
    return int(next(row.empty for row in scope.requests() if row.reader == reader))


def _rare_tag_is_played(scope: Any) -> str:
    if (scope.settings.rate, scope.settings.rare) == (4, 20):
        return ""
    return (
        "The scope has not played this yet: 4 messages a second, every 20th of them with the rare tag, and press Play."
    )


def _passed(lab: Any) -> int:
    return len({row.msg_id for row in lab.deliveries(ALONE, absences=False)})


def _everything_but_spring(lab: Any) -> str:
    coupons = [message.properties.get("coupon") for message in _delivered(lab)]
    if "spring" in coupons:
        return "In your last run orders with the coupon spring also passed: change CONDITION and run it again."
    if None not in coupons or "summer" not in coupons:
        return "In your last run not everything but spring passed: change CONDITION and run it again."
    return ""


def _delivered(lab: Any) -> list[Any]:
    ids = {row.msg_id for row in lab.deliveries(ALONE, absences=False)}
    return [message for message in lab.store().messages("orders") if message.msg_id in ids]


def _first_arrives(lab: Any) -> bool:
    return _fates(lab, ALONE)[0].status == CONSUME_SUCCESS


def _shortest_wait(lab: Any) -> int:
    """Whole seconds from the new subscription until the pull that was held at that time is answered, rounded up."""
    changes = lab.journal.changes("subscription.changed")
    changed_ms: int = next(step.now_ms for step, values in changes if "||" in values["subscriptions"]["orders"])
    held = next(pull for pull in lab.pulls(ALONE) if pull.asked_ms < changed_ms and _left(pull) > changed_ms)
    return -(-(_left(held) - changed_ms) // 1000)


def _left(pull: Any) -> int:
    return int(pull.left_ms) if pull.left_ms is not None else 1 << 62


def _all_three_arrive(lab: Any) -> str:
    return (
        ""
        if _first_arrives(lab)
        else "In your last run the first order was dropped: make WAIT larger and run it again."
    )


TASKS = (
    Task(
        "lab06.in_vain",
        right=_sent_in_vain,
        wrong={"all": lambda lab: len(_fates(lab)), "delivered": lambda lab: _count(lab, CONSUME_SUCCESS)},
        unready=_something_was_in_vain,
    ),
    Task(
        "lab06.widen",
        right=_not_delivered,
        wrong={"six": lambda lab: 6, "none": lambda lab: 0},
        unready=_billing_gets_its_own,
    ),
    Task(
        "lab06.retries_go",
        right=_strange_retries,
        wrong={"all": lambda lab: len(_retries(lab))},
        unready=_billing_failed,
    ),
    Task(
        "lab06.trap",
        right=_lanes_that_end,
        wrong={"six": lambda board: 6, "none": lambda board: 0},
        unready=_two_tags_with_one_code,
    ),
    Task(
        "lab06.every",
        right=_answered_at_once,
        wrong={
            "found": lambda lab: sum(len(pull.found) for pull in lab.pulls(ALONE)),
            "batches": lambda lab: -(-sum(len(pull.found) for pull in lab.pulls(ALONE)) // 32),
        },
        unready=_one_in_thirty_or_more,
    ),
    Task(
        "lab06.woken",
        right=_waited_on,
        wrong={"zero": lambda lab: 0, "fifteen": lambda lab: 15},
        unready=_it_did_not_fit,
    ),
    Task(
        "lab06.scope",
        right=lambda scope: _empty(scope, "held"),
        wrong={"none": lambda scope: 0, "asking": lambda scope: _empty(scope, "asking")},
        unready=_rare_tag_is_played,
    ),
    Task(
        "lab06.no_coupon",
        right=_passed,
        wrong={"three": lambda lab: 3, "all": lambda lab: 8},
        unready=_everything_but_spring,
    ),
    Task(
        "lab06.wait",
        right=_shortest_wait,
        wrong={"twenty": lambda lab: 20, "zero": lambda lab: 0},
        unready=_all_three_arrive,
    ),
)

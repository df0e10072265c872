"""3,491 requests with one mistake each, to a real broker and name server: mqlab answers as they do.

For each request code: every header field missing, every number wrong, each name unknown or without permission, the
body missing or cut; then the same names while the broker is closed for reading, for writing, and makes no topics and
groups. Compared are code, names of the header fields, and remark, but where docs/differences.md says otherwise.
"""

from __future__ import annotations

import re
from pathlib import Path

from tests.rocketmq.conformance.test_odd_requests import JAVA, ON_PURPOSE, asked_again, recorded

REFUSED = re.compile(f"{ON_PURPOSE.pattern}|must be an object|this broker has no users")
OTHERWISE = {
    "any number of queues and any permission is taken": re.compile("17 (read|write|perm)"),
    "a group without a name is made by use": re.compile("(11|36|352|361|20005[0245]) (consumerGroup|group)=$"),
    "an earlier question made the queue": re.compile("321 (fine|(noauto: )?(topic|queueId)=)"),
    "a reset that waits outlives its topic": re.compile("(14|15) .*topic=sw"),
    "a new lease is stored before the old handle is read": re.compile("200053 extraInfo="),
    "heartbeats in short are offered": re.compile("34 "),
}
"""What RocketMQ does -> the notes of such requests."""
OWN_WORDS = re.compile(
    "See https://rocketmq.apache.org|illegal characters|longer than topic max length|TopicConfig \\[|No group in this"
    "|attribute format is wrong|maybe msg body or properties|RMQ_SYS_TRANS_HALF_TOPIC|An system error occurred"
)
"""Remarks of RocketMQ in whose place mqlab says what was asked, what was found and what is allowed."""
NOTHING_ASKED = re.compile("400 body")  # an assignment of nothing is nothing


def of_every_broker(remark: str | None) -> str:
    """Without addresses, and without how much is in a queue: some messages went to a queue at random."""
    remark = re.sub(r"\d+\.\d+\.\d+\.\d+(:\d+)?", "address", remark or "")
    return re.sub(r"(store:|range \[)\d+[~-]\d+", r"\1", remark)


def compared(
    directory: Path, name: str, role: str = "ASYNC_MASTER"
) -> tuple[int, dict[str, tuple[object, ...]], set[str]]:
    """How many answers of a recording were compared, those that are wrong, and the reasons for others that differ."""
    wrong: dict[str, tuple[object, ...]] = {}
    explained, count = set(), 0
    for row, mine in asked_again(directory, recorded(name), role):
        real, note = row["answer"], row["note"]
        if real is None or mine is None:  # a pop and a notification that are held
            assert real is None and mine is None and "pollTime=99999" in note
            continue
        remark, own = of_every_broker(real["remark"]), of_every_broker(mine.remark)
        if JAVA.search(remark):  # what ends in an exception there is refused here, in words
            if mine.code == 0 and not NOTHING_ASKED.match(note):
                wrong[note] = remark, own
            continue
        count += 1
        same_words = remark == own or (mine.code != 0 and OWN_WORDS.search(remark))
        if (real["code"], sorted(real["fields"])) == (mine.code, sorted(mine.ext_fields)) and same_words:
            continue
        reason = next((reason for reason, notes in OTHERWISE.items() if notes.match(note)), None)
        if reason is not None:
            explained.add(reason)
        elif not REFUSED.search(own):
            wrong[note] = real["code"], remark, int(mine.code), own
    return count, wrong, explained


def test_mistakes_of_operators_and_clients_are_answered_as_by_rocketmq(tmp_path: Path) -> None:
    count, wrong, explained = compared(tmp_path, "operators-mistakes")
    assert wrong == {}
    assert explained == set(OTHERWISE), "a row is not needed any more"
    assert count > 3_000


def test_a_slave_without_a_master_answers_as_rocketmqs_does(tmp_path: Path) -> None:
    count, wrong, _ = compared(tmp_path, "asked-of-a-slave", "SLAVE")
    assert wrong == {} and count > 200

"""Every verb of `mqlab admin` takes mqadmin's options, with their letters and long names, or a row says why not.

mqadmin_options.json is what mqadmin 5.3.3 says; tests/interop/test_mqadmin.py makes it again.
"""

from __future__ import annotations

import json
from pathlib import Path

import click
import pytest

from mqlab.cli.admin import admin

MQADMIN: dict[str, list[tuple[str, str, bool, bool]]] = json.loads(
    Path(__file__).with_name("mqadmin_options.json").read_text("utf-8")
)
OWN_VERBS = {"consumeTimeSpan", "deadLetters", "messageTrack", "resendDeadLetters", "topicConfig"}
OWN_LETTERS = {
    "getConsumerConfig": "b",  # mqadmin shows the group at all brokers
    "cloneGroupOffset": "g",  # the older letter
    "queryMsgByOffset": "q",  # the older letter
}
LEFT_OUT = {
    "*": "h n c",  # -h and -n belong to every verb here; -c names a cluster, of which there is one
    "clusterList": "i m",
    "cloneGroupOffset": "o",
    "consumerProgress": "s t",
    "deleteSubGroup": "b r",
    "printMsg": "d l s",
    "queryMsgById": "d f g s u",
    "queryMsgByKey": "m",
    "queryMsgByOffset": "f",
    "queryMsgByUniqueKey": "a d g",
    "queryMsgTraceById": "b e t",
    "resetOffsetByTime": "b f o q",
    "setConsumeMode": "b",  # every broker of the topic gets the mode
    "skipAccumulatedMessage": "f",
    "statsAll": "a",
    "topicRoute": "l",
    "updateTopic": "a o s u",
}
"""Letters of mqadmin's that a verb does not have."""


def letters_of(command: click.Command) -> dict[str, click.Option]:
    """A verb's options by letter."""
    return {
        name[1:]: option
        for option in command.params
        if isinstance(option, click.Option)
        for name in option.opts
        if not name.startswith("--")
    }


def test_verbs_that_mqadmin_does_not_have_are_known() -> None:
    assert {name for name in admin.commands if name not in MQADMIN} == OWN_VERBS


@pytest.mark.parametrize("verb", sorted(set(admin.commands) - OWN_VERBS))
def test_a_verb_takes_mqadmins_options(verb: str) -> None:
    ours = letters_of(admin.commands[verb])
    theirs = {letter: (long, required) for letter, long, _, required in MQADMIN[verb]}
    left_out = {*LEFT_OUT["*"].split(), *LEFT_OUT.get(verb, "").split()}
    assert set(ours) - set(theirs) - {"n"} == set(OWN_LETTERS.get(verb, ""))
    assert set(theirs) - set(ours) <= left_out
    assert set(LEFT_OUT.get(verb, "").split()) == set(theirs) - set(ours) - set(LEFT_OUT["*"].split())
    for letter in set(ours) & set(theirs) - {"n"}:
        assert f"--{theirs[letter][0]}" in ours[letter].opts, f"{verb} -{letter}"

"""The attributes of a topic or a group and how a request changes them.

Mirrors: AttributeParser, AttributeUtil, TopicAttributes, SubscriptionGroupAttributes; used by mqadmin's updateTopic -a.

    request text                     changes                                 topic afterwards
    "+message.type=FIFO"             {"+message.type": "FIFO"}               {"message.type": "FIFO"}
    "-message.type"                  {"-message.type": ""}                   {}

Left out: attributes of tiered storage and of POP.
"""

from __future__ import annotations

from collections.abc import Mapping

from mqlab.errors import UsageError

KNOWN: Mapping[str, tuple[str, ...]] = {
    "queue.type": ("SimpleCQ", "BatchCQ"),
    "cleanup.policy": ("DELETE", "COMPACTION"),
    "message.type": ("UNSPECIFIED", "NORMAL", "FIFO", "DELAY", "TRANSACTION", "MIXED"),
}
KNOWN_OF_GROUPS: Mapping[str, tuple[str, ...]] = {}
"""RocketMQ 5.3 has no attribute of groups: every one asked for is refused."""
NOT_MODELLED = (("queue.type", "BatchCQ"), ("cleanup.policy", "COMPACTION"))
"""Values of RocketMQ that change how a topic is stored; a topic that has them would be stored as one without."""
FIXED_AFTER_CREATION = ("queue.type", "cleanup.policy")


def parse_attributes(text: str) -> dict[str, str]:
    """The changes a request asks for. Raises UsageError when one is neither ``+name=value`` nor ``-name``.

    >>> parse_attributes("+message.type=FIFO,-queue.type")
    {'+message.type': 'FIFO', '-queue.type': ''}
    """
    changes: dict[str, str] = {}
    for part in filter(None, (part.strip() for part in text.split(","))):
        name, equals, value = part.partition("=")
        adds, removes = part.startswith("+"), part.startswith("-")
        if not ((adds and equals and value) or (removes and not equals)) or len(name) < 2:
            raise UsageError(f"attribute {part!r} is not a change", hint="write +name=value to set, -name to remove")
        if name in changes:
            raise UsageError(f"attribute {name[1:]!r} is given twice")
        changes[name] = value
    return changes


def altered_attributes(
    current: Mapping[str, str],
    changes: Mapping[str, str],
    *,
    create: bool,
    known: Mapping[str, tuple[str, ...]] = KNOWN,
    of: str = "topic",
) -> dict[str, str]:
    """The attributes of a topic or a group (``of``) after the changes; ``known``: the names and values that exist.

    Raises UsageError for a change that cannot be made. Mirrors AttributeUtil.alterCurrentAttributes.

    >>> altered_attributes({}, {"+message.type": "FIFO"}, create=True)
    {'message.type': 'FIFO'}
    """
    altered = dict(current)
    changed: list[str] = []
    for change, value in changes.items():
        name = change[1:]
        if change[:1] not in ("+", "-"):
            raise UsageError(f"attribute {change!r} is not a change", hint="write +name to set, -name to remove")
        if name in changed:
            raise UsageError(f"attribute {name!r} is changed twice in one request", hint="set it or remove it")
        changed.append(name)
        if name not in known:
            raise UsageError(f"unknown {of} attribute {name!r}", hint=f"known: {', '.join(known) or 'none'}")
        if not create and name in FIXED_AFTER_CREATION:
            raise UsageError(f"{of} attribute {name!r} cannot change after the {of} was made")
        if change.startswith("+"):
            if value not in known[name]:
                raise UsageError(f"{of} attribute {name} cannot be {value!r}", hint=f"one of {', '.join(known[name])}")
            if (name, value) in NOT_MODELLED:
                raise UsageError(f"{of} attribute {name}={value} is not modelled", hint="leave it out")
            altered[name] = value
        elif create:
            raise UsageError(f"a new {of} has no attribute {name!r} to remove")
        elif name not in altered:
            raise UsageError(f"the {of} has no attribute {name!r} to remove")
        else:
            del altered[name]
    return altered

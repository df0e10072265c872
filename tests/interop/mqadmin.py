"""mqadmin's commands, and how their output is made comparable: a table, played from top to bottom.

A row is a command (words between blanks), how its output is compared, and, where mqlab differs on purpose, why.
BROKER is the broker's address, CLUSTER the cluster's name; FOLDER, GROUPS and TOPICS are files. Rows with a + are
AdminDoor's own.
"""

from __future__ import annotations

import re
from collections.abc import Callable
from dataclasses import dataclass

SAME, LINES, SHAPE, NAMES, OTHER = "same", "lines", "shape", "names", "other"
"""The same text; the same lines in any order; so but for numbers; names that the real one knows; as ``why`` says."""


@dataclass(frozen=True)
class Row:
    """One command. ``why``: the reason of a difference, for OTHER, which must be one."""

    command: str
    compared: str = SAME
    why: str = ""

    @property
    def words(self) -> str:
        """The command as AdminDoor reads it."""
        return "\t".join(self.command.split(" "))


TABLE = [
    Row("clusterList", SHAPE),
    Row("topicList", LINES),
    Row("updateTopic -c CLUSTER -t desk -r 4 -w 4"),
    Row("updateTopic -b BROKER -t desk-two -r 2 -w 2 -p 6 -a +message.type=FIFO"),
    Row("+wait 1"),
    Row("+send desk 0 key-0"),
    Row("+send desk 1 key-1"),
    Row("+send desk 1 key-2"),
    Row("topicRoute -t desk"),
    Row("topicRoute -t desk -l"),
    Row("topicStatus -t desk"),
    Row("topicClusterList -t desk"),
    Row("topicList -c", LINES),
    Row("queryMsgByUniqueKey -t desk -i UNIQUE-ID"),
    Row("queryMsgById -t desk -i OFFSET-ID"),
    Row("queryMsgByKey -t desk -k key-1"),
    Row("queryMsgByOffset -t desk -b broker-a -i 1 -o 0"),
    Row("DecodeMessageId -i OFFSET-ID", SHAPE),
    Row("printMsg -t desk -d true", LINES),
    Row("printMsgByQueue -t desk -a broker-a -i 1 -p true -d true -f true"),
    Row("consumeMessage -t desk -b broker-a -i 1 -o 0 -c 1", LINES),
    Row("sendMessage -t desk -p hello -k key-3 -c tag -b broker-a -i 2"),
    Row("checkMsgSendRT -t desk -a 2 -s 10", SHAPE),
    Row("sendMsgStatus -b broker-a -s 10 -c 2", SHAPE),
    Row("updateSubGroup -c CLUSTER -g desk-group -r 3"),
    Row("getConsumerConfig -g desk-group"),
    Row("+consume desk-group desk"),
    Row("+called desk-group 4"),
    Row("+wait 12"),
    Row("consumerProgress -g desk-group", LINES),
    Row("consumerProgress -g desk-group -t desk", LINES),
    Row("consumerProgress", SHAPE),
    Row("consumerConnection -g desk-group"),
    Row("consumerStatus -g desk-group", SHAPE),
    Row("producerConnection -g admin-door-shop -t desk"),
    Row("producer -b BROKER", SHAPE),
    Row("getConsumerStatus -g desk-group -t desk", LINES),
    Row("resetOffsetByTime -g desk-group -t desk -s 0", LINES),
    Row("+wait 3"),
    Row("skipAccumulatedMessage -g desk-group -t desk", LINES),
    Row("cloneGroupOffset -s desk-group -d desk-copy -t desk -o true"),
    Row("queryCq -t desk -q 1 -i 0 -c 2 -b BROKER"),
    Row("brokerConsumeStats -b BROKER", LINES),
    Row("brokerStatus -b BROKER", NAMES),
    Row("getBrokerConfig -b BROKER", NAMES),
    Row("updateBrokerConfig -b BROKER -k transactionCheckMax -v 14"),
    Row("clusterList -m", SHAPE),
    Row("statsAll -t desk-two", SHAPE),
    Row("allocateMQ -t desk -i 10.0.0.1,10.0.0.2,10.0.0.3", LINES),
    Row("updateTopicPerm -b BROKER -t desk -p 4"),
    Row("updateTopicPerm -c CLUSTER -t desk -p 6"),
    Row("updateOrderConf -t desk -m put -v broker-a:4"),
    Row("updateOrderConf -t desk -m get"),
    Row("updateOrderConf -t desk -m delete"),
    Row("updateKvConfig -s space -k key -v value"),
    Row("deleteKvConfig -s space -k key"),
    Row("getNamesrvConfig", NAMES),
    Row("updateNamesrvConfig -k waitSecondsForService -v 46"),
    Row("wipeWritePerm -b broker-a", SHAPE),
    Row("addWritePerm -b broker-a", SHAPE),
    Row("cleanExpiredCQ -b BROKER"),
    Row("cleanUnusedTopic -b BROKER"),
    Row("deleteExpiredCommitLog -b BROKER"),
    Row("haStatus -b BROKER", SHAPE),
    Row("getBrokerEpoch -b broker-a", OTHER, "there is no controller here: the request is not supported"),
    Row("setConsumeMode -b BROKER -t desk -g desk-group -m PULL"),
    Row("setCommitLogReadAheadMode -b BROKER -m 1"),
    Row("setCommitLogReadAheadMode -b BROKER -m 0"),
    Row("updateColdDataFlowCtrGroupConfig -b BROKER -g desk-group -v 4096"),
    Row("getColdDataFlowCtrInfo -b BROKER", SHAPE),
    Row("removeColdDataFlowCtrGroupConfig -b BROKER -g desk-group"),
    Row("resetMasterFlushOffset -b BROKER -o 0", OTHER, "it is for controllers: the request is not supported"),
    Row("exportConfigs -c CLUSTER -f FOLDER"),
    Row("exportMetadata -c CLUSTER -f FOLDER"),
    Row("exportMetadata -b BROKER -f FOLDER -t"),
    Row("exportMetrics -c CLUSTER -f FOLDER"),
    Row("updateSubGroupList -b BROKER -f GROUPS"),
    Row("updateTopicList -b BROKER -f TOPICS"),
    Row("getConsumerConfig -g list-one"),
    Row("deleteSubGroup -c CLUSTER -g list-one"),
    Row("getUser -b BROKER -u shop", OTHER, "the answer says that this broker has no users"),
    Row("listAcl -b BROKER", OTHER, "rights of users are not modelled: the request is not supported"),
    Row("deleteTopic -c CLUSTER -t desk-two"),
    Row("topicRoute -t nowhere"),
    Row("topicStatus -t nowhere"),
    Row("queryMsgByUniqueKey -t desk -i 7F00000100002A9F0000000000000000"),
    Row("consumerProgress -g nobody"),
    Row("consumerConnection -g nobody"),
    Row("noSuchCommand -x"),
    Row("topicList", LINES),
    Row("updateTopic -c CLUSTER -t popped -r 2 -w 2"),
    Row("setConsumeMode -c CLUSTER -t popped -g popping-group -m POP -q 0"),
    Row("setConsumeMode -b BROKER -t popped -g popping-group -m POP"),
    Row("setConsumeMode -b BROKER -t nowhere -g popping-group -m POP"),
    Row("+wait 1"),
    Row("+pop popping-group popped"),
    Row("+wait 3"),
    Row("+send popped 0 key-4"),
    Row("+send popped 1 key-5"),
    Row("+called popping-group 2"),
    Row("+wait 1"),
    Row("consumerProgress -g popping-group -t popped", LINES),
    Row("consumerConnection -g popping-group"),
    Row("consumerStatus -g popping-group", SHAPE),
]

USERS = [
    Row("+user admin 12345678"),
    Row("createUser -b BROKER -u billing -p first -t Normal"),
    Row("createUser -b BROKER -u billing -p first"),
    Row("getUser -b BROKER -u billing"),
    Row("listUser -b BROKER"),
    Row("listUser -b BROKER -f bill"),
    Row("updateUser -b BROKER -u nobody -p x"),
    Row("+user billing first"),
    Row("updateTopic -b BROKER -t desk -r 1 -w 1"),
    Row("+wait 1"),
    Row("+send desk 0 key-0"),
    Row("+consume billing-group desk"),
    Row("+called billing-group 1"),
    Row("+wait 20"),
    Row("consumerProgress -g billing-group -t desk", LINES),
    Row("createUser -b BROKER -u other -p x -t Super"),
    Row("deleteUser -b BROKER -u admin"),
    Row("updateUser -b BROKER -u admin -p x"),
    Row("+user billing wrong"),
    Row("brokerStatus -b BROKER", SHAPE),
    Row("+user nobody 12345678"),
    Row("brokerStatus -b BROKER", SHAPE),
    Row("+user -"),
    Row("brokerStatus -b BROKER", SHAPE),
    Row("+user admin 12345678"),
    Row("updateUser -b BROKER -u billing -s disable"),
    Row("+user billing first"),
    Row("getUser -b BROKER -u admin"),
    Row("+user admin 12345678"),
    Row("updateUser -b BROKER -u billing -s enable"),
    Row("updateUser -b BROKER -u billing -p second"),
    Row("+user billing second"),
    Row("getUser -b BROKER -u billing"),
    Row("+user admin 12345678"),
    Row("deleteUser -b BROKER -u billing"),
    Row("deleteUser -b BROKER -u billing"),
    Row("getUser -b BROKER -u billing"),
    Row("listUser -c CLUSTER"),
]
"""Of clusters that have a super user "admin" with the password 12345678."""

CHANCE = (
    (r"127\.0\.0\.1:\d+#\d+", "CLIENT"),
    (r"/?127\.0\.0\.1:\d+", "ADDRESS"),
    (r"\d+\.\d+\.\d+\.\d+@[^ ,\"]+", "CLIENT"),
    (r"\d{4}-\d\d-\d\d \d\d:\d\d:\d\d(,\d+)?", "TIME"),
    (r"\b\d{13}\b", "MS"),
    (r"\b([0-9A-F]{32,56}|[0-9A-F]{16})\b", "ID"),
    (r"(CommitLog Offset: +|commitLogOffset=|phyoffset: |physicOffset=)\d+", r"\1N"),
    (r"(offset=)\d+(, size)", r"\1N\2"),
    (r"/\S*/(mqlab|real)/", "/"),
    (r"(Consume TPS: +)[\d.]+", r"\1N"),
    (r"[ \t]+", " "),
)
# Traces of Java, the link to a FAQ (in another sentence when the name server gives it), and the timer wheel's topic.
IGNORED = re.compile(r"^ ?at |bestPractice/06FAQ|rmq_sys_wheel_timer|^ ?\.\.\. \d+ more|[^ ]+ \|-|^Picked up|^WARNING:")


def comparable(text: str) -> list[str]:
    """The lines of an output without what is due to chance: ports, times, ids, places in the log, traces of Java."""
    for pattern, name in CHANCE:
        text = re.sub(pattern, name, text)
    return [line.strip() for line in text.splitlines() if line.strip() and not IGNORED.search(line)]


def shape(lines: list[str]) -> list[str]:
    """Lines without their numbers."""
    return [re.sub(r"-?\d+(\.\d+)?", "N", line) for line in lines]


def names(lines: list[str]) -> set[str]:
    """The first words of lines "name = value" or "name : value"."""
    return {re.split(r" ?[=:] ?", line)[0] for line in lines}


# What mqlab's configurations have of their own: see docs/differences.md.
OWN = {
    "commitLogDiskRatio_commitlog",
    "defaultBrokerChannelExpiredTime",
    "haMasterAddress",
    "lockMaxLiveTime",
    "recoverWithNumpy",
    "sharpEdges",
    "utcOffsetMs",
}


AGREES: dict[str, Callable[[list[str], list[str]], bool]] = {
    SAME: lambda ours, real: ours == real,
    LINES: lambda ours, real: sorted(ours) == sorted(real),
    SHAPE: lambda ours, real: sorted(shape(ours)) == sorted(shape(real)),
    NAMES: lambda ours, real: bool(ours) and names(ours) - OWN <= names(real),
    OTHER: lambda ours, real: ours != real,
}
"""Whether two outputs agree, by the way they are compared."""

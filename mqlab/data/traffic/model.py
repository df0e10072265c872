"""The order platform that all generated traffic comes from, described in one table.

Mirrors: a shop that uses RocketMQ.

    orders, 8 queues per broker, an order's customer chooses the queue; keys: O<order> C<customer>
      tag         sent by           share of orders, how long after `created` (of the day's orders)
      created     order-service     all
      paid        payment-service   88 %: at once (6 of 10), later (3), much later (1)
      cancelled   order-service     12 %: nobody paid
      shipped     logistics         95 % of the paid ones, from two warehouses, one slower
      refunded    payment-service   6 % of the shipped ones
    stock, 4 queues per broker      levels of the warehouses, key S<article>; fills up to the number asked for
    reminders, 4 queues             only with ``reminders``: a delayed message per order, see beside_orders
    invoices, 4 queues              only with ``invoices``: sent in a transaction for each paid order, see beside_orders

      group          reads                           trace   tries after the first
      billing        orders: created || paid          on     16
      shipping       orders: paid || cancelled        on     5
      notification   orders: shipped || refunded
                             || cancelled             on     3
      analytics      orders: *                        off    16
      warehouse      stock: *                         off    16
      cancelling     reminders: * (if there are any)  off    16
      ledger         invoices: * (if there are any)   off    16

    customers      50,000 per broker, by Zipf's law, 32 people who share names and towns
    failures       0.4 % of all deliveries fail once, a quarter of those twice; retries as the broker schedules them

Left out: batch messages; an order whose day began yesterday.
"""

from __future__ import annotations

from dataclasses import dataclass, field, replace
from typing import Any

from mqlab.data.traffic.trouble.incident import Incident
from mqlab.errors import UsageError
from mqlab.rocketmq.wire.names import MAX_TOPIC_LENGTH

CREATED, PAID, SHIPPED, REFUNDED, CANCELLED = range(5)
TAGS = ("created", "paid", "shipped", "refunded", "cancelled")
PRODUCERS = ("order-service", "payment-service", "logistics")
PRODUCER_OF = (0, 1, 2, 1, 0)  # of each tag
INSTANCES = 2  # processes of each producer and of each group

FIRST_DAY_MS = 1_731_283_200_000  # 2024-11-11 00:00 UTC
MOST_BROKERS = 702  # broker-a ... broker-zz
LEAST_MESSAGES = 300  # per broker


@dataclass(frozen=True, slots=True)
class Group:
    """A consumer group: the topic and tags it reads, its retries, and whether its clients write a trace."""

    name: str
    topic: str
    tags: tuple[str, ...]  # none: all
    traced: bool
    max_reconsume_times: int

    @property
    def expression(self) -> str:
        return " || ".join(self.tags) or "*"


ORDERS, STOCK, REMINDERS, INVOICES = "orders", "stock", "reminders", "invoices"
GROUPS = (
    Group("billing", ORDERS, ("created", "paid"), True, 16),
    Group("shipping", ORDERS, ("paid", "cancelled"), True, 5),
    Group("notification", ORDERS, ("shipped", "refunded", "cancelled"), True, 3),
    Group("analytics", ORDERS, (), False, 16),
    Group("warehouse", STOCK, (), False, 16),
)
REMINDED = Group("cancelling", REMINDERS, (), False, 16)
INVOICED = Group("ledger", INVOICES, (), False, 16)
INVOICING = "invoice-service"  # the producer group that sends them
REMINDER_QUEUES = INVOICE_QUEUES = 4
ON_REQUEST = ("reminders", "invoices")  # fields of TrafficModel: what a day has only when it is asked for
ON_REQUEST_GROUPS = (REMINDED, INVOICED)
TRACED = tuple(group for group in GROUPS if group.traced)

PEOPLE = (
    ("王芳", "上海", "CNY"),
    ("李娜", "北京", "CNY"),
    ("张伟", "深圳", "CNY"),
    ("刘洋", "成都", "CNY"),
    ("陈静", "杭州", "CNY"),
    ("杨勇", "西安", "CNY"),
    ("赵敏", "武汉", "CNY"),
    ("黄磊 🐉", "广州", "CNY"),
    ("周杰", "南京", "CNY"),
    ("吴霞", "天津", "CNY"),
    ("徐强", "重庆", "CNY"),
    ("孙丽", "苏州", "CNY"),
    ("Анна Иванова", "Москва", "RUB"),
    ("Олег Петров", "Казань", "RUB"),
    ("Юлия Орлова", "Тверь", "RUB"),
    ("Иван Козлов 🚲", "Самара", "RUB"),
    ("Мария Белая", "Омск", "RUB"),
    ("Пётр Зимин", "Пермь", "RUB"),
    ("Ольга Лебедь", "Томск", "RUB"),
    ("Егор Соколов", "Уфа", "RUB"),
    ("Emma Schmidt", "Berlin", "EUR"),
    ("Lukas Weber", "Hamburg", "EUR"),
    ("Chloé Moreau", "Lyon", "EUR"),
    ("José García", "Sevilla", "EUR"),
    ("Noah Smith", "Leeds", "GBP"),
    ("Olivia Jones", "Bristol", "GBP"),
    ("Liam Brown", "Boston", "USD"),
    ("Ava Davis 🎧", "Denver", "USD"),
    ("佐藤 健", "東京", "JPY"),
    ("鈴木 愛 🌸", "大阪", "JPY"),
    ("김민준", "서울", "KRW"),
    ("이서연", "부산", "KRW"),
)
"""Name, town and currency, by customer number modulo 32."""
TESTER = ("load test", "nowhere", "XTS")
"""The same of the account that a load test orders with."""
WAREHOUSES = ("上海一号仓", "Тверь-2", "Hamburg-3", "大阪 📦")
ARTICLES = 2_000


@dataclass(frozen=True, slots=True)
class TrafficModel:
    """The numbers that may be changed; sizes in bytes, ``index``: whether key indexes are written,
    ``reminders``: whether each order has a delayed message, ``invoices``: whether each paid one has a transaction.

    Wrong values raise UsageError.
    """

    queues: int = 8
    stock_queues: int = 4
    customers: int = 50_000
    failing_of_1024: int = 4  # first deliveries
    start_ms: int = FIRST_DAY_MS
    cluster: str = "DefaultCluster"
    incidents: tuple[str | Incident, ...] | None = None  # kinds, or when and where; None: the seed chooses
    index: bool = False
    reminders: bool = False
    invoices: bool = False
    commit_log_bytes: int = 1 << 30
    consume_queue_bytes: int = 6_000_000
    hash_slot_num: int = 5_000_000
    index_num: int = 20_000_000

    def __post_init__(self) -> None:
        _within("queues", self.queues, 1, 64)
        _within("stock_queues", self.stock_queues, 1, 64)
        _within("customers", self.customers, self.queues, 90_000_000)
        _within("failing_of_1024", self.failing_of_1024, 0, 1024)
        _within("commit_log_bytes", self.commit_log_bytes, 64 << 10, (1 << 31) - 1)
        _within("consume_queue_bytes", self.consume_queue_bytes, 20, (1 << 31) - 1)
        _within("hash_slot_num", self.hash_slot_num, 1, 1 << 27)
        _within("index_num", self.index_num, 2, 1 << 26)
        _within("start_ms", self.start_ms, 10**12, 2 * 10**12)
        if self.consume_queue_bytes % 20:
            object.__setattr__(self, "consume_queue_bytes", -(-self.consume_queue_bytes // 20) * 20)
        if not 0 < len(self.cluster) <= MAX_TOPIC_LENGTH:
            raise UsageError(f"cluster {self.cluster!r} is not a valid name", hint="such as DefaultCluster")

    @property
    def groups(self) -> tuple[Group, ...]:
        """The consumer groups of such a day."""
        wanted = zip(ON_REQUEST, ON_REQUEST_GROUPS, strict=True)
        return (*GROUPS, *(group for name, group in wanted if getattr(self, name)))

    @property
    def topics_on_request(self) -> tuple[tuple[str, int], ...]:
        """Topics in addition to orders and stock, with their queues."""
        reminders = [(REMINDERS, REMINDER_QUEUES)] * self.reminders
        return (*reminders, *[(INVOICES, INVOICE_QUEUES)] * self.invoices)

    def changed(self, **fields: Any) -> TrafficModel:
        """The model with other numbers. Raises UsageError for an unknown name."""
        unknown = [name for name in fields if name not in self.__dataclass_fields__]
        if unknown:
            names = ", ".join(self.__dataclass_fields__)
            raise UsageError(f"the traffic model has no number {unknown[0]!r}", hint=f"it has {names}")
        return replace(self, **fields)


def _within(name: str, value: int, least: int, greatest: int) -> None:
    if not isinstance(value, int) or isinstance(value, bool) or not least <= value <= greatest:
        raise UsageError(f"{name} must be a whole number from {least} to {greatest}, got {value!r}")


@dataclass(frozen=True, slots=True)
class Asked:
    """The request for a run: everything that its bytes depend on. Raises UsageError for impossible values.

    ``seal``: secret bytes that replace the seed; without them the run cannot be repeated, nor its events be foretold.
    """

    messages: int
    brokers: int
    seed: int
    model: TrafficModel = field(default_factory=TrafficModel)
    seal: bytes = field(default=b"", repr=False)

    def __post_init__(self) -> None:
        if self.seal and not 16 <= len(self.seal) <= 64:
            raise UsageError(f"a seal has 16 to 64 bytes, got {len(self.seal)}")
        _within("brokers", self.brokers, 1, MOST_BROKERS)
        _within("seed", self.seed, 0, (1 << 64) - 1)
        _within("customers of all brokers", self.model.customers * self.brokers, 1, 90_000_000)
        _within("messages", self.messages, LEAST_MESSAGES * self.brokers, 10**12)

    def broker_name(self, number: int) -> str:
        """broker-a, broker-b, ... broker-z, broker-aa.

        >>> Asked(30_000, 30, 7).broker_name(26)
        'broker-aa'
        """
        letters = ""
        while True:
            letters = chr(ord("a") + number % 26) + letters
            number = number // 26 - 1
            if number < 0:
                return f"broker-{letters}"

    def messages_of(self, broker: int) -> int:
        """How many of the messages one broker stores."""
        return self.messages // self.brokers + (broker < self.messages % self.brokers)

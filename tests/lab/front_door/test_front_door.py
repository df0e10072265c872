"""The front door: what notebooks were promised to be able to write, line by line, in the order of the promise."""

from __future__ import annotations

import signal
from pathlib import Path
from typing import Any

import pytest

from mqlab import (
    COMMIT_MESSAGE,
    CONSUME_SUCCESS,
    RECONSUME_LATER,
    ROLLBACK_MESSAGE,
    SUCCESS,
    SUSPEND_CURRENT_QUEUE_A_MOMENT,
    UNKNOW,
    UNKNOWN,
    Lab,
    Message,
    MessageQueue,
    every_crash,
    play,
)
from mqlab.errors import ClientError, FilterError, UsageError

DRIVERS = [("sim", {}), ("threads", {"speed": 20})]


def billing_story(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    # LAST skips what is stored between "no offset yet" and "then your largest": a race, and RocketMQ's too
    consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")

    def listener(messages: Any, context: Any) -> str:
        context.sleep("20ms")
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    lab.producer("shop", send_msg_timeout=600_000).send(Message("orders", "заказ 订单 💳".encode()))
    lab.run_for("20s")


def test_the_names_of_statuses() -> None:
    names = {CONSUME_SUCCESS, RECONSUME_LATER, SUCCESS, SUSPEND_CURRENT_QUEUE_A_MOMENT, COMMIT_MESSAGE}
    assert len({*names, ROLLBACK_MESSAGE, UNKNOW}) == 7
    assert UNKNOWN == UNKNOW == "UNKNOW"


def test_a_lab_with_everything_set(tmp_path: Path) -> None:
    with Lab(
        brokers=["room1@broker-a", "room2@broker-b"],
        name_servers=2,
        replicas=1,
        directory=tmp_path / "run",
        driver="sim",
        broker={"message_delay_level": "1s 5s 10s", "mapped_file_size_commit_log": 262144},
        memory="4MB",
        network={"latency": "1ms"},
    ) as lab:
        lab.create_topic("orders", read_queue_nums=4, write_queue_nums=4, perm=6, brokers=None)
        assert lab.directory == tmp_path / "run"
        assert lab.broker("room1@broker-a").store.config.mapped_file_size_commit_log == 262144
        assert [slave.name for slave in lab.slaves("room1@broker-a")] == ["room1@broker-a-s1"]
        assert lab.name_server().is_running
        assert lab.store("room1@broker-a").topics() is not None


def test_a_lab_on_existing_stores(tmp_path: Path) -> None:
    with Lab(seed=7, directory=tmp_path / "first") as lab:
        lab.producer("shop").send(Message("orders", b"1", keys="order-1"))
        lab.run_for("1s")
        ended_ms = lab.now_ms
    again = Lab(stores={"broker-a": tmp_path / "first" / "broker-a"})
    assert again.now_ms > ended_ms - 2_000
    assert [message.keys for message in again.admin.query_message("orders", "order-1")] == ["order-1"]


def test_time_and_traffic() -> None:
    lab = Lab(seed=7)
    lab.create_topic("orders")
    producer = lab.producer("shop")
    predicted = lab.upcoming(5)[0]
    record = lab.step()
    assert record is not None and (record.node, record.kind) == (predicted.node, predicted.kind)
    lab.run_for("10s")
    lab.at("90s", lambda: producer.send(Message("orders", b"at 90 s")))
    traffic = lab.traffic(
        producer, rates=[("0s", 5), ("60s", 40)], message=lambda i: Message("orders", f"{i}".encode())
    )
    lab.run_until(lambda: traffic.sent == 10, limit="1h")
    lab.run_until("message.stored", limit="1h")
    lab.run_for("70s")
    assert 5 * 60 + 40 * 10 - 20 <= traffic.sent <= 5 * 60 + 40 * 15
    traffic.stop()
    lab.run_until_quiet(limit="1h")
    assert lab.now_ms - lab.began_ms >= 70_000


def test_traffic_rests_while_its_rate_is_zero() -> None:
    with Lab(seed=7, client={"enable_trace": False}) as lab:
        lab.create_topic("orders")
        rates = [("0s", 2), ("2s", 0), ("4s", 0), ("6s", 1), ("8s", 0), ("9s", 0)]
        began_ms = lab.now_ms
        traffic = lab.traffic(lab.producer("shop"), rates=rates, message=lambda i: Message("orders", b"x"))
        lab.run_for("20s")
        at_ms = [record.now_ms - began_ms for record, _ in lab.journal.changes("message.stored")]
        assert traffic.sent == 6 and [ms // 500 for ms in at_ms] == [0, 1, 2, 3, 12, 14]


@pytest.mark.usefixtures("calls_have_real_time")
def test_actions_traffic_and_faults_under_threads() -> None:
    with Lab(seed=7, driver="threads", speed=20, brokers=2) as lab:
        lab.create_topic("orders")
        producer = lab.producer("shop", send_msg_timeout=600_000)
        done: list[int] = []
        lab.at(f"{lab.now_ms - lab.began_ms + 2_000}ms", lambda: done.append(lab.now_ms))
        traffic = lab.traffic(producer, rates=[("0s", 5)], message=lambda i: Message("orders", f"{i} 订单".encode()))
        lab.run_until(lambda: traffic.sent >= 10 and bool(done), limit="2h")
        traffic.stop()
        for verb in (
            lambda: lab.kill("broker-b"),
            lambda: lab.start("broker-b"),
            lambda: lab.slow("broker-b", "5ms"),
            lambda: lab.partition("broker-a", "nameserver-1"),
            lab.heal,
        ):
            verb()
        told = [change.kind for record in lab.journal for change in record.changes if change.kind.startswith("fault.")]
        assert told == ["fault.killed", "fault.start", "fault.slow", "fault.partition", "fault.heal"]
        with pytest.raises(UsageError, match="needs the simulated driver"):
            lab.step()
        with pytest.raises(UsageError, match="needs the simulated driver"):
            lab.disk_full("broker-a")


def test_faults() -> None:
    lab = Lab(seed=7, brokers=2)
    lab.kill("broker-a")
    lab.start("broker-a")
    lab.power_off(lab.broker("broker-b"))
    lab.start("broker-b")
    lab.partition("broker-a", "nameserver-1")
    lab.heal()
    lab.slow("broker-a", "600ms")
    lab.slow("broker-a", 0)
    lab.drop("broker-a", "nameserver-1", count=1)
    lab.skew_clock("broker-a", "50ms")
    lab.disk_full("broker-a", 0.5)
    lab.slow_disk("broker-a", "1s")
    lab.run_for("1m")
    told = [change.kind for record in lab.journal for change in record.changes if change.kind.startswith("fault.")]
    assert told == [
        "fault.killed",
        "fault.start",
        "fault.powered_off",
        "fault.start",
        "fault.partition",
        "fault.heal",
        "fault.slow",
        "fault.slow",
        "fault.drop",
        "fault.skew_clock",
        "fault.disk_full",
        "fault.slow_disk",
    ]


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_things_to_share(driver: str, more: dict[str, Any]) -> None:
    with Lab(seed=7, driver=driver, **more) as lab:
        share(lab)


def share(lab: Lab) -> None:
    with lab.database("billing").connect() as connection:
        connection.execute("create table paid (id text)")
    lab.resource("db", slots=10)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders")

    def listener(messages: Any, context: Any) -> str:
        with lab.resource("db"):
            context.sleep("20ms")
        with lab.database("billing").connect() as connection:
            connection.execute("insert into paid values (?)", (messages[0].msg_id,))
        return CONSUME_SUCCESS

    consumer.on_messages(listener)
    consumer.start()
    sent = lab.producer("shop", send_msg_timeout=600_000).send(Message("orders", "订单".encode()))
    lab.run_until(lambda: CONSUME_SUCCESS in [row.status for row in lab.deliveries("billing")], limit="5m")
    with lab.database("billing").connect() as connection:
        assert connection.execute("select id from paid").fetchall() == [(sent.msg_id,)]


def test_stories() -> None:
    lab = play(billing_story, seed=7, until_step=30, brokers=3)
    assert lab.journal.next_step == 30
    assert lab.step() is not None
    lab.run_for("30s")
    assert len(lab.deliveries("billing")) == 1
    again = play(billing_story, seed=7, faults={40: lambda lab: lab.kill("billing-1")})
    assert again.journal.of("fault.killed")
    runs = list(every_crash(billing_story, node="billing-1", restart_after="1s"))
    assert len(runs) > 20
    for run in runs:
        assert CONSUME_SUCCESS in [row.status for row in run.deliveries("billing")], str(run.crash_point)


def test_ctrl_c_is_the_notebooks_own_while_a_story_is_paused_and_after_it() -> None:
    before = signal.getsignal(signal.SIGINT)
    lab = play(billing_story, seed=7, until_step=30)
    assert signal.getsignal(signal.SIGINT) is before
    lab.step()
    assert signal.getsignal(signal.SIGINT) is before

    def pressed() -> bool:
        signal.raise_signal(signal.SIGINT)
        return False

    with pytest.raises(KeyboardInterrupt):
        lab.run_until(pressed)
    assert signal.getsignal(signal.SIGINT) is before
    lab.run_for("30s")
    assert signal.getsignal(signal.SIGINT) is before and lab.deliveries("billing")


def test_a_lab_is_rebuilt_from_its_seed_and_story(tmp_path: Path) -> None:
    def kill(lab: Lab) -> None:
        lab.kill("billing-1")

    first = play(billing_story, seed=9, faults={40: kill}, brokers=2, directory=tmp_path / "kept")
    again = first.replay()
    assert again.journal.digest() == first.journal.digest() and again.directory != first.directory
    fork = first.replay(until_step=39, faults={})
    assert fork.journal.next_step == 39 and fork.run_for("1m").deliveries("billing")[-1].status == CONSUME_SUCCESS
    with pytest.raises(UsageError, match="not made by play"):
        Lab().replay()


def test_a_sweep_over_seeds() -> None:
    runs = [play(billing_story, seed=seed) for seed in range(4)]
    assert len({lab.seed for lab in runs}) == 4 and all(lab.verify("billing").is_clean for lab in runs)


def test_the_words_of_the_journal() -> None:
    lab = play(billing_story, seed=7)
    rows = {row.kind: row for row in lab.kinds()}
    assert rows["frame"].of == "step" and rows["frame"].seen == len([r for r in lab.journal if r.kind == "frame"])
    assert rows["message.stored"].of == "change" and rows["message.stored"].meaning
    assert {record.kind for record in lab.journal} <= set(rows)


def test_a_second_consumer_under_one_name_is_refused() -> None:
    lab = Lab(seed=7)
    lab.push_consumer("billing")
    with pytest.raises(ClientError, match="has been created before"):
        lab.push_consumer("billing")
    assert lab.push_consumer("billing", name="billing-2").name == "billing-2"


def test_a_producer_and_a_consumer_may_have_one_group_name() -> None:
    lab = Lab(seed=7)
    assert lab.push_consumer("billing").name == "billing-1"
    producer = lab.producer("billing")
    assert producer.name == "billing-producer-1" and producer.send(Message("orders", b"1")).send_status == "SEND_OK"
    with pytest.raises(ClientError, match=r"producer group.billing. has been created before"):
        lab.producer("billing")
    with pytest.raises(UsageError, match="'broker-a' is taken: broker-a is a broker"):
        lab.producer("shop", name="broker-a")
    with pytest.raises(UsageError, match="'billing-1' is taken"):
        lab.push_consumer("audit", name="billing-1")


@pytest.mark.parametrize(
    ("wrong", "word"),
    [
        ({"topic": "or ders"}, "illegal characters"),
        ({"topic": ""}, "blank"),
        ({"topic": "TBW102"}, "conflict with system topic"),
        ({"perm": 8}, "not within 0 to 7"),
        ({"perm": "rw"}, "perm of topic orders is a whole number"),
        ({"read_queue_nums": "4"}, "read_queue_nums of topic orders is a whole number"),
        ({"write_queue_nums": -1}, "negative number of queues"),
        ({"brokers": ["broker-z"]}, "no broker named 'broker-z'"),
    ],
)
def test_topics_that_cannot_be(wrong: dict[str, Any], word: str) -> None:
    lab = Lab(seed=7)
    with pytest.raises(UsageError, match=word):
        lab.create_topic(**{"topic": "orders", **wrong})
    assert "orders" not in lab.broker().topics


def test_a_restarted_consumer_reads_what_it_was_assigned() -> None:
    lab = Lab(seed=7)
    lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
    producer = lab.producer("shop")
    for number in range(4):
        producer.send(Message("orders", f"заказ {number}".encode(), tags="ab"[number // 2]))
    lite = lab.lite_pull_consumer("audit")
    lite.set_sub_expression_for_assign("orders", "b")
    lite.assign([MessageQueue("orders", "broker-a", 1)])
    lite.start()
    before = [message.body for message in lite.poll()]
    lab.kill(lite)
    lab.start(lite)
    assert lite.assignment() == [MessageQueue("orders", "broker-a", 1)]
    assert [message.body for message in lite.poll()] == before != []


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_producers(driver: str, more: dict[str, Any]) -> None:
    with Lab(seed=7, driver=driver, **more) as lab:
        lab.create_topic("orders")
        producer = lab.producer(
            "shop",
            retry_times_when_send_failed=2,
            send_latency_fault_enable=True,
            mq_fault_strategy=None,
            send_msg_timeout=600_000,
        )
        message = Message(
            "orders", b"...", tags="paid", keys="order-1 ev-2", properties={"region": "eu"}, delay_time_level=3
        )
        result = producer.send(message)
        assert (result.send_status, result.message_queue.topic) == ("SEND_OK", "orders")
        assert result.msg_id and result.offset_msg_id and result.queue_offset >= 0
        chosen = producer.send(
            Message("orders", b"x"), selector=lambda queues, message, arg: queues[arg % len(queues)], arg=17
        )
        assert chosen.message_queue.queue_id == 1
        producer.send_oneway(Message("orders", b"x"))
        assert producer.send_batch([Message("orders", b"1"), Message("orders", b"2")]).send_status == "SEND_OK"
        sending = producer.send_async(Message("orders", b"x"))
        lab.run_until(lambda: sending.done, limit="5m")
        assert sending.result().send_status == "SEND_OK"

        class Bank:
            def execute_local_transaction(self, message: Message, arg: Any) -> str:
                return COMMIT_MESSAGE if arg else ROLLBACK_MESSAGE

            def check_local_transaction(self, message: Message) -> str:
                return UNKNOWN

        pay = lab.transaction_producer("pay", Bank(), send_msg_timeout=600_000)
        assert pay.send_message_in_transaction(Message("orders", b"paid"), True).send_status == "SEND_OK"


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_push_consumers(driver: str, more: dict[str, Any]) -> None:
    with Lab(seed=7, driver=driver, broker={"enable_property_filter": True}, **more) as lab:
        lab.create_topic("orders", read_queue_nums=2, write_queue_nums=2)
        lab.create_topic("audit")
        producer = lab.producer("shop", send_msg_timeout=600_000)
        seen: list[Any] = []

        def listener(messages: Any, context: Any) -> str:
            one = messages[0]
            context.sleep("200ms")
            context.compute("5ms")
            producer.send(Message("audit", b"..."))
            seen.append(
                (
                    one.topic,
                    one.body,
                    one.tags,
                    one.keys,
                    one.properties,
                    one.msg_id,
                    one.offset_msg_id,
                    one.broker_name,
                    one.queue_id,
                    one.queue_offset,
                    one.physical_offset,
                    one.born_timestamp,
                    one.store_timestamp,
                    one.reconsume_times,
                    context.message_queue,
                    context.ack_index,
                    context.delay_level_when_next_consume,
                )
            )
            return CONSUME_SUCCESS

        consumer = lab.push_consumer(
            "billing",
            max_reconsume_times=16,
            cores=2,
            allocate_message_queue_strategy="AVG",
            consume_from_where="CONSUME_FROM_FIRST_OFFSET",
        )
        consumer.subscribe("orders", "paid || shipped")
        consumer.register_message_listener(listener)
        consumer.start()
        by_sql = lab.push_consumer("rich", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        by_sql.subscribe("orders", sql="amount > 10")
        rich: list[str] = []

        def orderly(messages: Any, context: Any) -> str:
            assert context.auto_commit is True and context.suspend_current_queue_time_millis == -1
            rich.extend(message.keys for message in messages)
            return SUCCESS

        by_sql.on_messages_orderly(orderly)
        by_sql.start()
        producer.send(Message("orders", "заказ".encode(), tags="paid", keys="order-1", properties={"amount": "20"}))
        lab.run_until(lambda: bool(seen and rich), limit="5m")
        assert rich == ["order-1"] and seen[0][1].decode() == "заказ"
        assert (consumer.name, consumer.client_id.endswith("@billing-1")) == ("billing-1", True)
        queue = next(queue for queue in consumer.message_queues if queue.topic == "orders")
        assert consumer.process_queues[queue].msg_count >= 0 and consumer.offset_store is not None
        consumer.suspend()
        consumer.resume()
        consumer.shutdown()


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_a_listener_may_end_another_process_and_its_own(driver: str, more: dict[str, Any]) -> None:
    with Lab(seed=7, driver=driver, **more) as lab:
        lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
        victim = lab.producer("victim")
        seen: list[str] = []

        def listener(messages: Any, context: Any) -> str:
            seen.append(messages[0].body.decode())
            if seen == ["убей другого"]:
                lab.kill(victim)
            elif seen.count("убей себя") == 1:
                lab.kill("billing-1")
                seen.append("жив")
            return CONSUME_SUCCESS

        consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
        consumer.subscribe("orders")
        consumer.on_messages(listener)
        consumer.start()
        producer = lab.producer("shop", send_msg_timeout=600_000)
        producer.send(Message("orders", "убей другого".encode()))
        lab.run_until(lambda: [row.status for row in lab.deliveries("billing")] == [CONSUME_SUCCESS], limit="10m")
        assert not victim.is_up
        producer.send(Message("orders", "убей себя".encode()))
        lab.run_until(lambda: not consumer.is_up, limit="10m")
        lab.start(consumer)
        lab.run_until(lambda: seen.count("убей себя") == 2, limit="10m")
        assert "жив" not in seen


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_pull_consumers(driver: str, more: dict[str, Any]) -> None:
    with Lab(seed=7, driver=driver, **more) as lab:
        pull_and_poll(lab)


def pull_and_poll(lab: Lab) -> None:
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop", send_msg_timeout=600_000)
    for tag in ("rare", "common", "rare"):
        producer.send(Message("orders", tag.encode(), tags=tag))
    lab.run_for("1s")
    puller = lab.pull_consumer("audit")
    result = puller.pull(MessageQueue("orders", "broker-a", 0), "rare", 0, max_nums=32)
    assert (result.pull_status, result.next_begin_offset, result.min_offset, result.max_offset) == ("FOUND", 3, 0, 3)
    assert ([message.tags for message in result.msg_found_list], result.filtered_count) == (["rare", "rare"], 0)
    lite = lab.lite_pull_consumer("lite")
    lite.subscribe("orders", "*")
    lite.start()
    polled: list[Any] = []
    for _ in range(20):
        polled += lite.poll() if len(polled) < 3 else []
    assert len(polled) == 3
    queue = MessageQueue("orders", "broker-a", 0)
    lite.seek(queue, 1)
    lite.pause([queue])
    lite.resume([queue])
    lite.commit_sync()
    assert lab.lite_pull_consumer("assigned").assign([queue]) is None
    scheduled: list[Any] = []

    def task(queue: MessageQueue, context: Any) -> None:
        consumer = context.pull_consumer
        offset = max(consumer.fetch_consume_offset(queue), 0)
        result = consumer.pull(queue, "*", offset)
        scheduled.extend(result.msg_found_list)
        consumer.update_consume_offset(queue, result.next_begin_offset)
        context.pull_next_delay_time_millis = "500ms"

    service = lab.pull_consumer_schedule_service("scheduled")
    service.register_pull_task_callback("orders", task)
    service.start()
    lab.run_until(lambda: len(scheduled) == 3, limit="10m")
    assert [row.topic for row in lab.progress("scheduled")] == ["orders"]
    service.shutdown()


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_what_happened(driver: str, more: dict[str, Any]) -> None:
    with play(billing_story, seed=7, driver=driver, **more) as lab:
        look(consumed(lab), exact=driver == "sim")


def consumed(lab: Lab) -> Lab:
    """The Lab when its one order is done, however busy the machine is."""
    return lab.run_until(lambda: CONSUME_SUCCESS in [row.status for row in lab.deliveries("billing")], limit="10m")


def look(lab: Lab, *, exact: bool) -> None:
    journal = lab.journal
    assert journal[0].step == 0 and journal.of("message.stored") and len(journal.digest()) == 64
    assert len(journal.to_pandas()) <= len(journal)
    (row,) = lab.deliveries("billing")
    assert row.status == CONSUME_SUCCESS and row.reconsume_times == 0
    assert row.ended_ms - row.started_ms == 20 if exact else row.ended_ms >= row.started_ms
    assert {"msg_id", "message_queue", "queue_offset", "client"} <= set(lab.deliveries("billing").columns)
    progress = lab.progress("billing").to_pandas()
    wanted = ["broker_offset", "consumer_offset", "pull_offset", "lag", "inflight", "client", "last_timestamp"]
    assert set(wanted) <= set(progress.columns)
    found = [pull for pull in lab.pulls("billing") if pull.found]
    assert [(pull.from_offset, pull.next_offset, pull.found, pull.filter_text) for pull in found] == [(0, 1, (0,), "*")]
    before = lab.snapshot()
    lab.handles["shop-1"].send(Message("orders", b"x"))
    assert any("commit log end" in change.what for change in lab.changes(before))
    pictures = lab.timeline(), lab.timeline(row.msg_id), lab.space_time(), lab.offset_strip("billing"), lab.diagram()
    for picture in pictures:
        assert str(picture) and "<" in picture.html() and len(picture.table()) == len(picture.to_pandas())
    broker = lab.broker("broker-a")
    for table in (broker.topics, broker.offset_table, broker.queue_locks, broker.held_pulls, broker.delay_offset_table):
        assert repr(table).startswith("<")
    assert lab.verify("billing").is_clean


@pytest.mark.parametrize(("driver", "more"), DRIVERS)
def test_the_admins_verbs(driver: str, more: dict[str, Any]) -> None:
    with play(billing_story, seed=7, driver=driver, **more) as lab:
        admin = consumed(lab).admin
        admin.timeout_ms = 600_000
        assert len(admin.examine_topic_route_info("orders").queue_datas) == 1
        assert admin.examine_consume_stats("billing").total_diff >= 0
        assert [each.client_id for each in admin.examine_consumer_connection_info("billing").connections]
        admin.update_topic("orders", read_queue_nums=2, write_queue_nums=2)
        assert lab.broker().topics["orders"].read_queue_nums == 2
        assert admin.wipe_write_perm("broker-a")[0].topics_changed > 0
        plan = admin.reset_offset_by_timestamp("orders", "billing", 0, dry_run=True)
        assert not plan.applied and "live" in " ".join(plan.warnings)
        assert admin.skip_accumulated_message("orders", "billing").applied
        assert len(admin.resend_dlq("billing")) == 0 and len(admin.query_message("orders", "no-such-key")) == 0
        admin.delete_expired_commit_log()


def test_a_bounded_journal_keeps_its_digest_and_the_deliveries() -> None:
    whole, bounded = play(billing_story, seed=7), play(billing_story, seed=7, journal_limit=40)
    journal = bounded.journal
    assert len(list(journal)) <= 51 and journal.dropped == len(journal) - len(list(journal))
    assert journal.digest() == whole.journal.digest()
    assert bounded.deliveries("billing") == whole.deliveries("billing")
    assert f"{journal.dropped} dropped" in repr(journal)
    assert f"from step {journal.dropped} on" in str(bounded.timeline())
    assert f"the first {journal.dropped} steps were dropped" in str(bounded.verify("billing"))


def test_all_that_a_delivery_can_say() -> None:
    """The statuses of listeners, and the four absences."""
    lab = Lab(seed=7, client={"enable_trace": False})
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    producer = lab.producer("shop")
    for tags in ("paid", "new", "Aa", "BB"):  # Aa and BB have one hash
        producer.send(Message("orders", b"x", tags=tags))
    lab.run_for("1s")
    consumer = lab.push_consumer("billing", consume_from_where="CONSUME_FROM_FIRST_OFFSET")
    consumer.subscribe("orders", "paid || BB")
    consumer.on_messages(lambda messages, context: (context.sleep("1m"), CONSUME_SUCCESS)[1])
    consumer.start()
    lab.run_for("20s")
    told = {row.queue_offset: row.status for row in lab.deliveries("billing")}
    assert told == {0: "RUNNING", 1: "FILTERED_BY_BROKER", 2: "FILTERED_BY_CLIENT", 3: "RUNNING"}
    lab.admin.reset_offset_by_timestamp("orders", "billing", 0)  # the queue is dropped under the running listeners
    lab.run_for("90s")
    assert "RESULT_DISCARDED" in {row.status for row in lab.deliveries("billing")}
    lab.kill(consumer)
    producer.send(Message("orders", b"x", tags="paid"))
    lab.run_for("1s")
    assert lab.deliveries("billing")[-1].status == "NOT_PULLED"


def test_an_exception_in_a_listener_is_in_the_delivery() -> None:
    lab = Lab(seed=7)
    lab.create_topic("orders", read_queue_nums=1, write_queue_nums=1)
    consumer = lab.push_consumer("billing")
    consumer.subscribe("orders")

    def listener(messages: Any, context: Any) -> str:
        raise ValueError("не тот заказ 订单")

    consumer.on_messages(listener)
    consumer.start()
    lab.producer("shop").send(Message("orders", b"x"))
    assert "error" not in lab.deliveries("billing").columns
    lab.run_for("5s")
    (row,) = lab.deliveries("billing", absences=False)
    assert row.status == RECONSUME_LATER and "не тот заказ 订单" in row.error and "in listener" in row.error
    assert "mqlab/rocketmq/client" not in row.error and "ValueError" in str(lab.deliveries("billing"))


def test_what_cannot_be_seen_is_named() -> None:
    lab = play(billing_story, seed=7, brokers=2)
    assert "not here" not in str(lab.progress("billing"))
    lab.kill("broker-b")
    assert {row.broker for row in lab.progress("billing")} == {"broker-a"}
    for shown in (lab.progress("billing"), lab.offset_strip("billing")):
        assert "(not here: broker-b (killed))" in str(shown)
    assert "(not here: broker-b (killed))" in lab.offset_strip("billing").html()


def test_wrong_questions_are_told_so() -> None:
    lab = play(billing_story, seed=7)
    with pytest.raises(UsageError, match=r"no step or change is called 'mesage\.stored'"):
        lab.run_until("mesage.stored")
    with pytest.raises(UsageError, match=r"message\.stored"):
        lab.journal.of("messages.stored")
    for shown in (lab.deliveries("typo"), lab.progress("typo")):
        assert "no consumer of this Lab is in group 'typo'; its groups are ['billing']" in str(shown)
    assert "no such group" in str(lab.verify("typo"))
    assert str(lab.timeline("nope")) == "no message 'nope' in these steps: nothing happened"
    assert str(lab.offset_strip("typo")) == "offsets of typo: no queues"
    with pytest.raises(UsageError, match="from itself"):
        lab.partition("broker-a", "broker-a")
    lab.kill("broker-a")
    with pytest.raises(UsageError, match=r"broker-a \(killed\) is down already"):
        lab.kill("broker-a")


def test_predictions_are_noted_before_the_run(monkeypatch: pytest.MonkeyPatch) -> None:
    from mqlab.course import check, hint, predict, reveal
    from mqlab.course.teach import predictions

    monkeypatch.setattr(predictions, "_noted", {})
    assert "Noted" in str(predict("lab00.after_ack", 3))
    assert "nothing is removed" in str(predict("lab00.after_ack", 3))
    predict("lab00.after_ack", 0)
    assert reveal("lab00.after_ack", 3).state == "bad"
    assert "You have seen the run" in str(predict("lab00.after_ack", 3))
    assert len(str(hint("lab00.find"))) > 20
    assert callable(check)


def test_a_store_on_its_own(tmp_path: Path) -> None:
    from mqlab.lab.inspector import StoreInspector
    from mqlab.rocketmq.store import MessageStore

    with MessageStore.open(str(tmp_path / "dir"), mapped_file_size_commit_log=262144) as store:
        for number in range(6):
            put = store.put(Message("orders", f"订单 {number}".encode(), keys=f"order-{number}"))
        assert len(store.get("orders", queue_id=0, queue_offset=5, max_nums=32, sub_expression="*").messages()) == 1
        assert len(store.query("orders", key="order-1", max_nums=64, begin_ms=0, end_ms=1 << 60).records) == 1
        assert 0 <= store.search_offset("orders", 0, put.store_timestamp, boundary="lower") <= 5
    inspector = StoreInspector(tmp_path / "dir")
    assert len(list(inspector.messages())) == 6
    assert inspector.queue("orders", 0).max_offset == 6
    assert inspector.index_files() and inspector.checkpoint() is not None
    assert "commitlog" in str(inspector.tree()) and "orders" in str(inspector.hexdump(0))


def test_strategies_and_filters_on_their_own() -> None:
    from mqlab.rocketmq.client.allocate import strategy
    from mqlab.rocketmq.filter import sql
    from mqlab.rocketmq.wire import command, java_hash, record

    queues = [MessageQueue("orders", "broker-a", number) for number in range(8)]
    members = ["10.0.0.1@a", "10.0.0.2@b", "10.0.0.3@c"]
    rooms = strategy("MACHINE_ROOM", consumeridcs=["room1"]), strategy("CONFIG", message_queue_list=queues[:2])
    assert [each.name for each in rooms] == ["MACHINE_ROOM", "CONFIG"]
    assert rooms[1].allocate("billing", members[0], queues, members) == queues[:2]
    with pytest.raises(UsageError, match="machine_room_resolver"):
        strategy("MACHINE_ROOM_NEARBY", inner="AVG")
    for name in ("AVG", "AVG_BY_CIRCLE", "CONSISTENT_HASH"):
        shares = [strategy(name).allocate("billing", member, queues, members) for member in members]
        assert sorted(queue for share in shares for queue in share) == queues
    assert strategy("CONSISTENT_HASH", virtual_node_cnt=20) is not None
    assert sql.compile("a > 1 AND name IN ('x')").evaluate({"a": "2"}) is None
    assert sql.compile("a > 1").evaluate({"a": "2"}) is True
    with pytest.raises(FilterError):
        sql.compile("a >")
    assert java_hash.string_hash("订单") and command.request(11).code == 11 and record.MAGIC_V1

"""A day's tables once more, by DuckDB over the Arrow kernel: no Spark, no Parquet, other queries.

    read_table(stores) ── units ──▶ messages, entries ──▶ calls ──▶ life ──▶ facts          times in ms

Left out: entries of the trace that cannot be parsed; groups that only the trace knows.
"""

from __future__ import annotations

import contextlib
from pathlib import Path
from typing import Any

import duckdb
import pyarrow

from mqlab.data.arrow import read_table
from mqlab.lab.inspector import StoreInspector
from mqlab.rocketmq.wire import names

UNITS = (
    "broker_name",
    "topic",
    "queue_id",
    "queue_offset",
    "physical_offset",
    "msg_id",
    "tags",
    "keys",
    "body",
    "born_timestamp",
    "store_timestamp",
    "total_size",
    "properties",
    "born_host",
)

MESSAGES = f"""
create table messages as
with meant as (
    select *, epoch_ms(born_timestamp) as born, epoch_ms(store_timestamp) as stored,
        topic = '{names.SCHEDULE_TOPIC}' as parked,
        if(topic in ('{names.SCHEDULE_TOPIC}', '{names.HALF_TOPIC}'),
           map_extract_value(properties, 'REAL_TOPIC'), topic) as meant
    from units
), kinds as (
    select *, case
        when topic = '{names.HALF_TOPIC}' then 'half'
        when meant like '\\%RETRY\\%%' escape '\\' then 'retry'
        when meant like '\\%DLQ\\%%' escape '\\' then 'dead'
        when meant = '{names.TRACE_TOPIC}' then 'trace'
        when meant = '{names.OP_HALF_TOPIC}' then 'op'
        when meant is null or meant in {names.SYSTEM_TOPICS} or starts_with(meant, 'rmq_sys_') then 'system'
        else 'normal' end as kind
    from meant
)
select broker_name, topic, queue_id, queue_offset, physical_offset, kind, parked, msg_id, tags, born, stored,
    case when kind in ('retry', 'dead') then map_extract_value(properties, 'RETRY_TOPIC')
         when kind in ('normal', 'half') then meant end as user_topic,
    if(kind in ('retry', 'dead'), regexp_extract(meant, '^%(RETRY|DLQ)%(.*)$', 2), null) as consumer_group,
    if(kind = 'trace', '', coalesce(keys, '')) as keys, total_size as size
from kinds
"""

ENTRIES = f"""
create table entries as
with pieces as (
    select broker_name, physical_offset, msg_id as trace_msg_id,
        regexp_replace(born_host, ':[0-9]+$', '') as client,
        unnest(string_split(decode(body), chr(2))) as entry,
        generate_subscripts(string_split(decode(body), chr(2)), 1) as position
    from units where topic = '{names.TRACE_TOPIC}'
), first_copies as (  -- of a trace message that its sender stored twice
    select trace_msg_id, min((broker_name, physical_offset)) as place from pieces group by all
)
select pieces.*, string_split(entry, chr(1)) as f,
    row_number() over (partition by broker_name, physical_offset, entry order by position) - 1 as repeat,
    (broker_name, physical_offset) = place as is_first
from pieces join first_copies using (trace_msg_id) where entry != ''
"""

CALLS = """
create table calls as
with before as (
    select f[5] as request_id, f[6] as msg_id, if(f[8] = 'null', '', f[8]) as keys, repeat, f[4] as consumer_group,
        f[2]::bigint as started, f[7]::int as retry_times, client
    from entries where f[1] = 'SubBefore' and is_first
), after as (
    select f[2] as request_id, f[3] as msg_id, if(f[6] = 'null', '', f[6]) as keys, repeat, f[8]::bigint as ended,
        f[4]::bigint as cost_ms, f[5] = 'true' as success,
        ['SUCCESS', 'TIME_OUT', 'EXCEPTION', 'RETURNNULL', 'FAILED'][f[7]::int + 1] as status
    from entries where f[1] = 'SubAfter' and is_first
)
select consumer_group, msg_id, keys, request_id, retry_times, client, started, ended, cost_ms, success,
    coalesce(status, 'NO_RESULT') as status
from before left join after using (request_id, msg_id, keys, repeat)
"""

READERS = """
create table readers as
select distinct topic, consumer_group, consumer_group in (select consumer_group from calls) as traced
from offsets where not starts_with(topic, '%RETRY%') and not starts_with(topic, '%DLQ%')
"""

# One row per id and keys: the first readable unit. Neighbours of one send are members, others copies.
STORED = """
create table stored as
with ordered as (
    select *, row_number() over same as place,
        coalesce((broker_name, queue_id, born) != lag((broker_name, queue_id, born)) over same, true) as begins
    from messages where kind = 'normal'
    window same as (partition by msg_id, keys order by parked, stored, broker_name, queue_id, queue_offset)
)
select msg_id, keys, count(*) as units, greatest(1, count_if(begins and not parked)) as copies,
    greatest(1, count_if(not parked) // greatest(1, count_if(begins and not parked))) as members,
    unnest(min_by(
        struct_pack(user_topic, tags, broker_name, queue_id, queue_offset, born, stored, size, parked), place))
from ordered group by msg_id, keys
"""

LIFE = """
create table life as
with called as (
    select msg_id, keys, consumer_group, count(*) as attempts, count_if(success and ended is not null) as successes,
        count_if(not success and ended is not null) as failures, count_if(ended is null) as no_results,
        count(distinct coalesce(retry_times, 0)) as levels, min(started) as first_started, min(ended) as first_ended,
        min(ended) filter (success) as consumed, max(started) as last_started, sum(cost_ms) as busy_ms
    from calls group by all
), given_back as (
    select m.msg_id, m.keys, m.consumer_group, count_if(kind = 'retry' and not parked) as retries_stored,
        count_if(kind = 'retry' and not parked and queue_offset < consumer_offset) as retries_past,
        count_if(parked) as parked_retries, count_if(kind = 'dead') as died
    from messages m left join offsets using (broker_name, topic, queue_id, consumer_group)
    where kind in ('retry', 'dead') group by all
), reads as (
    select distinct user_topic as topic, calls.consumer_group, coalesce(tags, '') as tag
    from calls join messages using (msg_id) where kind = 'normal' and not parked
), joined as (
    select s.*, s.user_topic as topic, r.consumer_group, coalesce(r.traced, false) as traced,
        coalesce(queue_offset < consumer_offset, false) as past,
        (s.user_topic, r.consumer_group, coalesce(tags, '')) in (from reads) as reads_tag,
        first_started, first_ended, consumed, last_started, busy_ms, coalesce(levels, 0) as levels,
        columns(['attempts', 'successes', 'failures', 'no_results', 'retries_stored', 'retries_past', 'parked_retries',
                 'died'])
    from stored s left join readers r on r.topic = s.user_topic
    left join called c on (c.msg_id, c.keys, c.consumer_group) = (s.msg_id, s.keys, r.consumer_group)
    left join given_back g on (g.msg_id, g.keys, g.consumer_group) = (s.msg_id, s.keys, r.consumer_group)
    left join offsets o on (o.broker_name, o.topic, o.queue_id, o.consumer_group)
        = (s.broker_name, s.user_topic, s.queue_id, r.consumer_group)
), counted as (
    select * replace (coalesce(attempts, 0) as attempts, coalesce(successes, 0) as successes,
        coalesce(failures, 0) as failures, coalesce(no_results, 0) as no_results,
        coalesce(retries_stored, 0) as retries_stored, coalesce(retries_past, 0) as retries_past,
        coalesce(parked_retries, 0) as parked_retries, coalesce(died, 0) as died)
    from joined
), causes as (
    select *, greatest(0, attempts - members) as extra,
        least(extra, (copies - 1) * members) as again_resend,
        least(extra - again_resend, greatest(0, levels - 1) * members) as again_retry,
        least(extra - again_resend - again_retry, no_results) as again_no_result,
        extra - again_resend - again_retry - again_no_result as again,
        coalesce(last_started - consumed > 60000, false) as late
    from counted
)
select topic, consumer_group, msg_id, keys, tags, broker_name, queue_id, queue_offset, born, stored, size, members,
    copies, traced,
    case when parked then 'waiting' when successes > 0 then 'consumed' when died > 0 then 'dead'
         when attempts + retries_stored + parked_retries > 0 or not past then 'pending'
         when not traced then 'untraced' when reads_tag then 'lost' else 'filtered' end as outcome,
    attempts, if(traced and reads_tag and past and not parked, members + retries_past, 0) as calls_implied,
    successes, failures, no_results, levels, retries_stored,
    units + retries_stored + parked_retries + died as units_stored,
    first_started, first_ended, consumed, last_started, busy_ms, first_started - stored as wait_ms,
    consumed - stored as latency_ms, again_resend, again_retry, again_no_result,
    if(late, 0, again) as again_soon, if(late, again, 0) as again_late
from causes
"""

TO_CONSUME = "outcome in ('consumed', 'dead', 'pending')"
NOT_YET = (1 << 63) - 1


def _percentiles(value: str) -> str:
    """A message that is not consumed yet counts as the slowest: a percentile that falls on it is null."""
    ranked = f"list_sort(list(coalesce({value}, {NOT_YET})) filter ({TO_CONSUME}))"
    shares = (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
    places = ((name, f"greatest(1, ceil({share} * count_if({TO_CONSUME})))::int") for name, share in shares)
    return ", ".join(f"nullif({ranked}[{place}], {NOT_YET}) as {name}_{value}" for name, place in places)


OUTCOMES = ("consumed", "dead", "pending", "filtered", "lost", "untraced", "waiting")
CAUSES = ("resend", "retry", "no_result", "soon", "late")
FACTS = {
    "traffic": """
        select stored // $stretch * $stretch as stretch, user_topic as topic, tags, count(*) as messages,
            sum(size) as bytes
        from messages where kind = 'normal' and not parked group by all
    """,
    "queues": """
        select broker_name, topic, min(kind) as kind, queue_id, count(*) as messages, sum(size) as bytes,
            min(queue_offset) as min_offset, max(queue_offset) + 1 as max_offset, min(stored) as first_stored,
            max(stored) as last_stored, count(*) / sum(count(*)) over (partition by topic) as share,
            share * count(*) over (partition by topic) as skew
        from messages group by broker_name, topic, queue_id
    """,
    "groups": f"""
        select topic, consumer_group, sum(members) as messages,
            {", ".join(f"sum(if(outcome = '{one}', members, 0)) as {one}" for one in OUTCOMES)},
            sum(attempts) as attempts, sum(failures) as failures, sum(no_results) as no_results,
            sum(calls_implied) as calls_implied, sum(least(attempts, calls_implied)) as calls_told,
            calls_told / nullif(sum(calls_implied), 0) as coverage,
            sum(attempts) / sum(members) filter (attempts > 0) as amplification,
            sum(units_stored) / sum(members) as storage_amplification, {_percentiles("wait_ms")},
            {_percentiles("latency_ms")}, max(latency_ms) as max_latency_ms
        from life where consumer_group is not null group by topic, consumer_group
    """,
    "group_tags": """
        select topic, consumer_group, tags, sum(members) as messages,
            sum(if(attempts > 0, members, 0)) as delivered, sum(if(outcome = 'filtered', members, 0)) as filtered,
            sum(if(outcome = 'lost', members, 0)) as lost, sum(if(outcome = 'dead', members, 0)) as dead,
            sum(if(outcome = 'pending', members, 0)) as pending, delivered / sum(members) as delivered_share
        from life where traced group by topic, consumer_group, tags
    """,
    "latency": f"""
        select stored // $stretch * $stretch as stretch, topic, consumer_group, sum(members) as messages,
            sum(if(outcome = 'consumed', members, 0)) as consumed, {_percentiles("latency_ms")}
        from life where traced and {TO_CONSUME} group by 1, 2, 3
    """,
    "backlog": f"""
        with events as (
            select topic, consumer_group, stored // $stretch * $stretch as stretch, members as came, 0 as went
            from life where traced and {TO_CONSUME}
            union all
            select topic, consumer_group, first_ended // $stretch * $stretch, 0, members
            from life where traced and {TO_CONSUME} and first_ended is not null
        ), spans as (
            select topic, consumer_group, min(stretch) as first, max(stretch) as last from events group by all
        ), every as (
            select topic, consumer_group, unnest(range(first, last + 1, $stretch)) as stretch from spans
        )
        select stretch, topic, consumer_group, coalesce(sum(came), 0) as stored, coalesce(sum(went), 0) as done,
            sum(coalesce(sum(came), 0) - coalesce(sum(went), 0)) over (
                partition by topic, consumer_group order by stretch) as behind
        from every left join events using (topic, consumer_group, stretch) group by stretch, topic, consumer_group
    """,
    "duplicates": " union all ".join(
        f"""select topic, consumer_group, '{cause}' as cause, count(*) as messages, sum(again_{cause}) as deliveries
        from life where again_{cause} > 0 group by all"""
        for cause in CAUSES
    ),
    "lag": """
        select o.broker_name, o.topic, o.consumer_group, o.queue_id,
            greatest(consumer_offset, coalesce(ends, 0)) as broker_offset, consumer_offset,
            broker_offset - consumer_offset as lag, if(lag > 0, m.stored, null) as next_stored,
            if(lag > 0, log_end - m.stored, 0) as behind_ms
        from offsets o
        left join (select broker_name, topic, queue_id, max(queue_offset) + 1 as ends from messages group by all) q
            on (q.broker_name, q.topic, q.queue_id) = (o.broker_name, o.topic, o.queue_id)
        left join (select broker_name, max(stored) as log_end from messages group by all) b
            on b.broker_name = o.broker_name
        left join messages m on (m.broker_name, m.topic, m.queue_id, m.queue_offset)
            = (o.broker_name, o.topic, o.queue_id, o.consumer_offset)
    """,
    "calls": f"""
        select started // $stretch * $stretch as stretch, consumer_group, client, count(*) as calls,
            count(*) filter (not success) as failures, count_if(ended is null) as no_results,
            count(*) filter (retry_times > 0) as retries, coalesce(sum(cost_ms), 0) as busy_ms,
            {
        ", ".join(
            f"quantile_disc(cost_ms, {share}) as {name}_cost_ms"
            for name, share in (("p50", 0.5), ("p90", 0.9), ("p99", 0.99))
        )
    }
        from calls group by 1, 2, 3
    """,
    "producers": """
        select f[4] as producer_group, f[5] as topic, count(*) as sends, count_if(f[-2] = 'false') as failures
        from entries where f[1] = 'Pub' group by all
    """,
}


def tables_of(stores: Path, stretch_ms: int) -> dict[str, list[dict[str, Any]]]:
    """The rows of messages, calls (deliveries), life and FACTS of the stores under a folder."""
    with duckdb.connect() as duck:
        duck.register("units", read_table(stores, UNITS))
        duck.register("offsets", _offsets(stores))
        for statement in (MESSAGES, ENTRIES, CALLS, READERS, STORED, LIFE):
            duck.execute(statement)
        made = {name: f"from {name}" for name in ("messages", "life")} | {"deliveries": "from calls"}
        queries = made | {name: query.replace("$stretch", str(stretch_ms)) for name, query in FACTS.items()}
        return {name: duck.sql(query).to_arrow_table().to_pylist() for name, query in queries.items()}


def _offsets(stores: Path) -> pyarrow.Table:
    rows = []
    for store in sorted(path for path in stores.iterdir() if path.is_dir()):
        with contextlib.closing(StoreInspector(store)) as inspector:
            table = (inspector.config("consumerOffset.json") or {}).get("offsetTable", {})
        for key, queues in table.items():
            topic, _, group = key.rpartition("@")
            rows += [
                {
                    "broker_name": store.name,
                    "topic": topic,
                    "consumer_group": group,
                    "queue_id": int(queue),
                    "consumer_offset": offset,
                }
                for queue, offset in queues.items()
            ]
    return pyarrow.Table.from_pylist(rows)

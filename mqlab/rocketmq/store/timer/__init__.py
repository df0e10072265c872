"""Timed messages: they wait in one topic, a wheel of slots says when each is due, and a log links them slot by slot.

Mirrors: org.apache.rocketmq.store.timer.

    rmq_sys_wheel_timer ──▶ enqueue ──▶ timer log  ◀── slot (first, last) ──  wheel
         ▲  roll                          │ previous
         └──────────── dequeue ◀──────────┘ ──▶ the message's real topic

    timerwheel   timerlog/00000000000000000000   config/timercheck   config/timermetrics

``TimerMessageStore`` is the service of a broker.
Left out: the threads between these steps, the warm-up, the check of the metrics at 5 o'clock.
"""

from mqlab.rocketmq.store.timer.timer_message_store import TimerMessageStore

__all__ = ["TimerMessageStore"]

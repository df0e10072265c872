import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.common.UtilAll;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** Behaviours of ClientDoor in which a group's offsets and failures are looked at: where it starts, what comes again, and when. */
class GroupBehaviours {
    private static final long[] LEVELS = {0, 1_000, 5_000, 10_000};

    static void addTo(Map<String, ClientDoor.Behaviour> all) {
        all.put("orderly with limits", GroupBehaviours::orderlyWithLimits);
        all.put("send-back levels", GroupBehaviours::sendBackLevels);
        all.put("resets", GroupBehaviours::resets);
        all.put("first offsets", GroupBehaviours::firstOffsets);
        all.put("broadcasting restart", GroupBehaviours::broadcastingRestart);
        all.put("consume timeout", GroupBehaviours::consumeTimeout);
    }

    /** One queue, the second message always fails: the others wait, it is tried thrice, it dies, the others go on. */
    private static Object orderlyWithLimits() throws Exception {
        ClientDoor.send("limits", "l", 5, "limit-");
        List<String> calls = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = ClientDoor.consumer("door-limits");
        consumer.setMaxReconsumeTimes(2);
        consumer.setSuspendCurrentQueueTimeMillis(500);
        consumer.subscribe("door-limits", "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            MessageExt m = messages.get(0);
            calls.add(m.getKeys() + " try " + m.getReconsumeTimes());
            return m.getKeys().equals("limit-01") ? ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT : ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        reached(calls, 7);
        TreeSet<String> dead = new TreeSet<>();
        ClientDoor.started(ClientDoor.consumer("door-limits-dead"), "%DLQ%door-limits", "*", dead, 1);
        consumer.shutdown();
        return List.of(calls, dead);
    }

    /** Each message asks for its own delay level when it fails: -1 dies at once, 0 lets the broker choose. */
    private static Object sendBackLevels() throws Exception {
        for (int level = -1; level <= 3; level++) {
            ClientDoor.send("levels", "l", 1, "level_" + level + "_");
        }
        Map<String, Long> failed = new ConcurrentSkipListMap<>();
        TreeSet<String> again = new TreeSet<>();
        DefaultMQPushConsumer consumer = ClientDoor.consumer("door-levels");
        consumer.subscribe("door-levels", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt m = messages.get(0);
            if (m.getReconsumeTimes() == 0) {
                failed.put(m.getKeys(), System.currentTimeMillis());
                context.setDelayLevelWhenNextConsume(level(m));
                return ConsumeConcurrentlyStatus.RECONSUME_LATER;
            }
            long waited = System.currentTimeMillis() - failed.get(m.getKeys());
            long least = level(m) == 0 ? LEVELS[3] : LEVELS[level(m)];
            synchronized (again) {
                again.add(m.getKeys() + " in " + m.getTopic() + " after " + m.getReconsumeTimes() + (waited >= least - 50 ? ", in time" : ", early"));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        ClientDoor.settled(again, 4);
        TreeSet<String> dead = new TreeSet<>();
        ClientDoor.started(ClientDoor.consumer("door-levels-dead"), "%DLQ%door-levels", "*", dead, 1);
        consumer.shutdown();
        return List.of(again, dead);
    }

    private static int level(MessageExt m) {
        return Integer.parseInt(m.getKeys().split("_")[1]);
    }

    /** A running group is sent back to the beginning, then, with a stopped listener's backlog, to the end. */
    private static Object resets() throws Exception {
        List<String> calls = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer consumer = counting("door-resets", "door-resets", calls);
        ClientDoor.send("resets", "r", 8, "reset-");
        consumer.start();
        reached(calls, 8);
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(ClientDoor.nameServer);
        admin.setInstanceName("door-resets-admin");
        admin.start();
        List<Object> found = new ArrayList<>();
        found.add(times(calls));
        found.add(sorted(admin.resetOffsetByTimestamp("door-resets", "door-resets", 0, true)));
        reached(calls, 16);
        found.add(times(calls));
        consumer.shutdown(); // its offsets are committed
        Thread.sleep(1_000);
        ClientDoor.send("resets", "r", 4, "skipped-");
        try { // nobody is there to be told
            found.add(sorted(admin.resetOffsetByTimestamp("door-resets", "door-resets", -1, true)));
        } catch (Exception error) {
            found.add(error.toString().replaceAll("(CODE: \\d+).*", "$1").replace('\n', ' '));
            found.add(admin.resetOffsetByTimestampOld("door-resets", "door-resets", -1, true).stream().mapToLong(each -> each.getRollbackOffset()).sum());
        }
        DefaultMQPushConsumer second = counting("door-resets", "door-resets", calls);
        second.setInstanceName("door-resets-again");
        second.start();
        Thread.sleep(6_000);
        ClientDoor.send("resets", "r", 2, "after-");
        reached(calls, 18);
        found.add(times(calls));
        second.shutdown();
        admin.shutdown();
        return found;
    }

    /** Where a group without offsets begins, in a topic that has messages: both ends and a time between. */
    private static Object firstOffsets() throws Exception {
        ClientDoor.send("first", "f", 4, "early-");
        Thread.sleep(2_100);
        String between = UtilAll.timeMillisToHumanString3(System.currentTimeMillis());
        Thread.sleep(2_100);
        ClientDoor.send("first", "f", 4, "late-");
        List<DefaultMQPushConsumer> started = new ArrayList<>();
        Map<String, TreeSet<String>> got = new TreeMap<>();
        for (ConsumeFromWhere where : List.of(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET, ConsumeFromWhere.CONSUME_FROM_LAST_OFFSET, ConsumeFromWhere.CONSUME_FROM_TIMESTAMP)) {
            TreeSet<String> keys = new TreeSet<>();
            got.put(where.name(), keys);
            DefaultMQPushConsumer consumer = ClientDoor.consumer("door-" + where);
            consumer.setConsumeFromWhere(where);
            consumer.setConsumeTimestamp(between);
            consumer.subscribe("door-first", "*");
            ClientDoor.listen(consumer, keys);
            consumer.start();
            started.add(consumer);
        }
        Thread.sleep(8_000);
        ClientDoor.send("first", "f", 2, "new-");
        for (TreeSet<String> keys : got.values()) {
            ClientDoor.settled(keys, 10);
        }
        started.forEach(DefaultMQPushConsumer::shutdown);
        return got;
    }

    /** A broadcasting consumer keeps its offsets at home: after a restart it gets what came meanwhile, once. */
    private static Object broadcastingRestart() throws Exception {
        List<Object> found = new ArrayList<>();
        for (String life : new String[] {"first", "second"}) {
            TreeSet<String> got = new TreeSet<>();
            DefaultMQPushConsumer consumer = ClientDoor.consumer("door-restart");
            consumer.setMessageModel(MessageModel.BROADCASTING);
            consumer.subscribe("door-restart", "*");
            ClientDoor.listen(consumer, got);
            if (life.equals("second")) {
                ClientDoor.send("restart", "r", 4, "meanwhile-");
            }
            consumer.start();
            Thread.sleep(6_000);
            ClientDoor.send("restart", "r", 4, life + "-");
            ClientDoor.settled(got, life.equals("first") ? 4 : 8);
            consumer.shutdown();
            found.add(got);
        }
        return found;
    }

    /** A call that does not end within consumeTimeout: its message goes back to the broker and comes again. */
    private static Object consumeTimeout() throws Exception {
        ClientDoor.send("slow", "s", 1, "slow-");
        List<String> calls = Collections.synchronizedList(new ArrayList<>());
        AtomicInteger first = new AtomicInteger();
        DefaultMQPushConsumer consumer = ClientDoor.consumer("door-slow");
        consumer.setConsumeTimeout(1);
        consumer.subscribe("door-slow", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            MessageExt m = messages.get(0);
            calls.add(m.getKeys() + " in " + m.getTopic() + " try " + m.getReconsumeTimes());
            if (first.getAndIncrement() == 0) {
                try {
                    Thread.sleep(150_000);
                } catch (InterruptedException stopped) {
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        reached(calls, 2, 170_000);
        return List.copyOf(calls);
    }

    private static DefaultMQPushConsumer counting(String group, String topic, List<String> calls) throws Exception {
        DefaultMQPushConsumer consumer = ClientDoor.consumer(group);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            messages.forEach(m -> calls.add(m.getKeys()));
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        return consumer;
    }

    private static Map<String, Integer> times(List<String> calls) {
        Map<String, Integer> times = new TreeMap<>();
        synchronized (calls) {
            calls.forEach(key -> times.merge(key, 1, Integer::sum));
        }
        return times;
    }

    private static Map<Integer, Long> sorted(Map<MessageQueue, Long> offsets) {
        Map<Integer, Long> byQueue = new TreeMap<>();
        offsets.forEach((queue, offset) -> byQueue.put(queue.getQueueId(), offset));
        return byQueue;
    }

    private static void reached(List<String> calls, int count) throws Exception {
        reached(calls, count, ClientDoor.WAIT);
    }

    private static void reached(List<String> calls, int count, long patience) throws Exception {
        long end = System.currentTimeMillis() + patience;
        while (calls.size() < count && System.currentTimeMillis() < end) {
            Thread.sleep(100);
        }
        Thread.sleep(2_000);
    }
}

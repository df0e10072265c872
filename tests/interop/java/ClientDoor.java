import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.nio.file.Files;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentSkipListMap;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.TimeUnit;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultLitePullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPullConsumer;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.MessageSelector;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.ConsumeOrderlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.consumer.listener.MessageListenerOrderly;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.LocalTransactionState;
import org.apache.rocketmq.client.producer.RequestCallback;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.TransactionListener;
import org.apache.rocketmq.client.producer.TransactionMQProducer;
import org.apache.rocketmq.client.utils.MessageUtil;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.protocol.heartbeat.MessageModel;

/**
 * What RocketMQ's Java client sees of a cluster: one behaviour per method, all at the same time, each told as values that
 * do not depend on chance. Called with the name server's address, the file for the answer
 * and, to look at some of the behaviours only, their names.
 */
public class ClientDoor {
    static final int WAIT = 60_000;
    static String nameServer;
    private static final Map<String, Object> SEEN = new ConcurrentSkipListMap<>();

    interface Behaviour {
        Object see() throws Exception;
    }

    public static void main(String[] arguments) throws Exception {
        nameServer = arguments[0];
        DefaultMQProducer admin = producer("door-admin");
        for (String topic : new String[] {"sends", "tags", "sql", "fails", "ordered", "news", "money", "later", "lite", "asked", "members", "edges", "batches", "live", "short", "limits", "levels", "resets", "first", "restart", "slow"}) {
            admin.createTopic("TBW102", "door-" + topic, topic.equals("limits") ? 1 : 4, new HashMap<>());
        }
        Thread.sleep(3_000);
        Map<String, Behaviour> all = new TreeMap<>();
        all.put("sends", ClientDoor::sends);
        all.put("tags", ClientDoor::tags);
        all.put("sql", ClientDoor::sql);
        all.put("retries until dead", ClientDoor::retriesUntilDead);
        all.put("order is kept", ClientDoor::orderIsKept);
        all.put("broadcasting", ClientDoor::broadcasting);
        all.put("transactions", ClientDoor::transactions);
        all.put("delays", ClientDoor::delays);
        all.put("lite pull", ClientDoor::litePull);
        all.put("request and reply", ClientDoor::requestAndReply);
        all.put("members come and go", ClientDoor::membersComeAndGo);
        all.put("edges of a pull", ClientDoor::edgesOfAPull);
        all.put("ack index", ClientDoor::ackIndex);
        all.put("tags change live", () -> tagsChangeLive("live", false));
        all.put("tags change live under heartbeat V2", () -> tagsChangeLive("short", true));
        GroupBehaviours.addTo(all);
        if (arguments.length > 2) { // to look at one of them
            all.keySet().retainAll(List.of(arguments).subList(2, arguments.length));
        }
        CountDownLatch left = new CountDownLatch(all.size());
        all.forEach((name, behaviour) -> new Thread(() -> {
            try {
                SEEN.put(name, behaviour.see());
            } catch (Throwable error) {
                SEEN.put(name, "failed: " + error);
            }
            left.countDown();
        }).start());
        left.await(4, TimeUnit.MINUTES);
        Files.write(Paths.get(arguments[1]), JSON.toJSONBytes(SEEN, JSONWriter.Feature.WriteNonStringKeyAsString));
        System.exit(0);
    }

    // 1. What is sent, and how it is answered.

    private static Object sends() throws Exception {
        DefaultMQProducer producer = producer("door-sends");
        List<Object> found = new ArrayList<>();
        found.add(producer.send(message("sends", "a", "one")).getSendStatus());
        producer.sendOneway(message("sends", "a", "two"));
        CountDownLatch answered = new CountDownLatch(1);
        producer.send(message("sends", "a", "three"), new SendCallback() {
            public void onSuccess(SendResult result) {
                found.add("asynchronous " + result.getSendStatus());
                answered.countDown();
            }

            public void onException(Throwable error) {
                found.add("asynchronous " + error);
                answered.countDown();
            }
        });
        answered.await(10, TimeUnit.SECONDS);
        List<Message> batch = new ArrayList<>();
        for (int i = 0; i < 5; i++) {
            batch.add(message("sends", "b", "batch-" + i));
        }
        found.add("batch " + producer.send(batch).getSendStatus());
        for (int order = 0; order < 4; order++) {
            SendResult result = producer.send(message("sends", "c", "chosen-" + order), (queues, m, arg) -> queues.get((Integer) arg), order);
            found.add("chosen " + result.getMessageQueue().getQueueId());
        }
        return found;
    }

    // 2. Who gets what.

    private static Object tags() throws Exception {
        TreeSet<String> got = new TreeSet<>();
        send("tags", "paid", 6, "paid-");
        send("tags", "shipped", 6, "shipped-");
        send("tags", "BB", 3, "BB-");
        started(consumer("door-tags"), "door-tags", "paid || Aa", got, 6);
        return got;
    }

    private static Object sql() throws Exception {
        DefaultMQProducer producer = producer("door-sql");
        for (int i = 0; i < 10; i++) {
            Message message = message("sql", "s", "sql-" + i);
            if (i % 3 != 0) {
                message.putUserProperty("amount", "" + i);
            }
            producer.send(message);
        }
        TreeSet<String> got = new TreeSet<>();
        DefaultMQPushConsumer consumer = consumer("door-sql");
        consumer.subscribe("door-sql", MessageSelector.bySql("amount BETWEEN 2 AND 8 OR amount IS NULL"));
        listen(consumer, got);
        consumer.start();
        settled(got, 9);
        consumer.shutdown();
        return got;
    }

    private static Object retriesUntilDead() throws Exception {
        send("fails", "f", 1, "bad-");
        List<Object> tries = new ArrayList<>();
        DefaultMQPushConsumer consumer = consumer("door-fails");
        consumer.setMaxReconsumeTimes(2);
        consumer.subscribe("door-fails", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            synchronized (tries) {
                messages.forEach(m -> tries.add(m.getTopic() + " " + m.getReconsumeTimes()));
            }
            return ConsumeConcurrentlyStatus.RECONSUME_LATER;
        });
        consumer.start();
        TreeSet<String> dead = new TreeSet<>();
        Thread.sleep(40_000);
        started(consumer("door-undertaker"), "%DLQ%door-fails", "*", dead, 1);
        consumer.shutdown();
        return List.of(tries, dead);
    }

    private static Object orderIsKept() throws Exception {
        DefaultMQProducer producer = producer("door-ordered");
        for (int i = 0; i < 24; i++) {
            producer.send(message("ordered", "o", String.format("order-%d step %02d", i % 4, i)), (queues, m, arg) -> queues.get((Integer) arg % queues.size()), i % 4);
        }
        Map<String, List<String>> seen = new ConcurrentSkipListMap<>();
        AtomicInteger calls = new AtomicInteger();
        DefaultMQPushConsumer consumer = consumer("door-ordered");
        consumer.subscribe("door-ordered", "*");
        consumer.registerMessageListener((MessageListenerOrderly) (messages, context) -> {
            if (calls.incrementAndGet() == 3) {
                return ConsumeOrderlyStatus.SUSPEND_CURRENT_QUEUE_A_MOMENT;
            }
            messages.forEach(m -> seen.computeIfAbsent(m.getKeys().substring(0, 7), k -> new ArrayList<>()).add(m.getKeys()));
            return ConsumeOrderlyStatus.SUCCESS;
        });
        consumer.start();
        long end = System.currentTimeMillis() + WAIT;
        while (seen.values().stream().mapToInt(List::size).sum() < 24 && System.currentTimeMillis() < end) {
            Thread.sleep(100);
        }
        consumer.shutdown();
        return seen;
    }

    private static Object broadcasting() throws Exception {
        TreeSet<String> first = new TreeSet<>(), second = new TreeSet<>();
        List<DefaultMQPushConsumer> both = new ArrayList<>();
        for (TreeSet<String> got : List.of(first, second)) {
            DefaultMQPushConsumer consumer = consumer("door-news");
            consumer.setInstanceName("news-" + both.size());
            consumer.setMessageModel(MessageModel.BROADCASTING);
            consumer.subscribe("door-news", "*");
            listen(consumer, got);
            consumer.start();
            both.add(consumer);
        }
        Thread.sleep(3_000);
        send("news", "n", 8, "news-");
        settled(first, 8);
        settled(second, 8);
        both.forEach(DefaultMQPushConsumer::shutdown);
        return List.of(first, second);
    }

    private static Object transactions() throws Exception {
        AtomicInteger checks = new AtomicInteger();
        TransactionMQProducer producer = new TransactionMQProducer("door-money");
        producer.setNamesrvAddr(nameServer);
        producer.setTransactionListener(new TransactionListener() {
            public LocalTransactionState executeLocalTransaction(Message message, Object arg) {
                return (LocalTransactionState) arg;
            }

            public LocalTransactionState checkLocalTransaction(MessageExt message) {
                checks.incrementAndGet();
                return LocalTransactionState.COMMIT_MESSAGE;
            }
        });
        producer.start();
        for (LocalTransactionState state : LocalTransactionState.values()) {
            producer.sendMessageInTransaction(message("money", "m", "tx-" + state), state);
        }
        TreeSet<String> got = new TreeSet<>();
        started(consumer("door-money"), "door-money", "*", got, 2);
        producer.shutdown();
        return List.of(got, checks.get() > 0);
    }

    private static Object delays() throws Exception {
        DefaultMQProducer producer = producer("door-later");
        Map<String, Long> sent = new ConcurrentSkipListMap<>();
        for (int level = 1; level <= 3; level++) {
            Message message = message("later", "l", "level-" + level);
            message.setDelayTimeLevel(level);
            sent.put(message.getKeys(), System.currentTimeMillis());
            producer.send(message);
        }
        int[] least = {0, 1_000, 5_000, 10_000};
        TreeSet<String> got = new TreeSet<>();
        DefaultMQPushConsumer consumer = consumer("door-later");
        consumer.subscribe("door-later", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                long waited = System.currentTimeMillis() - sent.get(m.getKeys());
                int level = Integer.parseInt(m.getKeys().substring(6));
                synchronized (got) {
                    got.add(m.getKeys() + (waited >= least[level] - 50 ? " in time" : " early"));
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        settled(got, 3);
        consumer.shutdown();
        return got;
    }

    private static Object litePull() throws Exception {
        send("lite", "l", 12, "lite-");
        DefaultLitePullConsumer consumer = new DefaultLitePullConsumer("door-lite");
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe("door-lite", "*");
        consumer.start();
        TreeSet<String> got = new TreeSet<>();
        long end = System.currentTimeMillis() + WAIT;
        while (got.size() < 12 && System.currentTimeMillis() < end) {
            consumer.poll(500).forEach(m -> got.add(m.getKeys()));
        }
        consumer.commitSync();
        consumer.shutdown();
        return got;
    }

    private static Object requestAndReply() throws Exception {
        DefaultMQProducer requester = producer("door-asks"), replier = producer("door-answers");
        DefaultMQPushConsumer consumer = consumer("door-asked");
        consumer.subscribe("door-asked", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                try {
                    replier.send(MessageUtil.createReplyMessage(m, ("heard " + new String(m.getBody())).getBytes()), 5_000);
                } catch (Exception error) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread.sleep(3_000);
        // With a callback: the request(message, timeout) of 5.3.3 stops to wait as soon as the message is sent.
        TreeSet<String> answers = new TreeSet<>();
        for (int i = 0; i < 3; i++) {
            requester.request(message("asked", "q", "question " + i), new RequestCallback() {
                public void onSuccess(Message answer) {
                    synchronized (answers) {
                        answers.add(new String(answer.getBody()));
                    }
                }

                public void onException(Throwable error) {
                    synchronized (answers) {
                        answers.add("failed: " + error);
                    }
                }
            }, 30_000);
        }
        settled(answers, 3);
        consumer.shutdown();
        return answers;
    }

    private static Object membersComeAndGo() throws Exception {
        TreeSet<String> first = new TreeSet<>(), second = new TreeSet<>();
        List<DefaultMQPushConsumer> both = new ArrayList<>();
        for (TreeSet<String> got : List.of(first, second)) {
            DefaultMQPushConsumer consumer = consumer("door-members");
            consumer.setInstanceName("member-" + both.size());
            consumer.subscribe("door-members", "*");
            listen(consumer, got);
            consumer.start();
            both.add(consumer);
        }
        Thread.sleep(12_000);
        send("members", "m", 16, "a-");
        Thread.sleep(4_000);
        List<Object> found = new ArrayList<>();
        found.add(List.of(first.size(), second.size()));
        both.get(0).shutdown();
        Thread.sleep(12_000);
        send("members", "m", 16, "b-");
        settled(second, second.size() + 16);
        found.add(second.stream().filter(key -> key.startsWith("b-")).count());
        both.get(1).shutdown();
        return found;
    }

    // 3. Edges.

    @SuppressWarnings("deprecation")
    private static Object edgesOfAPull() throws Exception {
        send("edges", "e", 8, "edge-");
        DefaultMQPullConsumer puller = new DefaultMQPullConsumer("door-edges");
        puller.setNamesrvAddr(nameServer);
        puller.start();
        List<Object> found = new ArrayList<>();
        MessageQueue queue = new TreeSet<>(puller.fetchSubscribeMessageQueues("door-edges")).first();
        long end = puller.maxOffset(queue);
        for (long offset : new long[] {0, end, end + 7}) {
            var result = puller.pull(queue, "*", offset, 32);
            found.add(result.getPullStatus() + " next " + (result.getNextBeginOffset() - end) + " of " + (result.getMaxOffset() - end));
        }
        found.add(puller.pull(queue, "nothing", 0, 32).getPullStatus());
        puller.shutdown();
        return found;
    }

    private static Object ackIndex() throws Exception {
        send("batches", "b", 16, "b-");
        Map<String, Integer> tries = new ConcurrentSkipListMap<>();
        DefaultMQPushConsumer consumer = consumer("door-batches");
        consumer.setConsumeMessageBatchMaxSize(4);
        consumer.subscribe("door-batches", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            context.setDelayLevelWhenNextConsume(1);
            messages.forEach(m -> tries.merge(m.getKeys(), m.getReconsumeTimes(), Math::max));
            if (messages.get(0).getReconsumeTimes() == 0) {
                context.setAckIndex(0);
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread.sleep(40_000);
        consumer.shutdown();
        return List.of(tries.size(), tries.values().stream().allMatch(n -> n <= 1));
    }

    private static Object tagsChangeLive(String topic, boolean heartbeatV2) throws Exception {
        TreeSet<String> got = new TreeSet<>();
        DefaultMQPushConsumer consumer = consumer("door-" + topic);
        consumer.setUseHeartbeatV2(heartbeatV2);
        consumer.subscribe("door-" + topic, "one");
        listen(consumer, got);
        consumer.start();
        Thread.sleep(4_000);
        send(topic, "one", 4, topic + "-one-a-");
        send(topic, "two", 4, topic + "-two-a-");
        Thread.sleep(3_000);
        consumer.subscribe("door-" + topic, "two");
        Thread.sleep(20_000);
        send(topic, "one", 4, topic + "-one-b-");
        send(topic, "two", 4, topic + "-two-b-");
        settled(got, 8);
        consumer.shutdown();
        return got;
    }

    // What they share.

    static DefaultMQProducer producer(String group) throws Exception {
        DefaultMQProducer producer = new DefaultMQProducer(group);
        producer.setNamesrvAddr(nameServer);
        producer.setInstanceName(group);
        producer.setSendMsgTimeout(10_000);
        producer.start();
        return producer;
    }

    static DefaultMQPushConsumer consumer(String group) {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(group);
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName(group + "-consumer");
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        return consumer;
    }

    static Message message(String topic, String tag, String key) {
        return new Message("door-" + topic, tag, key, key.getBytes());
    }

    static void send(String topic, String tag, int count, String prefix) throws Exception {
        DefaultMQProducer producer = producer("door-send-" + prefix);
        for (int i = 0; i < count; i++) {
            producer.send(message(topic, tag, String.format("%s%02d", prefix, i)));
        }
        producer.shutdown();
    }

    static void listen(DefaultMQPushConsumer consumer, TreeSet<String> got) {
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            synchronized (got) {
                messages.forEach(m -> got.add(m.getKeys()));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
    }

    static void started(DefaultMQPushConsumer consumer, String topic, String tags, TreeSet<String> got, int count) throws Exception {
        consumer.subscribe(topic, tags);
        listen(consumer, got);
        consumer.start();
        settled(got, count);
        consumer.shutdown();
    }

    /** Waits until so many keys are there, and a moment longer for one too many. */
    static void settled(TreeSet<String> got, int count) throws Exception {
        long end = System.currentTimeMillis() + WAIT;
        while (System.currentTimeMillis() < end) {
            synchronized (got) {
                if (got.size() >= count) {
                    break;
                }
            }
            Thread.sleep(100);
        }
        Thread.sleep(2_000);
    }
}

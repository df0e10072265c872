import com.alibaba.fastjson2.JSON;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.HashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicLong;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Messages a second of a cluster: BenchDoor NAME-SERVER ANSWER-FILE SECONDS TOPIC KIND... with the kinds sync (one by one),
 * batch (of 32), async (256 at a time) and consume (all that the topic has). Bodies have 256 bytes. Each kind runs twice; the
 * second run counts. Between the kinds it writes a line, and waits for one on its standard input.
 */
public class BenchDoor {
    private static final int BATCH = 32, IN_FLIGHT = 256;
    private static final byte[] BODY = new byte[256];
    private static String topic;
    private static long total;

    public static void main(String[] arguments) throws Exception {
        long ms = (long) (Double.parseDouble(arguments[2]) * 1_000);
        topic = arguments[3];
        DefaultMQProducer producer = new DefaultMQProducer("bench-door");
        producer.setNamesrvAddr(arguments[0]);
        producer.setSendMsgTimeout(20_000);
        producer.start();
        producer.createTopic("TBW102", topic, 4, new HashMap<>());
        Thread.sleep(2_000);
        Map<String, Double> found = new TreeMap<>();
        for (String kind : List.of(arguments).subList(4, arguments.length)) {
            if (kind.equals("consume")) {
                announce(kind);
                found.put(kind, consume(arguments[0]));
                announce(kind);
                continue;
            }
            send(producer, kind, ms / 2);
            announce(kind);
            found.put(kind, send(producer, kind, ms));
            announce(kind);
        }
        Files.write(Path.of(arguments[1]), JSON.toJSONBytes(found));
        System.exit(0);
    }

    private static void announce(String kind) throws Exception {
        System.out.println(kind + " " + total);
        System.out.flush();
        System.in.read();
    }

    private static double send(DefaultMQProducer producer, String kind, long ms) throws Exception {
        long begin = System.nanoTime(), end = begin + ms * 1_000_000, before = total;
        Semaphore free = new Semaphore(IN_FLIGHT);
        AtomicLong done = new AtomicLong();
        while (System.nanoTime() < end) {
            if (kind.equals("batch")) {
                List<Message> batch = new ArrayList<>(BATCH);
                for (int i = 0; i < BATCH; i++) {
                    batch.add(message(i));
                }
                producer.send(batch);
                done.addAndGet(BATCH);
            } else if (kind.equals("async")) {
                free.acquire();
                producer.send(message(0), new SendCallback() {
                    public void onSuccess(SendResult result) {
                        done.incrementAndGet();
                        free.release();
                    }

                    public void onException(Throwable error) {
                        free.release();
                    }
                });
            } else {
                producer.send(message(0));
                done.incrementAndGet();
            }
        }
        free.acquire(IN_FLIGHT);
        total += done.get();
        return (total - before) * 1e9 / (System.nanoTime() - begin);
    }

    private static Message message(int number) {
        return new Message(topic, "tag", "key-" + number, BODY);
    }

    private static double consume(String nameServer) throws Exception {
        AtomicLong got = new AtomicLong(), first = new AtomicLong(), last = new AtomicLong();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("bench-door-" + topic);
        consumer.setNamesrvAddr(nameServer);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            first.compareAndSet(0, System.nanoTime());
            got.addAndGet(messages.size());
            last.set(System.nanoTime());
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        long end = System.currentTimeMillis() + 120_000;
        while (got.get() < total && System.currentTimeMillis() < end) {
            Thread.sleep(10);
        }
        consumer.shutdown();
        return got.get() * 1e9 / Math.max(1, last.get() - first.get());
    }
}

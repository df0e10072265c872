import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.BitSet;
import java.util.List;
import java.util.concurrent.Semaphore;
import java.util.concurrent.atomic.AtomicInteger;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendCallback;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.client.producer.SendStatus;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/**
 * Sends as fast as a cluster takes it, in batches of 32 and asynchronously at once, while one consumer reads all of it:
 * RateDoor NAME-SERVER TOPIC SECONDS ACKNOWLEDGED-FILE MISSING-FILE. A message's key is its number; bodies have 256 bytes. The
 * files hold a bit per number: what was answered with SEND_OK, and what of it was not consumed. A send that fails is not tried
 * again; the consumer has five minutes more.
 */
public class RateDoor {
    private static final int BATCH = 32, IN_FLIGHT = 256, PATIENCE_MS = 300_000, PAUSE_MS = 20;
    private static final byte[] BODY = new byte[256];
    private static final BitSet acknowledged = new BitSet(), consumed = new BitSet();
    private static final AtomicInteger next = new AtomicInteger();
    private static String topic;
    private static long end;
    private static volatile boolean hasFailed;

    public static void main(String[] words) throws Exception {
        topic = words[1];
        end = System.currentTimeMillis() + Long.parseLong(words[2]) * 1_000;
        DefaultMQProducer producer = new DefaultMQProducer("rate-door");
        producer.setNamesrvAddr(words[0]);
        producer.setRetryTimesWhenSendFailed(0);
        producer.setRetryTimesWhenSendAsyncFailed(0);
        producer.start();
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("rate-door-" + topic);
        consumer.setNamesrvAddr(words[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setConsumeMessageBatchMaxSize(32);
        consumer.setPullBatchSize(32);
        consumer.subscribe(topic, "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            synchronized (consumed) {
                messages.forEach(message -> consumed.set(Integer.parseInt(message.getKeys())));
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread batches = new Thread(() -> inBatches(producer));
        batches.start();
        asynchronously(producer);
        batches.join();
        long patience = System.currentTimeMillis() + PATIENCE_MS;
        while (System.currentTimeMillis() < patience && !missing().isEmpty()) {
            Thread.sleep(500);
        }
        Files.write(Path.of(words[3]), acknowledged.toByteArray());
        Files.write(Path.of(words[4]), missing().toByteArray());
        System.exit(0);
    }

    private static BitSet missing() {
        BitSet missing = (BitSet) acknowledged.clone();
        synchronized (consumed) {
            missing.andNot(consumed);
        }
        return missing;
    }

    private static void inBatches(DefaultMQProducer producer) {
        while (System.currentTimeMillis() < end) {
            int first = next.getAndAdd(BATCH);
            List<Message> batch = new ArrayList<>(BATCH);
            for (int number = first; number < first + BATCH; number++) {
                batch.add(message(number));
            }
            try {
                remember(producer.send(batch), first, first + BATCH);
            } catch (Exception e) {
                pause();
            }
        }
    }

    private static void asynchronously(DefaultMQProducer producer) throws InterruptedException {
        Semaphore free = new Semaphore(IN_FLIGHT);
        while (System.currentTimeMillis() < end) {
            int number = next.getAndIncrement();
            free.acquire();
            if (hasFailed) {
                hasFailed = false;
                pause();
            }
            try {
                producer.send(message(number), new SendCallback() {
                    public void onSuccess(SendResult result) {
                        remember(result, number, number + 1);
                        free.release();
                    }

                    public void onException(Throwable error) { // runs in the thread that also connects
                        hasFailed = true;
                        free.release();
                    }
                });
            } catch (Exception e) {
                pause();
                free.release();
            }
        }
        free.acquire(IN_FLIGHT);
    }

    private static void remember(SendResult result, int first, int past) {
        if (result.getSendStatus() == SendStatus.SEND_OK) {
            synchronized (acknowledged) {
                acknowledged.set(first, past);
            }
        }
    }

    private static void pause() {
        try {
            Thread.sleep(PAUSE_MS);
        } catch (InterruptedException e) {
            Thread.currentThread().interrupt();
        }
    }

    private static Message message(int number) {
        return new Message(topic, "tag", Integer.toString(number), BODY);
    }
}

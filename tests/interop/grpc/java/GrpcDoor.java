import java.io.PrintWriter;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.time.Duration;
import java.util.Collections;
import java.util.Map;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.CopyOnWriteArrayList;
import org.apache.rocketmq.client.apis.ClientConfiguration;
import org.apache.rocketmq.client.apis.ClientServiceProvider;
import org.apache.rocketmq.client.apis.consumer.ConsumeResult;
import org.apache.rocketmq.client.apis.consumer.FilterExpression;
import org.apache.rocketmq.client.apis.consumer.PushConsumer;
import org.apache.rocketmq.client.apis.consumer.SimpleConsumer;
import org.apache.rocketmq.client.apis.message.Message;
import org.apache.rocketmq.client.apis.message.MessageBuilder;
import org.apache.rocketmq.client.apis.message.MessageView;
import org.apache.rocketmq.client.apis.producer.Producer;
import org.apache.rocketmq.client.apis.producer.Transaction;
import org.apache.rocketmq.client.apis.producer.TransactionResolution;

/** RocketMQ's 5.x client for Java: GrpcDoor ENDPOINTS FILE writes a line for each thing that it saw. */
public class GrpcDoor {
    static final ClientServiceProvider PROVIDER = ClientServiceProvider.loadService();

    static MessageBuilder message(String topic, String body) {
        return PROVIDER.newMessageBuilder().setTopic(topic).setBody(body.getBytes(StandardCharsets.UTF_8));
    }

    static String text(MessageView view) {
        ByteBuffer body = view.getBody().duplicate();
        byte[] bytes = new byte[body.remaining()];
        body.get(bytes);
        return new String(bytes, StandardCharsets.UTF_8);
    }

    static void until(java.util.function.BooleanSupplier condition) throws Exception {
        for (int look = 0; look < 900 && !condition.getAsBoolean(); look++) {
            Thread.sleep(100);
        }
    }

    public static void main(String[] words) throws Exception {
        ClientConfiguration configuration = ClientConfiguration.newBuilder().setEndpoints(words[0]).enableSsl(false).build();
        try (PrintWriter seen = new PrintWriter(words[1], StandardCharsets.UTF_8)) {
            Producer producer = PROVIDER.newProducerBuilder().setClientConfiguration(configuration)
                .setTopics("door-normal", "door-fifo", "door-delay", "door-transaction")
                .setTransactionChecker(view -> TransactionResolution.COMMIT).build();
            producer.send(message("door-normal", "plain").setTag("red").setKeys("k1", "k2").addProperty("mine", "x").build());
            producer.send(message("door-normal", "bad").setTag("red").build());
            producer.send(message("door-normal", "unwanted").setTag("blue").build());
            for (int number = 0; number < 4; number++) {
                producer.send(message("door-fifo", "fifo-" + number).setMessageGroup("ann").build());
            }
            producer.send(message("door-delay", "later").setDeliveryTimestamp(System.currentTimeMillis() + 3000).build());
            for (String body : new String[] {"committed", "rolled back"}) {
                Transaction transaction = producer.beginTransaction();
                producer.send(message("door-transaction", body).build(), transaction);
                if (body.equals("committed")) {
                    transaction.commit();
                } else {
                    transaction.rollback();
                }
            }
            try {
                producer.send(message("door-fifo", "no group").build());
                seen.println("a normal message in a FIFO topic: sent");
            } catch (Exception refused) {
                seen.println("a normal message in a FIFO topic: refused");
            }
            push(configuration, seen);
            simple(configuration, seen, "door-delay");
            simple(configuration, seen, "door-transaction");
            fifo(configuration, seen);
            producer.close();
        }
        System.exit(0);
    }

    static void push(ClientConfiguration configuration, PrintWriter seen) throws Exception {
        Map<String, Integer> attempts = new ConcurrentHashMap<>();
        TreeSet<String> lines = new TreeSet<>();
        PushConsumer consumer = PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup("door-push")
            .setSubscriptionExpressions(Collections.singletonMap("door-normal", new FilterExpression("red")))
            .setMessageListener(view -> {
                synchronized (lines) {
                    String body = text(view);
                    lines.add("push: " + body + " " + view.getTag().orElse("") + " " + new TreeSet<>(view.getKeys()) + " "
                        + view.getProperties() + " attempt " + view.getDeliveryAttempt());
                    boolean fails = body.equals("bad") && view.getDeliveryAttempt() == 1;
                    return fails ? ConsumeResult.FAILURE : ConsumeResult.SUCCESS;
                }
            }).build();
        until(() -> {
            synchronized (lines) {
                return lines.size() >= 3;
            }
        });
        consumer.close();
        lines.forEach(seen::println);
    }

    static void simple(ClientConfiguration configuration, PrintWriter seen, String topic) throws Exception {
        SimpleConsumer consumer = PROVIDER.newSimpleConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup("door-simple-" + topic).setAwaitDuration(Duration.ofSeconds(10))
            .setSubscriptionExpressions(Collections.singletonMap(topic, new FilterExpression("*"))).build();
        Thread.sleep(1500);
        int messages = 0;
        for (int look = 0; look < 5 && messages == 0; look++) {
            for (MessageView view : consumer.receive(16, Duration.ofSeconds(15))) {
                consumer.ack(view);
                messages++;
                seen.println("simple: " + topic + " " + text(view) + " attempt " + view.getDeliveryAttempt());
            }
        }
        consumer.close();
    }

    static void fifo(ClientConfiguration configuration, PrintWriter seen) throws Exception {
        CopyOnWriteArrayList<String> order = new CopyOnWriteArrayList<>();
        PushConsumer consumer = PROVIDER.newPushConsumerBuilder().setClientConfiguration(configuration)
            .setConsumerGroup("door-fifo")
            .setSubscriptionExpressions(Collections.singletonMap("door-fifo", new FilterExpression("*")))
            .setMessageListener(view -> {
                order.add(text(view) + view.getMessageGroup().orElse(""));
                return ConsumeResult.SUCCESS;
            }).build();
        until(() -> order.size() >= 4);
        consumer.close();
        seen.println("fifo: " + order);
    }
}

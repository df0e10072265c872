import java.nio.file.Files;
import java.nio.file.Path;
import java.util.List;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentSkipListMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;

/** RocketMQ's client on a learner's broker: what was sent, and how often each message was given. */
public class PartsDoor {
    private static final int ORDERS = 6;
    private static final long PATIENCE_MS = 60_000;

    public static void main(String[] args) throws Exception {
        String nameServer = args[0];
        TreeMap<String, String> sent = new TreeMap<>();
        ConcurrentSkipListMap<String, String> given = new ConcurrentSkipListMap<>();

        DefaultMQProducer shop = new DefaultMQProducer("shop");
        shop.setNamesrvAddr(nameServer);
        shop.start();
        for (int number = 0; number < ORDERS; number++) {
            String tag = number % 2 == 1 ? "paid" : "new";
            SendResult result = shop.send(new Message("orders", tag, "order-" + number, "a book".getBytes("UTF-8")));
            sent.put("order-" + number, result.getSendStatus().name());
        }

        DefaultMQPushConsumer billing = new DefaultMQPushConsumer("billing");
        billing.setNamesrvAddr(nameServer);
        billing.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        billing.setConsumeMessageBatchMaxSize(1);
        billing.subscribe("orders", "paid");
        billing.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            String key = messages.get(0).getKeys();
            int times = messages.get(0).getReconsumeTimes();
            given.merge(key, messages.get(0).getTopic() + " " + times, (before, now) -> before + ", " + now);
            boolean fails = key.equals("order-3") && times == 0;
            return fails ? ConsumeConcurrentlyStatus.RECONSUME_LATER : ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        billing.start();
        long end = System.currentTimeMillis() + PATIENCE_MS;
        while (System.currentTimeMillis() < end && !(given.size() == 3 && given.get("order-3").contains(","))) {
            Thread.sleep(100);
        }
        billing.shutdown();
        shop.shutdown();

        StringBuilder json = new StringBuilder("{");
        for (TreeMap<String, String> map : List.of(sent, new TreeMap<>(given))) {
            json.append(json.length() > 1 ? ",\"given\":{" : "\"sent\":{");
            String comma = "";
            for (var entry : map.entrySet()) {
                json.append(comma).append('"').append(entry.getKey()).append("\":\"").append(entry.getValue()).append('"');
                comma = ",";
            }
            json.append("}");
        }
        Files.writeString(Path.of(args[1]), json.append("}").toString());
        System.exit(0);
    }
}

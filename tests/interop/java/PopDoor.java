import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Collections;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.client.producer.SendResult;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageRequestMode;
import org.apache.rocketmq.tools.admin.DefaultMQAdminExt;

/** A popping group of two Java push consumers, and timed messages of a Java producer: PopDoor nameServer broker answer.json */
public class PopDoor {
    private static final int MESSAGES = 30;
    private static String nameServer;

    public static void main(String[] words) throws Exception {
        nameServer = words[0];
        DefaultMQAdminExt admin = new DefaultMQAdminExt();
        admin.setNamesrvAddr(nameServer);
        admin.setInstanceName("pop-door-admin");
        admin.start();
        admin.createTopic("TBW102", "popped", 4, Collections.emptyMap());
        Thread.sleep(2_000);
        admin.setMessageRequestMode(words[1], "popped", "popping", MessageRequestMode.POP, -1, 5_000);
        Map<String, List<Integer>> seen = new ConcurrentHashMap<>();
        List<Long> late = Collections.synchronizedList(new ArrayList<>());
        DefaultMQPushConsumer first = consumer("one", seen, late);
        DefaultMQPushConsumer second = consumer("two", seen, late);
        Thread.sleep(3_000);
        DefaultMQProducer producer = new DefaultMQProducer("pop-door");
        producer.setNamesrvAddr(nameServer);
        producer.start();
        for (int i = 0; i < MESSAGES; i++) {
            producer.send(new Message("popped", "t", String.format("m%02d", i), "x".getBytes()));
        }
        producer.send(new Message("popped", "t", "fails", "x".getBytes()));
        Message timed = new Message("popped", "t", "timed", "x".getBytes());
        timed.setDeliverTimeMs(System.currentTimeMillis() + 6_000);
        SendResult timedResult = producer.send(timed);
        Message recalled = new Message("popped", "t", "recalled", "x".getBytes());
        recalled.setDelayTimeSec(15);
        SendResult recalledResult = producer.send(recalled);
        String recall;
        try {
            recall = String.valueOf(producer.recallMessage("popped", recalledResult.getRecallHandle()).equals(recalledResult.getMsgId()));
        } catch (Exception e) {
            recall = e.getMessage();
        }
        Thread.sleep(50_000);
        first.shutdown();
        second.shutdown();
        producer.shutdown();
        admin.shutdown();
        StringBuilder json = new StringBuilder("{");
        for (Map.Entry<String, List<Integer>> entry : new TreeMap<>(seen).entrySet()) {
            json.append('"').append(entry.getKey()).append("\":").append(entry.getValue()).append(',');
        }
        json.append("\"late\":").append(late).append(",\"recall\":\"").append(recall).append("\",\"handle\":").append(timedResult.getRecallHandle() != null).append('}');
        Files.writeString(Path.of(words[2]), json);
        System.exit(0);
    }

    /** Counts each message's deliveries by reconsumeTimes; "fails" fails once. */
    private static DefaultMQPushConsumer consumer(String name, Map<String, List<Integer>> seen, List<Long> late) throws Exception {
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("popping");
        consumer.setNamesrvAddr(nameServer);
        consumer.setInstanceName("pop-door-" + name);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setClientRebalance(false);
        consumer.subscribe("popped", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                seen.computeIfAbsent(m.getKeys(), key -> Collections.synchronizedList(new ArrayList<>())).add(m.getReconsumeTimes());
                if (m.getKeys().equals("timed")) {
                    late.add(System.currentTimeMillis() - Long.parseLong(m.getProperty("TIMER_DELIVER_MS")));
                }
                if (m.getKeys().equals("fails") && m.getReconsumeTimes() == 0) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        return consumer;
    }
}

import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.MessageExt;

/** A popping consumer that writes the key of each message it has done, until it is killed: PopWorker nameServer done.txt */
public class PopWorker {
    public static void main(String[] words) throws Exception {
        Path done = Path.of(words[1]);
        DefaultMQPushConsumer consumer = new DefaultMQPushConsumer("killed");
        consumer.setNamesrvAddr(words[0]);
        consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
        consumer.setClientRebalance(false);
        consumer.setPopInvisibleTime(10_000);
        consumer.subscribe("popped", "*");
        consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
            for (MessageExt m : messages) {
                try {
                    Thread.sleep(20);
                    byte[] line = (m.getKeys() + " " + m.getReconsumeTimes() + "\n").getBytes(StandardCharsets.UTF_8);
                    Files.write(done, line, StandardOpenOption.CREATE, StandardOpenOption.APPEND);
                } catch (Exception e) {
                    return ConsumeConcurrentlyStatus.RECONSUME_LATER;
                }
            }
            return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
        });
        consumer.start();
        Thread.sleep(Long.MAX_VALUE);
    }
}

import com.alibaba.fastjson2.JSON;
import java.io.ByteArrayOutputStream;
import java.io.PrintStream;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.nio.file.Paths;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.atomic.AtomicInteger;
import java.util.regex.Matcher;
import java.util.regex.Pattern;
import org.apache.rocketmq.acl.common.AclClientRPCHook;
import org.apache.rocketmq.acl.common.SessionCredentials;
import org.apache.rocketmq.client.consumer.DefaultMQPushConsumer;
import org.apache.rocketmq.client.consumer.listener.ConsumeConcurrentlyStatus;
import org.apache.rocketmq.client.consumer.listener.MessageListenerConcurrently;
import org.apache.rocketmq.client.producer.DefaultMQProducer;
import org.apache.rocketmq.common.consumer.ConsumeFromWhere;
import org.apache.rocketmq.common.message.Message;
import org.apache.rocketmq.common.message.MessageQueue;
import org.apache.rocketmq.remoting.RPCHook;
import org.apache.rocketmq.tools.command.MQAdminStartup;

/**
 * mqadmin's commands one after another in one process: a file with a command a line (words between tabs), and a JSON file with
 * what each printed. Further "commands": +send TOPIC QUEUE KEY, +consume GROUP TOPIC and +pop GROUP TOPIC (until the end), +called GROUP MESSAGES
 * (waits until the listener has had so many), +wait SECONDS, +user NAME PASSWORD (who signs from here on; "-" for nobody). In
 * the words of a command UNIQUE-ID and OFFSET-ID stand for the ids of the message that was sent last.
 */
public class AdminDoor {
    private static final Pattern USED = Pattern.compile("UNIQUE-ID|OFFSET-ID");
    private static final int PATIENCE = 30_000;
    private static final Map<String, AtomicInteger> HAD = new ConcurrentHashMap<>();
    private static String uniqueId = "", offsetId = "";
    private static RPCHook hook;
    private static DefaultMQProducer producer;

    public static void main(String[] arguments) throws Exception {
        PrintStream out = System.out, err = System.err;
        List<List<String>> answers = new ArrayList<>();
        for (String line : Files.readAllLines(Paths.get(arguments[1]), StandardCharsets.UTF_8)) {
            ByteArrayOutputStream told = new ByteArrayOutputStream();
            PrintStream both = new PrintStream(told, true, "UTF-8");
            System.setOut(both);
            System.setErr(both);
            Thread command = new Thread(() -> {
                try {
                    run(arguments[0], line.split("\t"));
                } catch (Throwable error) {
                    both.println("thrown: " + error);
                }
            });
            command.start();
            command.join(PATIENCE);
            if (command.isAlive()) {
                both.println("did not end");
                command.interrupt();
            }
            System.setOut(out);
            System.setErr(err);
            answers.add(List.of(line, told.toString("UTF-8")));
            out.println(line);
        }
        Files.write(Path.of(arguments[2]), JSON.toJSONBytes(answers));
        System.exit(0);
    }

    private static void run(String nameServer, String[] words) throws Exception {
        switch (words[0]) {
            case "+send":
                if (producer == null) {
                    producer = new DefaultMQProducer("admin-door-shop", hook);
                    producer.setNamesrvAddr(nameServer);
                    producer.setSendMsgTimeout(10_000);
                    producer.start();
                }
                var sent = producer.send(new Message(words[1], "tag", words[3], ("body of " + words[3]).getBytes()), new MessageQueue(words[1], "broker-a", Integer.parseInt(words[2])));
                uniqueId = sent.getMsgId();
                offsetId = sent.getOffsetMsgId();
                System.out.println(sent.getSendStatus() + " " + sent.getQueueOffset());
                break;
            case "+consume":
            case "+pop":
                DefaultMQPushConsumer consumer = new DefaultMQPushConsumer(words[1], hook);
                consumer.setNamesrvAddr(nameServer);
                consumer.setClientRebalance(words[0].equals("+consume"));
                consumer.setInstanceName("admin-door-" + words[1]);
                consumer.setConsumeFromWhere(ConsumeFromWhere.CONSUME_FROM_FIRST_OFFSET);
                consumer.subscribe(words[2], "*");
                AtomicInteger had = HAD.computeIfAbsent(words[1], group -> new AtomicInteger());
                consumer.registerMessageListener((MessageListenerConcurrently) (messages, context) -> {
                    had.addAndGet(messages.size());
                    return ConsumeConcurrentlyStatus.CONSUME_SUCCESS;
                });
                consumer.start();
                break;
            case "+called":
                while (HAD.get(words[1]).get() < Integer.parseInt(words[2])) {
                    Thread.sleep(100);
                }
                break;
            case "+wait":
                Thread.sleep(Long.parseLong(words[1]) * 1_000);
                break;
            case "+user":
                hook = words[1].equals("-") ? null : new AclClientRPCHook(new SessionCredentials(words[1], words[2]));
                break;
            default:
                String[] full = new String[words.length + 2];
                for (int i = 0; i < words.length; i++) {
                    full[i] = USED.matcher(words[i]).replaceAll(found -> Matcher.quoteReplacement(found.group().equals("UNIQUE-ID") ? uniqueId : offsetId));
                }
                full[words.length] = "-n";
                full[words.length + 1] = nameServer;
                MQAdminStartup.main0(full, hook);
        }
    }
}

import com.alibaba.fastjson2.JSON;
import com.alibaba.fastjson2.JSONWriter;
import java.net.InetSocketAddress;
import java.nio.ByteBuffer;
import java.nio.charset.StandardCharsets;
import java.nio.file.Files;
import java.nio.file.Path;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.HexFormat;
import java.util.LinkedHashMap;
import java.util.List;
import java.util.Map;
import java.util.TreeMap;
import java.util.TreeSet;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import java.util.concurrent.Future;
import org.apache.rocketmq.broker.filter.ConsumerFilterManager;
import org.apache.rocketmq.broker.offset.ConsumerOffsetManager;
import org.apache.rocketmq.broker.schedule.DelayOffsetSerializeWrapper;
import org.apache.rocketmq.broker.subscription.SubscriptionGroupManager;
import org.apache.rocketmq.broker.topic.TopicConfigManager;
import org.apache.rocketmq.common.BoundaryType;
import org.apache.rocketmq.common.BrokerConfig;
import org.apache.rocketmq.common.ConfigManager;
import org.apache.rocketmq.common.message.MessageConst;
import org.apache.rocketmq.common.message.MessageDecoder;
import org.apache.rocketmq.common.message.MessageExt;
import org.apache.rocketmq.common.message.MessageExtBrokerInner;
import org.apache.rocketmq.remoting.protocol.RemotingSerializable;
import org.apache.rocketmq.store.CommitLog;
import org.apache.rocketmq.store.DefaultMessageStore;
import org.apache.rocketmq.store.GetMessageResult;
import org.apache.rocketmq.store.PutMessageResult;
import org.apache.rocketmq.store.QueryMessageResult;
import org.apache.rocketmq.store.SelectMappedBufferResult;
import org.apache.rocketmq.store.config.MessageStoreConfig;
import org.apache.rocketmq.store.queue.ConsumeQueueInterface;
import org.apache.rocketmq.store.queue.CqUnit;
import org.apache.rocketmq.store.stats.BrokerStatsManager;

/**
 * RocketMQ's own store as a question-and-answer program for the interop tests.
 *
 * <p>Its argument is a file of commands, one a line, words separated by tabs; those of one directory run in order,
 * directories side by side:
 *
 * <pre>
 * list    DIR OUT SIZES          open, recover, list everything, close
 * append  DIR OUT SIZES COUNT    the same, with COUNT messages appended before listing
 * halt    DIR SIZES COUNT        open, append COUNT messages, end the process without closing anything
 * configs DIR OUT                read DIR/*.json with the broker's classes, write what they would write
 * bench   DIR OUT SIZES COUNT    put COUNT messages one by one, in one thread, wait for their dispatch, get them all
 * recover DIR OUT SIZES          time load() and leave without closing
 * </pre>
 *
 * SIZES is commitLog,consumeQueue,hashSlots,indexes. Output is JSON.
 */
public final class StoreDoor {
  private static final int THREADS = 8;
  private static final String[] TAGS = {"paid", "оплачен", "已付款", null};

  public static void main(String[] arguments) throws Exception {
    Map<String, List<String[]>> byDirectory = new LinkedHashMap<>();
    for (String line : Files.readAllLines(Path.of(arguments[0]))) {
      String[] words = line.split("\t");
      byDirectory.computeIfAbsent(words[1], directory -> new ArrayList<>()).add(words);
    }
    ExecutorService pool = Executors.newFixedThreadPool(THREADS); // opening and closing a store is mostly waiting
    List<Future<Void>> runs = new ArrayList<>();
    for (List<String[]> commands : byDirectory.values()) {
      runs.add(pool.submit(() -> {
        for (String[] command : commands) {
          run(command);
        }
        return null;
      }));
    }
    for (Future<Void> run : runs) {
      run.get();
    }
    System.exit(0);
  }

  private static void run(String[] word) throws Exception {
    switch (word[0]) {
      case "list" -> save(word[2], listed(word[1], word[3], 0));
      case "append" -> save(word[2], listed(word[1], word[3], Integer.parseInt(word[4])));
      case "halt" -> {
        DefaultMessageStore store = open(word[1], word[2]);
        store.start();
        append(store, Integer.parseInt(word[3]));
        waitForDispatch(store);
        Runtime.getRuntime().halt(0);
      }
      case "configs" -> save(word[2], configs(Path.of(word[1])));
      case "bench" -> save(word[2], bench(word[1], word[3], Integer.parseInt(word[4])));
      case "recover" -> {
        long start = System.nanoTime();
        DefaultMessageStore store = open(word[1], word[3]);
        double seconds = (System.nanoTime() - start) / 1e9;
        save(word[2], Map.of("seconds", seconds, "maxPhysicalOffset", store.getMaxPhyOffset()));
        Runtime.getRuntime().halt(0);
      }
      default -> throw new IllegalArgumentException(word[0]);
    }
  }

  private static DefaultMessageStore open(String directory, String sizes) throws Exception {
    int[] size = Arrays.stream(sizes.split(",")).mapToInt(Integer::parseInt).toArray();
    MessageStoreConfig config = new MessageStoreConfig();
    config.setStorePathRootDir(directory);
    config.setStorePathCommitLog(directory + "/commitlog");
    config.setMappedFileSizeCommitLog(size[0]);
    config.setMappedFileSizeConsumeQueue(size[1]);
    config.setMaxHashSlotNum(size[2]);
    config.setMaxIndexNum(size[3]);
    config.setTimerWheelEnable(false);
    config.setHaListenPort(0);
    config.setCleanFileForciblyEnable(false);
    config.setDiskMaxUsedSpaceRatio(95);
    config.setFileReservedTime(24 * 3650);
    BrokerConfig broker = new BrokerConfig();
    broker.setBrokerIP1("127.0.0.1");
    broker.setListenPort(20911);
    DefaultMessageStore store = new DefaultMessageStore(config, new BrokerStatsManager("interop", false),
        (topic, queue, offset, tags, time, bits, properties) -> { }, broker, new ConcurrentHashMap<>());
    if (!store.load()) {
      throw new IllegalStateException("RocketMQ refuses to load " + directory);
    }
    return store;
  }

  private static Map<String, Object> listed(String directory, String sizes, int count) throws Exception {
    DefaultMessageStore store = open(directory, sizes);
    long recovered = store.getMaxPhyOffset();
    store.start();
    waitForDispatch(store);
    append(store, count);
    waitForDispatch(store);
    Map<String, Object> answer = new LinkedHashMap<>();
    answer.put("recoveredPhysicalOffset", recovered);
    answer.put("minPhysicalOffset", store.getMinPhyOffset());
    answer.put("maxPhysicalOffset", store.getMaxPhyOffset());
    Map<String, TreeSet<String>> keys = new TreeMap<>();
    answer.put("messages", messages(store, keys));
    answer.put("queues", queues(store));
    answer.put("timeLookups", timeLookups(store));
    answer.put("keyLookups", keyLookups(store, keys));
    store.shutdown();
    return answer;
  }

  private static List<Object> messages(DefaultMessageStore store, Map<String, TreeSet<String>> keys) {
    List<Object> rows = new ArrayList<>();
    long offset = Math.max(0, store.getMinPhyOffset());
    while (offset < store.getMaxPhyOffset()) {
      SelectMappedBufferResult head = store.getCommitLog().getMessage(offset, 8);
      int size = head.getByteBuffer().getInt();
      int magic = head.getByteBuffer().getInt();
      head.release();
      if (magic == CommitLog.BLANK_MAGIC_CODE) {
        offset = store.getCommitLog().rollNextFile(offset);
        continue;
      }
      SelectMappedBufferResult unit = store.getCommitLog().getMessage(offset, size);
      byte[] bytes = new byte[size];
      unit.getByteBuffer().get(bytes);
      unit.release();
      MessageExt message = MessageDecoder.decode(ByteBuffer.wrap(bytes), true, false);
      TreeSet<String> topicKeys = keys.computeIfAbsent(message.getTopic(), topic -> new TreeSet<>());
      if (message.getKeys() != null) {
        Arrays.stream(message.getKeys().split(" ")).filter(key -> !key.isEmpty()).forEach(topicKeys::add);
      }
      String unique = message.getProperty(MessageConst.PROPERTY_UNIQ_CLIENT_MESSAGE_ID_KEYIDX);
      if (unique != null) {
        topicKeys.add(unique);
      }
      rows.add(Arrays.asList(offset, message.getTopic(), message.getQueueId(), message.getQueueOffset(),
          message.getStoreTimestamp(), HexFormat.of().formatHex(bytes)));
      offset += size;
    }
    return rows;
  }

  private static List<Object> queues(DefaultMessageStore store) {
    List<Object> rows = new ArrayList<>();
    new TreeMap<>(store.getConsumeQueueTable()).forEach((topic, byId) -> new TreeMap<>(byId).forEach((id, queue) -> {
      List<Object> units = new ArrayList<>();
      for (long at = queue.getMinOffsetInQueue(); at < queue.getMaxOffsetInQueue(); at++) {
        CqUnit unit = queue.get(at);
        units.add(unit == null ? null : Arrays.asList(unit.getPos(), unit.getSize(), unit.getTagsCode()));
      }
      rows.add(Arrays.asList(topic, id, queue.getMinOffsetInQueue(), queue.getMaxOffsetInQueue(), units));
    }));
    return rows;
  }

  private static List<Object> timeLookups(DefaultMessageStore store) {
    List<Object> rows = new ArrayList<>();
    new TreeMap<>(store.getConsumeQueueTable()).forEach((topic, byId) -> new TreeMap<>(byId).forEach((id, queue) -> {
      TreeSet<Long> times = new TreeSet<>();
      for (long at = queue.getMinOffsetInQueue(); at < queue.getMaxOffsetInQueue(); at++) {
        CqUnit unit = queue.get(at);
        long time = store.getCommitLog().pickupStoreTimestamp(unit.getPos(), unit.getSize());
        times.addAll(Arrays.asList(time - 1, time, time + 1));
      }
      for (long time : times) {
        rows.add(Arrays.asList(topic, id, time, store.getOffsetInQueueByTime(topic, id, time, BoundaryType.LOWER),
            store.getOffsetInQueueByTime(topic, id, time, BoundaryType.UPPER)));
      }
    }));
    return rows;
  }

  private static List<Object> keyLookups(DefaultMessageStore store, Map<String, TreeSet<String>> keys) {
    List<Object> rows = new ArrayList<>();
    keys.forEach((topic, ofTopic) -> ofTopic.forEach(key -> {
      QueryMessageResult found = store.queryMessage(topic, key, 64, 0, Long.MAX_VALUE);
      List<Long> offsets = new ArrayList<>();
      for (ByteBuffer unit : found.getMessageBufferList()) {
        offsets.add(MessageDecoder.decode(unit, false, false).getCommitLogOffset());
      }
      found.release();
      rows.add(Arrays.asList(topic, key, offsets));
    }));
    return rows;
  }

  private static void append(DefaultMessageStore store, int count) throws Exception {
    for (int number = 0; number < count; number++) {
      MessageExtBrokerInner message = message("appended", number % 3, "body тело 正文 😀 " + number);
      message.setTags(TAGS[number % TAGS.length]);
      message.setKeys("key-" + number % 5 + " n" + number);
      message.putUserProperty("颜色", "红 " + number);
      put(store, message);
    }
  }

  private static Map<String, Object> bench(String directory, String sizes, int count) throws Exception {
    DefaultMessageStore store = open(directory, sizes);
    store.start();
    String body = "x".repeat(256);
    long start = System.nanoTime();
    for (int number = 0; number < count; number++) {
      MessageExtBrokerInner message = message("bench", number % 4, body);
      message.setTags("TagA");
      message.setKeys("k" + number);
      put(store, message);
    }
    double putSeconds = (System.nanoTime() - start) / 1e9;
    waitForDispatch(store);
    double dispatchedSeconds = (System.nanoTime() - start) / 1e9;
    double getSeconds = timeToGetAll(store);
    store.shutdown();
    return Map.of("put", putSeconds, "putAndDispatch", dispatchedSeconds, "get", getSeconds);
  }

  private static double timeToGetAll(DefaultMessageStore store) throws Exception {
    long start = System.nanoTime();
    for (int queueId = 0; queueId < 4; queueId++) {
      long offset = 0;
      while (offset < store.getMaxOffsetInQueue("bench", queueId)) {
        GetMessageResult result = store.getMessage("group", "bench", queueId, offset, 32, null);
        offset = result.getNextBeginOffset();
        result.release();
      }
    }
    return (System.nanoTime() - start) / 1e9;
  }

  private static MessageExtBrokerInner message(String topic, int queueId, String body) {
    MessageExtBrokerInner message = new MessageExtBrokerInner();
    message.setTopic(topic);
    message.setQueueId(queueId);
    message.setBody(body.getBytes(StandardCharsets.UTF_8));
    message.setBornTimestamp(System.currentTimeMillis());
    message.setBornHost(new InetSocketAddress("127.0.0.1", 8123));
    message.setStoreHost(new InetSocketAddress("127.0.0.1", 20911));
    return message;
  }

  private static void put(DefaultMessageStore store, MessageExtBrokerInner message) throws Exception {
    message.setTagsCode(MessageExtBrokerInner.tagsString2tagsCode(message.getTags()));
    message.setPropertiesString(MessageDecoder.messageProperties2String(message.getProperties()));
    PutMessageResult result = store.putMessage(message);
    while (!result.isOk()) { // the page cache can be busy for a moment
      Thread.sleep(1);
      result = store.putMessage(message);
    }
  }

  private static void waitForDispatch(DefaultMessageStore store) throws Exception {
    while (store.dispatchBehindBytes() > 0) {
      Thread.sleep(2);
    }
  }

  private static Map<String, Object> configs(Path directory) throws Exception {
    Map<String, ConfigManager> managers = new LinkedHashMap<>();
    managers.put("topics.json", new TopicConfigManager());
    managers.put("subscriptionGroup.json", new SubscriptionGroupManager());
    managers.put("consumerOffset.json", new ConsumerOffsetManager());
    managers.put("consumerFilter.json", new ConsumerFilterManager());
    Map<String, Object> texts = new LinkedHashMap<>();
    Path delays = directory.resolve("delayOffset.json");
    if (Files.exists(delays)) {
      texts.put("delayOffset.json", RemotingSerializable.fromJson(Files.readString(delays),
          DelayOffsetSerializeWrapper.class).toJson(true));
    }
    for (Map.Entry<String, ConfigManager> manager : managers.entrySet()) {
      Path file = directory.resolve(manager.getKey());
      if (Files.exists(file)) {
        manager.getValue().decode(Files.readString(file));
        texts.put(manager.getKey(), manager.getValue().encode(true));
      }
    }
    return texts;
  }

  private static void save(String file, Object answer) throws Exception {
    Files.writeString(Path.of(file), JSON.toJSONString(answer, JSONWriter.Feature.LargeObject));
  }
}

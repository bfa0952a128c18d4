import com.fasterxml.jackson.databind.JsonNode;
import com.fasterxml.jackson.databind.ObjectMapper;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.ConcurrentHashMap;
import java.util.concurrent.ExecutorService;
import java.util.concurrent.Executors;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.retry.ExponentialBackoffRetry;

/**
 * A Java process that uses Apache Curator as it is told to, line by line.
 *
 *   java CuratorPeer <address> <sessionTimeoutMs>
 *   in    {"id":1,"on":"a","do":"open","kind":"mutex","path":"/x"}     each line a JSON object
 *   out   {"id":1,"ok":…}   {"id":1,"error":"…"}   {"event":"…","on":"a",…}
 *
 * Whatever is opened has a name, `on`, and a thread of its own: a mutex of Curator's belongs to the
 * thread that took it. What is asked of one name is done in the order asked; of several, side by side.
 * The process ends when its input does.
 */
public final class CuratorPeer {
  static final ObjectMapper json = new ObjectMapper();

  /** Something that was opened: does what the verb says, and answers with what JSON can hold. */
  interface Thing {
    Object run(String verb, JsonNode asked) throws Exception;
  }

  private static final Map<String, ExecutorService> threads = new ConcurrentHashMap<>();
  private static final Map<String, Thing> things = new ConcurrentHashMap<>();

  public static void main(String[] args) throws Exception {
    var retries = new ExponentialBackoffRetry(100, 10);
    CuratorFramework client =
        CuratorFrameworkFactory.builder()
            .connectString(args[0])
            .sessionTimeoutMs(Integer.parseInt(args[1]))
            .connectionTimeoutMs(15_000)
            .retryPolicy(retries)
            .build();
    client.start();
    client.blockUntilConnected();
    long session = client.getZookeeperClient().getZooKeeper().getSessionId();
    say(Map.of("event", "ready", "session", Long.toHexString(session)));
    var input = new BufferedReader(new InputStreamReader(System.in, StandardCharsets.UTF_8));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      JsonNode asked = json.readTree(line);
      String on = asked.path("on").asText();
      threads.computeIfAbsent(on, name -> Executors.newSingleThreadExecutor())
          .execute(() -> answer(client, on, asked));
    }
    client.close();
    System.exit(0);
  }

  private static void answer(CuratorFramework client, String on, JsonNode asked) {
    var reply = new TreeMap<String, Object>();
    reply.put("id", asked.path("id").asInt());
    try {
      String verb = asked.path("do").asText();
      Object result;
      if (verb.equals("open")) {
        things.put(on, Things.open(client, on, asked));
        result = true;
      } else {
        Thing thing = things.get(on);
        if (thing == null) throw new IllegalArgumentException("nothing is open as " + on);
        result = thing.run(verb, asked);
      }
      reply.put("ok", result);
    } catch (Throwable error) {
      reply.put("error", error.toString());
    }
    say(reply);
  }

  static void say(Object message) {
    try {
      String line = json.writeValueAsString(message);
      synchronized (System.out) {
        System.out.println(line);
        System.out.flush();
      }
    } catch (Exception error) {
      throw new IllegalStateException(error);
    }
  }
}

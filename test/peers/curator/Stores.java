import com.fasterxml.jackson.databind.JsonNode;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Map;
import java.util.TreeMap;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.queue.DistributedQueue;
import org.apache.curator.framework.recipes.queue.DistributedPriorityQueue;
import org.apache.curator.framework.recipes.queue.QueueBuilder;
import org.apache.curator.framework.recipes.queue.QueueConsumer;
import org.apache.curator.framework.recipes.queue.QueueSerializer;
import org.apache.curator.framework.recipes.queue.SimpleDistributedQueue;
import org.apache.curator.framework.state.ConnectionState;
import org.apache.curator.x.discovery.ServiceDiscovery;
import org.apache.curator.x.discovery.ServiceDiscoveryBuilder;
import org.apache.curator.x.discovery.ServiceInstance;
import org.apache.curator.x.discovery.ServiceType;
import org.apache.curator.x.discovery.UriSpec;

/** Queues and discovery. */
final class Stores {
  private Stores() {}

  static CuratorPeer.Thing open(CuratorFramework client, String on, JsonNode asked) throws Exception {
    String path = asked.path("path").asText();
    return switch (asked.path("kind").asText()) {
      case "simpleQueue" -> simpleQueue(client, path);
      case "queue" -> queue(client, on, path, asked);
      case "discovery" -> discovery(client, path);
      default -> throw new IllegalArgumentException("no kind " + asked.path("kind"));
    };
  }

  private static CuratorPeer.Thing simpleQueue(CuratorFramework client, String path) {
    var queue = new SimpleDistributedQueue(client, path);
    return (verb, asked) -> switch (verb) {
      case "put" -> queue.offer(asked.path("data").asText().getBytes(StandardCharsets.UTF_8));
      case "take" -> text(queue.poll(Things.timeoutMs(asked), TimeUnit.MILLISECONDS));
      default -> throw Things.unknown(verb);
    };
  }

  private static String text(byte[] data) {
    return data == null ? null : new String(data, StandardCharsets.UTF_8);
  }

  /** With `consume`, each item is an event; without, it only puts. */
  private static CuratorPeer.Thing queue(CuratorFramework client, String on, String path, JsonNode asked)
      throws Exception {
    var consumer = new QueueConsumer<String>() {
      @Override
      public void consumeMessage(String item) {
        CuratorPeer.say(Map.of("event", "item", "on", on, "data", item));
      }

      @Override
      public void stateChanged(CuratorFramework same, ConnectionState state) {}
    };
    var serializer = new QueueSerializer<String>() {
      @Override
      public byte[] serialize(String item) {
        return item.getBytes(StandardCharsets.UTF_8);
      }

      @Override
      public String deserialize(byte[] bytes) {
        return text(bytes);
      }
    };
    var builder = QueueBuilder.builder(
        client, asked.path("consume").asBoolean() ? consumer : null, serializer, path);
    if (!asked.path("lockPath").isMissingNode()) builder.lockPath(asked.path("lockPath").asText());
    if (asked.path("order").asText().equals("priority")) {
      DistributedPriorityQueue<String> queue = builder.buildPriorityQueue(0);
      queue.start();
      return (verb, args) -> switch (verb) {
        case "put" -> {
          queue.put(args.path("data").asText(), args.path("priority").asInt());
          yield queue.flushPuts(10, TimeUnit.SECONDS);
        }
        case "close" -> {
          queue.close();
          yield true;
        }
        default -> throw Things.unknown(verb);
      };
    }
    DistributedQueue<String> queue = builder.buildQueue();
    queue.start();
    return (verb, args) -> switch (verb) {
      case "put" -> {
        queue.put(args.path("data").asText());
        yield queue.flushPuts(10, TimeUnit.SECONDS);
      }
      case "close" -> {
        queue.close();
        yield true;
      }
      default -> throw Things.unknown(verb);
    };
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static CuratorPeer.Thing discovery(CuratorFramework client, String path) throws Exception {
    ServiceDiscovery<Map> discovery =
        ServiceDiscoveryBuilder.builder(Map.class).client(client).basePath(path).build();
    discovery.start();
    return (verb, asked) -> switch (verb) {
      case "register" -> {
        discovery.registerService(instance(asked));
        yield true;
      }
      case "update" -> {
        discovery.updateService(instance(asked));
        yield true;
      }
      case "unregister" -> {
        discovery.unregisterService(instance(asked));
        yield true;
      }
      case "names" -> discovery.queryForNames();
      case "instances" -> {
        var found = new ArrayList<Object>();
        for (ServiceInstance<Map> one : discovery.queryForInstances(asked.path("name").asText())) {
          found.add(plain(one));
        }
        yield found;
      }
      case "close" -> {
        discovery.close();
        yield true;
      }
      default -> throw Things.unknown(verb);
    };
  }

  @SuppressWarnings({"unchecked", "rawtypes"})
  private static ServiceInstance<Map> instance(JsonNode asked) throws Exception {
    var builder = ServiceInstance.<Map>builder()
        .name(asked.path("name").asText())
        .id(asked.path("instance").asText())
        .address(asked.path("address").asText("127.0.0.1"))
        .port(asked.path("port").asInt())
        .serviceType(ServiceType.valueOf(asked.path("serviceType").asText("DYNAMIC")));
    if (asked.has("payload")) {
      builder.payload(CuratorPeer.json.convertValue(asked.get("payload"), TreeMap.class));
    }
    if (asked.has("uriSpec")) builder.uriSpec(new UriSpec(asked.path("uriSpec").asText()));
    return builder.build();
  }

  @SuppressWarnings("rawtypes")
  private static Map<String, Object> plain(ServiceInstance<Map> one) {
    var plain = new TreeMap<String, Object>();
    plain.put("name", one.getName());
    plain.put("id", one.getId());
    plain.put("address", one.getAddress());
    plain.put("port", one.getPort());
    plain.put("sslPort", one.getSslPort());
    plain.put("payload", one.getPayload());
    plain.put("registrationTimeUTC", one.getRegistrationTimeUTC());
    plain.put("serviceType", one.getServiceType().name());
    plain.put("enabled", one.isEnabled());
    plain.put("uri", one.getUriSpec() == null ? null : one.buildUriSpec());
    return plain;
  }
}

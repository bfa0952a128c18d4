import com.fasterxml.jackson.databind.JsonNode;
import java.util.ArrayDeque;
import java.util.ArrayList;
import java.util.Collection;
import java.util.List;
import java.util.Map;
import java.util.concurrent.CountDownLatch;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.recipes.atomic.DistributedAtomicLong;
import org.apache.curator.framework.recipes.atomic.PromotedToLock;
import org.apache.curator.framework.recipes.barriers.DistributedBarrier;
import org.apache.curator.framework.recipes.barriers.DistributedDoubleBarrier;
import org.apache.curator.framework.recipes.leader.LeaderLatch;
import org.apache.curator.framework.recipes.leader.LeaderSelector;
import org.apache.curator.framework.recipes.leader.LeaderSelectorListenerAdapter;
import org.apache.curator.framework.recipes.leader.Participant;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.framework.recipes.locks.InterProcessReadWriteLock;
import org.apache.curator.framework.recipes.locks.InterProcessSemaphoreV2;
import org.apache.curator.framework.recipes.locks.Lease;
import org.apache.curator.framework.recipes.locks.Revoker;
import org.apache.curator.framework.recipes.shared.SharedCount;
import org.apache.curator.retry.RetryNTimes;

/** What can be opened by name: locks, elections, barriers and numbers. Queues and discovery stand in Stores. */
final class Things {
  private Things() {}

  static CuratorPeer.Thing open(CuratorFramework client, String on, JsonNode asked) throws Exception {
    String path = asked.path("path").asText();
    return switch (asked.path("kind").asText()) {
      case "mutex" -> mutex(client, on, path);
      case "readWrite" -> readWrite(client, path);
      case "semaphore" -> semaphore(client, path, asked.path("limit").asInt());
      case "latch" -> latch(client, path, asked.path("as").asText());
      case "selector" -> selector(client, on, path, asked.path("as").asText());
      case "barrier" -> barrier(client, path);
      case "doubleBarrier" -> doubleBarrier(client, path, asked.path("size").asInt());
      case "sharedCount" -> sharedCount(client, path, asked.path("seed").asInt());
      case "atomicLong" -> atomicLong(client, path, asked.path("lockPath").asText());
      default -> Stores.open(client, on, asked);
    };
  }

  private static CuratorPeer.Thing mutex(CuratorFramework client, String on, String path) {
    var mutex = new InterProcessMutex(client, path);
    mutex.makeRevocable(one -> CuratorPeer.say(Map.of("event", "revoked", "on", on)));
    return (verb, asked) -> switch (verb) {
      case "acquire" -> mutex.acquire(timeoutMs(asked), TimeUnit.MILLISECONDS)
          ? String.valueOf(History.tokenOfFirst(client, path, "lock-"))
          : null;
      case "release" -> {
        mutex.release();
        yield true;
      }
      case "participants" -> mutex.getParticipantNodes();
      case "revoke" -> {
        Revoker.attemptRevoke(client, mutex.getParticipantNodes().iterator().next());
        yield true;
      }
      case "rounds" -> {
        var history = historyOf(asked);
        for (int left = asked.path("rounds").asInt(); left > 0; left--) {
          mutex.acquire();
          long token = History.tokenOfFirst(client, path, "lock-");
          history.enter("lock", token);
          history.leave("lock", token);
          mutex.release();
        }
        yield true;
      }
      default -> throw unknown(verb);
    };
  }

  private static CuratorPeer.Thing readWrite(CuratorFramework client, String path) {
    var lock = new InterProcessReadWriteLock(client, path);
    return (verb, asked) -> {
      if (verb.equals("rounds")) {
        var history = historyOf(asked);
        for (int left = asked.path("rounds").asInt(); left > 0; left--) {
          boolean isRead = left % 3 != 0;
          InterProcessMutex side = isRead ? lock.readLock() : lock.writeLock();
          side.acquire();
          // Which of the readers' nodes is ours, Curator does not tell in all of its versions.
          long token = isRead ? 0 : History.tokenOfFirst(client, path, "__WRIT__");
          history.enter(isRead ? "read" : "write", token);
          history.leave(isRead ? "read" : "write", token);
          side.release();
        }
        return true;
      }
      InterProcessMutex side = asked.path("side").asText().equals("read") ? lock.readLock() : lock.writeLock();
      return switch (verb) {
        case "acquire" -> side.acquire(timeoutMs(asked), TimeUnit.MILLISECONDS);
        case "release" -> {
          side.release();
          yield true;
        }
        default -> throw unknown(verb);
      };
    };
  }

  private static CuratorPeer.Thing semaphore(CuratorFramework client, String path, int limit) {
    var semaphore = new InterProcessSemaphoreV2(client, path, limit);
    var held = new ArrayDeque<Collection<Lease>>();
    return (verb, asked) -> switch (verb) {
      case "acquire" -> {
        var leases = semaphore.acquire(asked.path("count").asInt(1), timeoutMs(asked), TimeUnit.MILLISECONDS);
        if (leases != null) held.add(leases);
        yield leases != null;
      }
      case "release" -> {
        semaphore.returnAll(held.remove());
        yield true;
      }
      case "participants" -> semaphore.getParticipantNodes();
      case "rounds" -> {
        var history = historyOf(asked);
        for (int left = asked.path("rounds").asInt(); left > 0; left--) {
          Lease lease = semaphore.acquire();
          long token = History.tokenOf(client, path + "/leases/" + lease.getNodeName());
          history.enter("lease", token);
          history.leave("lease", token);
          semaphore.returnLease(lease);
        }
        yield true;
      }
      default -> throw unknown(verb);
    };
  }

  private static CuratorPeer.Thing latch(CuratorFramework client, String path, String id) throws Exception {
    var standing = new LeaderLatch[] {new LeaderLatch(client, path, id)};
    return (verb, asked) -> {
      LeaderLatch latch = standing[0];
      return switch (verb) {
        case "start" -> {
          latch.start();
          yield true;
        }
        case "await" -> latch.await(timeoutMs(asked), TimeUnit.MILLISECONDS)
            ? String.valueOf(History.tokenOf(client, latch.getOurPath()))
            : null;
        case "leader" -> latch.getLeader().getId();
        case "participants" -> idsOf(latch.getParticipants());
        case "close" -> {
          latch.close();
          yield true;
        }
        case "rounds" -> {
          var history = historyOf(asked);
          for (int left = asked.path("rounds").asInt(); left > 0; left--) {
            try (var one = new LeaderLatch(client, path, id)) {
              one.start();
              one.await();
              long token = History.tokenOf(client, one.getOurPath());
              history.enter("term", token);
              history.leave("term", token);
            }
          }
          yield true;
        }
        default -> throw unknown(verb);
      };
    };
  }

  private static CuratorPeer.Thing selector(CuratorFramework client, String on, String path, String id) {
    var yields = new LinkedBlockingQueue<Boolean>();
    var history = new History[1];
    var left = new CountDownLatch[1];
    var listener = new LeaderSelectorListenerAdapter() {
      @Override
      public void takeLeadership(CuratorFramework same) throws Exception {
        long token = History.tokenOfFirst(client, path, "lock-");
        if (history[0] == null) {
          CuratorPeer.say(Map.of("event", "leading", "on", on, "token", String.valueOf(token)));
          yields.take();
        } else {
          history[0].enter("term", token);
          history[0].leave("term", token);
          left[0].countDown();
        }
      }
    };
    var selector = new LeaderSelector(client, path, listener);
    selector.setId(id);
    return (verb, asked) -> switch (verb) {
      case "start" -> {
        selector.start();
        yield true;
      }
      case "yield" -> yields.add(true);
      case "leader" -> selector.getLeader().getId();
      case "participants" -> idsOf(selector.getParticipants());
      case "rounds" -> {
        history[0] = historyOf(asked);
        left[0] = new CountDownLatch(asked.path("rounds").asInt());
        selector.autoRequeue();
        selector.start();
        left[0].await();
        selector.close();
        yield true;
      }
      case "close" -> {
        selector.close();
        yield true;
      }
      default -> throw unknown(verb);
    };
  }

  private static CuratorPeer.Thing barrier(CuratorFramework client, String path) {
    var barrier = new DistributedBarrier(client, path);
    return (verb, asked) -> switch (verb) {
      case "close" -> {
        barrier.setBarrier();
        yield true;
      }
      case "remove" -> {
        barrier.removeBarrier();
        yield true;
      }
      case "wait" -> barrier.waitOnBarrier(timeoutMs(asked), TimeUnit.MILLISECONDS);
      default -> throw unknown(verb);
    };
  }

  private static CuratorPeer.Thing doubleBarrier(CuratorFramework client, String path, int size) {
    var barrier = new DistributedDoubleBarrier(client, path, size);
    return (verb, asked) -> switch (verb) {
      case "enter" -> barrier.enter(timeoutMs(asked), TimeUnit.MILLISECONDS);
      case "leave" -> barrier.leave(timeoutMs(asked), TimeUnit.MILLISECONDS);
      default -> throw unknown(verb);
    };
  }

  private static CuratorPeer.Thing sharedCount(CuratorFramework client, String path, int seed) throws Exception {
    var count = new SharedCount(client, path, seed);
    count.start();
    return (verb, asked) -> switch (verb) {
      case "get" -> count.getCount();
      case "set" -> {
        count.setCount(asked.path("value").asInt());
        yield true;
      }
      case "add" -> {
        // As its users do it: try until nobody else was quicker.
        for (int left = asked.path("times").asInt(1); left > 0; left--) {
          while (!count.trySetCount(count.getVersionedValue(), count.getCount() + 1)) {}
        }
        yield true;
      }
      case "close" -> {
        count.close();
        yield true;
      }
      default -> throw unknown(verb);
    };
  }

  private static CuratorPeer.Thing atomicLong(CuratorFramework client, String path, String lockPath) {
    var retries = new RetryNTimes(100, 1);
    var promoted = lockPath.isEmpty()
        ? null
        : PromotedToLock.builder().lockPath(lockPath).retryPolicy(retries).build();
    var number = promoted == null
        ? new DistributedAtomicLong(client, path, retries)
        : new DistributedAtomicLong(client, path, retries, promoted);
    return (verb, asked) -> switch (verb) {
      case "get" -> String.valueOf(number.get().postValue());
      case "add" -> {
        int added = 0;
        for (int left = asked.path("times").asInt(1); left > 0; left--) {
          if (number.add(asked.path("value").asLong(1)).succeeded()) added++;
        }
        yield added;
      }
      default -> throw unknown(verb);
    };
  }

  static long timeoutMs(JsonNode asked) {
    return asked.path("timeoutMs").asLong(60_000);
  }

  static History historyOf(JsonNode asked) throws Exception {
    return new History(asked.path("history").asText(), asked.path("who").asText());
  }

  static IllegalArgumentException unknown(String verb) {
    return new IllegalArgumentException("no verb " + verb);
  }

  private static List<String> idsOf(Collection<Participant> participants) {
    var ids = new ArrayList<String>();
    for (Participant one : participants) ids.add(one.getId());
    return ids;
  }
}

import com.fasterxml.jackson.databind.JsonNode;
import com.sun.management.OperatingSystemMXBean;
import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.lang.management.ManagementFactory;
import java.util.ArrayList;
import java.util.List;
import java.util.Map;
import org.apache.curator.framework.CuratorFramework;
import org.apache.curator.framework.CuratorFrameworkFactory;
import org.apache.curator.framework.recipes.locks.InterProcessMutex;
import org.apache.curator.retry.RetryOneTime;

/**
 * Curator's InterProcessMutex under load, for the bench of locks: each contender is a session and a
 * thread of its own, takes the lock, lets go, and asks again.
 *
 *   java LockLoad <address>
 *   in    {"contenders":50,"warmSeconds":1,"seconds":1}           each line a task
 *   out   {"ops":…,"seconds":…,"cpuUs":…,"waitsUs":[p50,p99,max],"grants":[…],"failed":0}
 *
 * It ends when its input does.
 */
public final class LockLoad {
  private static volatile boolean isMeasured;
  private static volatile boolean isOver;
  private static final List<CuratorFramework> clients = new ArrayList<>();

  public static void main(String[] args) throws Exception {
    var input = new BufferedReader(new InputStreamReader(System.in));
    for (String line = input.readLine(); line != null; line = input.readLine()) {
      CuratorPeer.say(run(args[0], CuratorPeer.json.readTree(line)));
    }
    System.exit(0);
  }

  private static Map<String, Object> run(String address, JsonNode task) throws Exception {
    int contenders = task.path("contenders").asInt();
    while (clients.size() < contenders) {
      var client = CuratorFrameworkFactory.newClient(address, 30_000, 15_000, new RetryOneTime(100));
      client.start();
      client.blockUntilConnected();
      clients.add(client);
    }
    isOver = false;
    var threads = new ArrayList<Thread>();
    var waits = new ArrayList<List<Long>>();
    for (CuratorFramework client : clients.subList(0, contenders)) {
      var own = new ArrayList<Long>();
      waits.add(own);
      threads.add(new Thread(() -> contend(client, own)));
    }
    for (Thread thread : threads) thread.start();
    Thread.sleep((long) (task.path("warmSeconds").asDouble() * 1e3));
    long cpu = cpuNs();
    long begun = System.nanoTime();
    isMeasured = true;
    Thread.sleep((long) (task.path("seconds").asDouble() * 1e3));
    isMeasured = false;
    double seconds = (System.nanoTime() - begun) / 1e9;
    cpu = cpuNs() - cpu;
    isOver = true;
    for (Thread thread : threads) thread.join();
    long[] all = waits.stream().flatMap(List::stream).mapToLong(Long::longValue).sorted().toArray();
    return Map.of(
        "ops", all.length,
        "seconds", seconds,
        "cpuUs", cpu / 1e3,
        "failed", 0,
        "waitsUs", List.of(at(all, 0.5), at(all, 0.99), at(all, 1)),
        "grants", waits.stream().map(List::size).toList());
  }

  private static void contend(CuratorFramework client, List<Long> waits) {
    var mutex = new InterProcessMutex(client, "/bench/lock");
    try {
      while (!isOver) {
        long asked = System.nanoTime();
        mutex.acquire();
        if (isMeasured) waits.add((System.nanoTime() - asked) / 1_000);
        mutex.release();
      }
    } catch (Exception error) {
      error.printStackTrace();
      System.exit(1);
    }
  }

  private static long at(long[] sorted, double share) {
    if (sorted.length == 0) return 0;
    return sorted[(int) Math.min(sorted.length - 1, sorted.length * share)];
  }

  private static long cpuNs() {
    return ((OperatingSystemMXBean) ManagementFactory.getOperatingSystemMXBean()).getProcessCpuTime();
  }
}

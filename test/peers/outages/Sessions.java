import java.io.BufferedReader;
import java.io.InputStreamReader;
import java.util.ArrayList;
import java.util.List;
import java.util.Random;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.ZooKeeper;

/**
 * Holds sessions with Apache's Java client, and tells which of them were lost.
 *
 *   java -cp … Sessions.java
 *   open <address> <sessions> <timeoutMs>   connects them, spread over a third of the timeout; prints "open"
 *   count                                   prints "<connected> <lost> <neither>"
 *   close                                   closes them; prints "closed"
 */
public class Sessions {
  static final class Held implements Watcher {
    volatile boolean isLost;
    volatile boolean isConnected;
    ZooKeeper zk;

    @Override
    public void process(org.apache.zookeeper.WatchedEvent event) {
      switch (event.getState()) {
        case SyncConnected -> isConnected = true;
        case Expired, Closed -> { isLost = true; isConnected = false; }
        default -> isConnected = false;
      }
    }
  }

  public static void main(String[] args) throws Exception {
    BufferedReader in = new BufferedReader(new InputStreamReader(System.in));
    List<Held> all = new ArrayList<>();
    Random random = new Random();
    for (String line; (line = in.readLine()) != null; ) {
      String[] words = line.split(" ");
      if (words[0].equals("open")) {
        int timeoutMs = Integer.parseInt(words[3]);
        int sessions = Integer.parseInt(words[2]);
        for (int i = 0; i < sessions; i++) {
          Held held = new Held();
          held.zk = new ZooKeeper(words[1], timeoutMs, held);
          all.add(held);
          Thread.sleep(random.nextInt(Math.max(1, 2 * timeoutMs / 3 / sessions)));
        }
        for (Held held : all) while (!held.isConnected) Thread.sleep(5);
        System.out.println("open");
      } else if (words[0].equals("count")) {
        long lost = all.stream().filter(held -> held.isLost).count();
        long connected = all.stream().filter(held -> !held.isLost && held.isConnected).count();
        System.out.println(connected + " " + lost + " " + (all.size() - lost - connected));
      } else if (words[0].equals("close")) {
        for (Held held : all) held.zk.close(2000);
        all.clear();
        System.out.println("closed");
      }
    }
  }
}

import java.io.IOException;
import java.nio.ByteBuffer;
import java.nio.channels.FileChannel;
import java.nio.charset.StandardCharsets;
import java.nio.file.Path;
import java.nio.file.StandardOpenOption;
import org.apache.curator.framework.CuratorFramework;

/**
 * The history that all contenders, whatever their language, append to: a line each time one comes to
 * hold something and each time it is about to let go. One small write to a file opened for appending is
 * whole and in order on a local file system, so that the lines stand as things happened.
 */
final class History {
  private final FileChannel file;
  private final String who;

  History(String path, String who) throws IOException {
    this.file = FileChannel.open(Path.of(path), StandardOpenOption.WRITE, StandardOpenOption.APPEND);
    this.who = who;
  }

  void enter(String kind, long token) throws IOException {
    write("enter", kind, token);
  }

  void leave(String kind, long token) throws IOException {
    write("leave", kind, token);
  }

  private void write(String what, String kind, long token) throws IOException {
    String line = what + " " + kind + " " + who + " " + token + "\n";
    file.write(ByteBuffer.wrap(line.getBytes(StandardCharsets.UTF_8)));
  }

  /** The czxid of the lowest numbered node of this kind: the holder's own, while it holds. */
  static long tokenOfFirst(CuratorFramework client, String path, String prefix) throws Exception {
    String first = null;
    for (String name : client.getChildren().forPath(path)) {
      if (!name.contains(prefix)) continue;
      if (first == null || number(name) < number(first)) first = name;
    }
    return tokenOf(client, path + "/" + first);
  }

  static long tokenOf(CuratorFramework client, String path) throws Exception {
    var stat = client.checkExists().forPath(path);
    if (stat == null) throw new IllegalStateException(path + " is gone while it is held");
    return stat.getCzxid();
  }

  private static long number(String name) {
    return Long.parseLong(name.substring(name.length() - 10));
  }
}

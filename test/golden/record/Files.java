/*
 * Fills a server with every kind of node, session and transaction, and tells what a client then sees.
 *
 *   java -cp <ZooKeeper's jars> Files.java first|second|dump <host:port>
 *
 * "first" and "second" leave sessions open: the program halts without closing them. On standard output:
 *
 *   session <id> <timeout ms>      a session left open
 *   mode <path> <mode> [<ttl>]     what a node is that its stat does not tell
 *   node <JSON>                    a node, as read over the wire by one who may read all
 *
 * Works with the client of 3.8.0 as well.
 */
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.CountDownLatch;
import java.util.stream.Collectors;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.StatsTrack;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.cli.SetQuotaCommand;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

public class Files {
    static final List<ACL> OPEN = Ids.OPEN_ACL_UNSAFE;
    static String address;

    public static void main(String[] args) throws Exception {
        address = args[1];
        switch (args[0]) {
            case "first":
                first();
                break;
            case "second":
                second();
                break;
            case "dump":
                ZooKeeper zk = connect(30_000);
                zk.addAuthInfo("digest", bytes("super:test"));
                dump(zk, "/");
                zk.close();
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.out.flush();
        Runtime.getRuntime().halt(0);
    }

    static void first() throws Exception {
        ZooKeeper zk = connect(500_000);
        leaveOpen(zk);
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }
        persistent(zk, "/data", null);
        persistent(zk, "/data/text", bytes("hello"));
        persistent(zk, "/data/null", null);
        persistent(zk, "/data/empty", new byte[0]);
        persistent(zk, "/data/binary", all);
        persistent(zk, "/zürich", bytes("grüezi"));
        persistent(zk, "/zürich/日本", bytes("こんにちは"));
        persistent(zk, "/deep", null);
        persistent(zk, "/deep/a", null);
        persistent(zk, "/deep/a/b", null);
        persistent(zk, "/deep/a/b/c", bytes("bottom"));

        persistent(zk, "/sequence", null);
        for (int i = 0; i < 3; i++) {
            zk.create("/sequence/s-", bytes("" + i), OPEN, CreateMode.PERSISTENT_SEQUENTIAL);
        }
        zk.delete("/sequence/s-0000000001", -1);
        zk.create("/sequence/", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL);

        mode("/box", "container");
        zk.create("/box", bytes("box"), OPEN, CreateMode.CONTAINER);
        persistent(zk, "/box/thing", null);
        mode("/box-unused", "container");
        zk.create("/box-unused", null, OPEN, CreateMode.CONTAINER);
        mode("/ttl", "ttl 500000000");
        zk.create("/ttl", bytes("soon"), OPEN, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 500_000_000);
        persistent(zk, "/ttl/child", null);
        mode("/ttl/s-0000000001", "ttl 1099511627775");
        zk.create("/ttl/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, new Stat(), 1_099_511_627_775L);

        persistent(zk, "/acl", null);
        zk.create("/acl/read-only", null, Ids.READ_ACL_UNSAFE, CreateMode.PERSISTENT);
        zk.addAuthInfo("digest", bytes("ann:secret"));
        zk.create("/acl/own", bytes("mine"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT);
        zk.create("/acl/own/child", null, OPEN, CreateMode.PERSISTENT);
        zk.create("/acl/several", null, several(), CreateMode.PERSISTENT);
        zk.create("/acl/several-again", null, several(), CreateMode.PERSISTENT);
        zk.create("/acl/changed", null, OPEN, CreateMode.PERSISTENT);
        zk.setACL("/acl/changed", Arrays.asList(new ACL(Perms.ADMIN, Ids.ANYONE_ID_UNSAFE)), 0);
        zk.setACL("/acl/changed", several(), -1);

        persistent(zk, "/versions", bytes("0"));
        for (int i = 1; i <= 4; i++) {
            zk.setData("/versions", bytes("" + i), i - 1);
        }
        zk.setData("/versions", null, -1);
        persistent(zk, "/versions/gone", null);
        zk.delete("/versions/gone", 0);

        persistent(zk, "/limited", bytes("12345"));
        StatsTrack limits = new StatsTrack();
        limits.setCount(100);
        limits.setBytes(1_000);
        SetQuotaCommand.createQuota(zk, "/limited", limits);
        persistent(zk, "/limited/a", bytes("123"));
        persistent(zk, "/limited/b", bytes("1"));
        zk.setData("/limited/b", bytes("12"), -1);
        zk.delete("/limited/a", -1);

        zk.multi(Arrays.asList(
            Op.create("/multi", bytes("m"), OPEN, CreateMode.PERSISTENT),
            Op.create("/multi/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL),
            Op.create("/multi/e", null, OPEN, CreateMode.EPHEMERAL),
            Op.create("/multi/brief", null, OPEN, CreateMode.PERSISTENT),
            Op.create("/multi/box", null, OPEN, CreateMode.CONTAINER),
            Op.create("/multi/ttl", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, 600_000_000),
            Op.check("/multi", 0),
            Op.setData("/multi", bytes("mm"), 0),
            Op.delete("/multi/brief", -1)));
        mode("/multi/box", "container");
        mode("/multi/ttl", "ttl 600000000");
        refused(() -> zk.multi(Arrays.asList(
            Op.create("/never", null, OPEN, CreateMode.PERSISTENT), Op.check("/none", -1))));
        refused(() -> persistent(zk, "/data", null));
        refused(() -> zk.delete("/none", -1));
        refused(() -> zk.setData("/data", null, 7));

        persistent(zk, "/ephemerals", null);
        zk.create("/ephemerals/stays", bytes("first"), OPEN, CreateMode.EPHEMERAL);
        zk.create("/ephemerals/s-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL);
        ZooKeeper brief = connect(30_000);
        brief.create("/ephemerals/goes", null, OPEN, CreateMode.EPHEMERAL);
        brief.create("/ephemerals/goes-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL);
        brief.close();
        leaveOpen(connect(400_000));
    }

    /** After a restart, on top of what was there. */
    static void second() throws Exception {
        ZooKeeper zk = connect(300_000);
        leaveOpen(zk);
        zk.setData("/data/text", bytes("hello again"), 0);
        zk.delete("/data/empty", -1);
        zk.delete("/deep/a/b/c", -1);
        zk.create("/sequence/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL);
        zk.create("/ephemerals/second", bytes("second"), OPEN, CreateMode.EPHEMERAL);
        persistent(zk, "/limited/c", bytes("1234"));
        zk.setACL("/zürich/日本", Ids.READ_ACL_UNSAFE, -1);
        zk.multi(Arrays.asList(Op.setData("/multi", bytes("mmm"), 1), Op.delete("/multi/box", -1)));
        refused(() -> zk.create("/ephemerals/stays", null, OPEN, CreateMode.EPHEMERAL));
        ZooKeeper brief = connect(30_000);
        brief.create("/ephemerals/brief", null, OPEN, CreateMode.EPHEMERAL);
        brief.close();
    }

    static void dump(ZooKeeper zk, String path) throws Exception {
        Stat stat = new Stat();
        byte[] data = zk.getData(path, false, stat);
        List<ACL> acls = zk.getACL(path, new Stat());
        System.out.println("node {\"path\":" + quote(path)
            + ",\"data\":" + (data == null ? "null" : quote(hex(data)))
            + ",\"acl\":[" + acls.stream().map(Files::json).collect(Collectors.joining(",")) + "]"
            + ",\"stat\":" + json(stat) + "}");
        List<String> names = zk.getChildren(path, false);
        Collections.sort(names);
        for (String name : names) {
            dump(zk, path.equals("/") ? "/" + name : path + "/" + name);
        }
    }

    static String json(ACL acl) {
        return "{\"perms\":" + acl.getPerms() + ",\"scheme\":" + quote(acl.getId().getScheme())
            + ",\"id\":" + quote(acl.getId().getId()) + "}";
    }

    static String json(Stat stat) {
        return String.format(
            "{\"czxid\":\"%d\",\"mzxid\":\"%d\",\"ctime\":\"%d\",\"mtime\":\"%d\",\"version\":\"%d\",\"cversion\":\"%d\","
                + "\"aversion\":\"%d\",\"ephemeralOwner\":\"%d\",\"dataLength\":\"%d\",\"numChildren\":\"%d\",\"pzxid\":\"%d\"}",
            stat.getCzxid(), stat.getMzxid(), stat.getCtime(), stat.getMtime(), stat.getVersion(), stat.getCversion(),
            stat.getAversion(), stat.getEphemeralOwner(), stat.getDataLength(), stat.getNumChildren(), stat.getPzxid());
    }

    /** No path or id here holds what JSON would want escaped. */
    static String quote(String text) {
        return '"' + text + '"';
    }

    static String hex(byte[] bytes) {
        StringBuilder text = new StringBuilder();
        for (byte b : bytes) {
            text.append(String.format("%02x", b));
        }
        return text.toString();
    }

    static ZooKeeper connect(int timeoutMs) throws Exception {
        CountDownLatch connected = new CountDownLatch(1);
        ZooKeeper zk = new ZooKeeper(address, timeoutMs, event -> {
            if (event.getState() == KeeperState.SyncConnected) {
                connected.countDown();
            }
        });
        connected.await();
        return zk;
    }

    static void leaveOpen(ZooKeeper zk) {
        System.out.println("session 0x" + Long.toHexString(zk.getSessionId()) + " " + zk.getSessionTimeout());
    }

    static void mode(String path, String mode) {
        System.out.println("mode " + path + " " + mode);
    }

    static void persistent(ZooKeeper zk, String path, byte[] data) throws Exception {
        zk.create(path, data, OPEN, CreateMode.PERSISTENT);
    }

    interface Call {
        void run() throws Exception;
    }

    /** Leaves an error in the log. */
    static void refused(Call call) throws Exception {
        try {
            call.run();
        } catch (KeeperException e) {
            return;
        }
        throw new IllegalStateException("nothing was refused");
    }

    static List<ACL> several() {
        List<ACL> acls = new ArrayList<>();
        acls.add(new ACL(Perms.ALL, new Id("digest", "ann:7RJfAeIvrl4zdj6sS2fXrQHDvHM=")));
        acls.add(new ACL(Perms.READ | Perms.WRITE, new Id("ip", "10.0.0.0/8")));
        acls.add(new ACL(Perms.READ, Ids.ANYONE_ID_UNSAFE));
        return acls;
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }
}

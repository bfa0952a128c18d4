/*
 * Drives Apache's own Java client through every request it can send, while record.ts listens in between.
 *
 *   java -cp <ZooKeeper's jars> Record.java <scenario> <recorded host:port> <direct host:port>
 *
 * Before each step its name goes to standard output, and a line from standard input says that record.ts has
 * taken note. Of other lines "cut" ends the recorded connection and keeps new ones out until "release".
 * A step that ends otherwise than it says ends the program: wrong goldens are worse than none.
 */
import java.io.BufferedReader;
import java.io.IOException;
import java.io.InputStreamReader;
import java.nio.charset.StandardCharsets;
import java.util.ArrayList;
import java.util.Arrays;
import java.util.Collections;
import java.util.List;
import java.util.concurrent.BlockingQueue;
import java.util.concurrent.LinkedBlockingQueue;
import java.util.concurrent.TimeUnit;
import org.apache.zookeeper.AddWatchMode;
import org.apache.zookeeper.CreateMode;
import org.apache.zookeeper.CreateOptions;
import org.apache.zookeeper.KeeperException;
import org.apache.zookeeper.KeeperException.Code;
import org.apache.zookeeper.Op;
import org.apache.zookeeper.StatsTrack;
import org.apache.zookeeper.WatchedEvent;
import org.apache.zookeeper.Watcher;
import org.apache.zookeeper.Watcher.Event.KeeperState;
import org.apache.zookeeper.Watcher.WatcherType;
import org.apache.zookeeper.ZooDefs.Ids;
import org.apache.zookeeper.ZooDefs.Perms;
import org.apache.zookeeper.ZooKeeper;
import org.apache.zookeeper.admin.ZooKeeperAdmin;
import org.apache.zookeeper.cli.SetQuotaCommand;
import org.apache.zookeeper.data.ACL;
import org.apache.zookeeper.data.Id;
import org.apache.zookeeper.data.Stat;

public class Record {
    static final int SESSION_TIMEOUT_MS = 30_000;
    static final List<ACL> OPEN = Ids.OPEN_ACL_UNSAFE;
    static final BufferedReader ANSWERS = new BufferedReader(new InputStreamReader(System.in));

    static String recorded;
    static String direct;

    public static void main(String[] args) throws Exception {
        recorded = args[1];
        direct = args[2];
        switch (args[0]) {
            case "standalone":
                basics();
                multis();
                acls();
                watches();
                reconnects();
                sessions();
                break;
            case "extended-types-off":
                extendedTypesOff();
                break;
            case "quota":
                quota();
                break;
            case "sasl":
                sasl();
                break;
            case "sasl-required":
                saslRequired();
                break;
            case "ensemble":
                ensemble();
                break;
            case "reconfig-enabled":
                reconfigOfOne();
                break;
            case "read-only":
                readOnly();
                break;
            default:
                throw new IllegalArgumentException(args[0]);
        }
        System.exit(0);
    }

    static void basics() throws Exception {
        Client c = new Client("connect, a new session");
        ZooKeeper zk = c.zk;
        byte[] all = new byte[256];
        for (int i = 0; i < all.length; i++) {
            all[i] = (byte) i;
        }

        step("create persistent", () -> zk.create("/a", bytes("one"), OPEN, CreateMode.PERSISTENT));
        step("create with null data", () -> zk.create("/a/null", null, OPEN, CreateMode.PERSISTENT));
        step("create with empty data", () -> zk.create("/a/empty", new byte[0], OPEN, CreateMode.PERSISTENT));
        step("create with binary data", () -> zk.create("/a/binary", all, OPEN, CreateMode.PERSISTENT));
        step("create with a non-ASCII path", () -> zk.create("/zürich", bytes("grüezi"), OPEN, CreateMode.PERSISTENT));
        step("create below a non-ASCII path", () -> zk.create("/zürich/日本", bytes("こんにちは"), OPEN, CreateMode.PERSISTENT));
        step("create persistent sequential", () -> zk.create("/a/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL));
        step("create sequential with no name but the number", () -> zk.create("/a/", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL));
        step("create ephemeral", () -> zk.create("/a/e", bytes("mine"), OPEN, CreateMode.EPHEMERAL));
        step("create ephemeral sequential", () -> zk.create("/a/es-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL));
        step("create a node that exists", Code.NODEEXISTS, () -> zk.create("/a", null, OPEN, CreateMode.PERSISTENT));
        step("create below a missing node", Code.NONODE, () -> zk.create("/none/x", null, OPEN, CreateMode.PERSISTENT));
        step("create below an ephemeral node", Code.NOCHILDRENFOREPHEMERALS, () -> zk.create("/a/e/x", null, OPEN, CreateMode.PERSISTENT));
        step("create with auth ids and none authenticated", Code.INVALIDACL, () -> zk.create("/a/x", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
        step("create with a scheme nobody knows", Code.INVALIDACL, () -> zk.create("/a/x", null, acl(Perms.ALL, "nope", "x"), CreateMode.PERSISTENT));

        Stat stat = new Stat();
        step("create2 persistent", () -> zk.create("/b", bytes("two"), OPEN, CreateMode.PERSISTENT, stat));
        step("create2 persistent sequential", () -> zk.create("/b/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL, stat));
        step("create2 ephemeral", () -> zk.create("/b/e", new byte[0], OPEN, CreateMode.EPHEMERAL, stat));
        step("create2 ephemeral sequential", () -> zk.create("/b/es-", null, OPEN, CreateMode.EPHEMERAL_SEQUENTIAL, stat));
        step("create2 of a node that exists", Code.NODEEXISTS, () -> zk.create("/b", null, OPEN, CreateMode.PERSISTENT, stat));
        step("create2 below a missing node", Code.NONODE, () -> zk.create("/none/x", null, OPEN, CreateMode.PERSISTENT, stat));
        step("createContainer", () -> zk.create("/c", bytes("box"), OPEN, CreateMode.CONTAINER, stat));
        step("createContainer that exists", Code.NODEEXISTS, () -> zk.create("/c", null, OPEN, CreateMode.CONTAINER));
        step("createTTL persistent", () -> zk.create("/t", bytes("soon"), OPEN, CreateMode.PERSISTENT_WITH_TTL, stat, 3_600_000));
        step("createTTL persistent sequential", () -> zk.create("/t/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL_WITH_TTL, stat, 1_099_511_627_775L));
        step("createTTL below a missing node", Code.NONODE, () -> zk.create("/none/x", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, stat, 5_000));

        step("exists", () -> zk.exists("/a", false));
        step("exists of an ephemeral node", () -> zk.exists("/a/e", false));
        step("exists of a container", () -> zk.exists("/c", false));
        step("exists of a TTL node", () -> zk.exists("/t", false));
        step("exists of a missing node", () -> zk.exists("/none", false));
        step("getData", () -> zk.getData("/a", false, stat));
        step("getData that is null", () -> zk.getData("/a/null", false, stat));
        step("getData that is empty", () -> zk.getData("/a/empty", false, stat));
        step("getData that is binary", () -> zk.getData("/a/binary", false, stat));
        step("getData of a non-ASCII path", () -> zk.getData("/zürich/日本", false, stat));
        step("getData of a missing node", Code.NONODE, () -> zk.getData("/none", false, stat));
        step("setData", () -> zk.setData("/a", bytes("uno"), 0));
        step("setData of any version", () -> zk.setData("/a", bytes("un"), -1));
        step("setData to null", () -> zk.setData("/a/binary", null, -1));
        step("setData to empty", () -> zk.setData("/a/null", new byte[0], -1));
        step("setData of a wrong version", Code.BADVERSION, () -> zk.setData("/a", null, 7));
        step("setData of a missing node", Code.NONODE, () -> zk.setData("/none", null, -1));
        step("getChildren", () -> sorted(zk.getChildren("/a", false)));
        step("getChildren of a leaf", () -> zk.getChildren("/a/empty", false));
        step("getChildren of a missing node", Code.NONODE, () -> zk.getChildren("/none", false));
        step("getChildren2", () -> zk.getChildren("/a", false, stat));
        step("getChildren2 of the root", () -> zk.getChildren("/", false, stat));
        step("getChildren2 of a non-ASCII path", () -> zk.getChildren("/zürich", false, stat));
        step("getChildren2 of a missing node", Code.NONODE, () -> zk.getChildren("/none", false, stat));
        step("getAllChildrenNumber", () -> zk.getAllChildrenNumber("/a"));
        step("getAllChildrenNumber of the root", () -> zk.getAllChildrenNumber("/"));
        step("getAllChildrenNumber of a missing node", Code.NONODE, () -> zk.getAllChildrenNumber("/none"));
        step("getEphemerals", () -> zk.getEphemerals());
        step("getEphemerals with a prefix", () -> zk.getEphemerals("/b"));
        step("getEphemerals with a prefix of none", () -> zk.getEphemerals("/zürich"));
        step("sync", () -> zk.sync("/a"));
        step("sync of a missing node", () -> zk.sync("/none"));
        step("whoAmI without auth", () -> zk.whoAmI());

        step("delete of a wrong version", Code.BADVERSION, () -> zk.delete("/a/empty", 5));
        step("delete of a node with children", Code.NOTEMPTY, () -> zk.delete("/a", -1));
        step("delete of a missing node", Code.NONODE, () -> zk.delete("/none", -1));
        step("delete of the root", Code.BADARGUMENTS, () -> zk.delete("/", -1));
        step("delete of /zookeeper", Code.BADARGUMENTS, () -> zk.delete("/zookeeper", -1));
        step("delete", () -> zk.delete("/a/empty", 0));
        step("delete of any version", () -> zk.delete("/a/null", -1));

        step("getData of the config", () -> zk.getConfig(false, stat));
        c.close("closeSession");
    }

    static void multis() throws Exception {
        Client c = new Client("connect, for multi");
        ZooKeeper zk = c.zk;

        step("multi with every kind of op", () -> zk.multi(Arrays.asList(
            Op.create("/m", bytes("m"), OPEN, CreateMode.PERSISTENT),
            Op.create("/m/s-", null, OPEN, CreateMode.PERSISTENT_SEQUENTIAL),
            Op.create("/m/e", new byte[0], OPEN, CreateMode.EPHEMERAL),
            Op.create("/m/two", bytes("2"), CreateOptions.newBuilder(OPEN, CreateMode.PERSISTENT).build()),
            Op.create("/m/box", null, OPEN, CreateMode.CONTAINER),
            Op.create("/m/ttl", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, 60_000),
            Op.check("/m", 0),
            Op.setData("/m", bytes("mm"), 0),
            Op.setData("/m/two", null, -1),
            Op.check("/m", 1),
            Op.delete("/m/two", 1))));
        step("multi of one check", () -> zk.multi(Arrays.asList(Op.check("/m", -1))));
        step("multi that fails in the middle", Code.NODEEXISTS, () -> zk.multi(Arrays.asList(
            Op.create("/m/x", null, OPEN, CreateMode.PERSISTENT),
            Op.setData("/m", bytes("never"), -1),
            Op.create("/m", null, OPEN, CreateMode.PERSISTENT),
            Op.delete("/m/x", -1),
            Op.check("/none", -1))));
        step("multi that fails at its first op", Code.BADVERSION, () -> zk.multi(Arrays.asList(
            Op.check("/m", 44), Op.delete("/m/box", -1))));
        step("multi that fails at its last op", Code.NONODE, () -> zk.multi(Arrays.asList(
            Op.setData("/m", null, -1), Op.delete("/none", -1))));
        step("multi that deletes a node with children", Code.NOTEMPTY, () -> zk.multi(Arrays.asList(
            Op.delete("/m", -1))));
        step("multiRead", () -> zk.multi(Arrays.asList(
            Op.getData("/m"), Op.getChildren("/m"), Op.getData("/m/box"), Op.getChildren("/m/box"))));
        step("multiRead where some fail", () -> zk.multi(Arrays.asList(
            Op.getData("/none"), Op.getData("/m"), Op.getChildren("/none"), Op.getChildren("/m"))));
        c.close("closeSession, after multi");
    }

    static void acls() throws Exception {
        Client c = new Client("connect, for ACLs");
        ZooKeeper zk = c.zk;
        Stat stat = new Stat();
        List<ACL> mixed = new ArrayList<>();
        mixed.addAll(acl(Perms.READ | Perms.ADMIN, "world", "anyone"));
        mixed.addAll(acl(Perms.ALL, "digest", "ben:Zm9v"));
        mixed.addAll(acl(Perms.WRITE, "ip", "127.0.0.0/8"));

        step("create with several ACLs", () -> zk.create("/acl", bytes("x"), mixed, CreateMode.PERSISTENT));
        step("getACL", () -> zk.getACL("/acl", stat));
        step("getACL of the root", () -> zk.getACL("/", stat));
        step("getACL of a missing node", Code.NONODE, () -> zk.getACL("/none", stat));
        step("auth by digest", () -> {
            zk.addAuthInfo("digest", bytes("ann:secret"));
            zk.sync("/"); // auth has no callback; this one is answered after it
        });
        step("whoAmI with digest", () -> zk.whoAmI());
        step("create for whoever is authenticated", () -> zk.create("/own", bytes("mine"), Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
        step("getACL of one's own", () -> zk.getACL("/own", stat));
        step("setACL", () -> zk.setACL("/acl", OPEN, 0));
        step("setACL of any version", () -> zk.setACL("/acl", Ids.READ_ACL_UNSAFE, -1));
        step("setACL of a wrong version", Code.BADVERSION, () -> zk.setACL("/own", OPEN, 9));
        step("setACL of a missing node", Code.NONODE, () -> zk.setACL("/none", OPEN, -1));
        step("setACL with a digest that is none", Code.INVALIDACL, () -> zk.setACL("/own", acl(Perms.ALL, "digest", "nocolon"), -1));

        Client stranger = new Client("connect, as a stranger");
        step("getData without READ", Code.NOAUTH, () -> stranger.zk.getData("/own", false, stat));
        step("exists without READ", Code.NOAUTH, () -> stranger.zk.exists("/own", false));
        step("getChildren without READ", Code.NOAUTH, () -> stranger.zk.getChildren("/own", false));
        step("setData without WRITE", Code.NOAUTH, () -> stranger.zk.setData("/own", null, -1));
        step("create without CREATE on the parent", Code.NOAUTH, () -> stranger.zk.create("/own/x", null, OPEN, CreateMode.PERSISTENT));
        step("getACL without READ and ADMIN", Code.NOAUTH, () -> stranger.zk.getACL("/own", stat));
        step("setACL without ADMIN", Code.NOAUTH, () -> stranger.zk.setACL("/acl", OPEN, -1));
        step("setData of the config without WRITE", Code.NOAUTH, () -> stranger.zk.setData("/zookeeper/config", null, -1));
        step("multi without rights", Code.NOAUTH, () -> stranger.zk.multi(Arrays.asList(
            Op.create("/ok", null, OPEN, CreateMode.PERSISTENT), Op.setData("/own", null, -1))));
        step("multiRead without rights", () -> stranger.zk.multi(Arrays.asList(Op.getData("/own"), Op.getData("/acl"))));
        stranger.close("closeSession, of a stranger");

        step("create with a digest ACL and READ for all", () -> zk.create("/masked", null, masked(), CreateMode.PERSISTENT));
        Client reader = new Client("connect, as one who may read");
        step("getACL without ADMIN masks digests", () -> reader.zk.getACL("/masked", stat));
        reader.close("closeSession, of one who may read");

        Client refused = new Client("connect, to be refused");
        step("auth by a scheme nobody knows", () -> {
            refused.zk.addAuthInfo("nope", bytes("x"));
            refused.await(KeeperState.AuthFailed);
        });
        c.close("closeSession, after ACLs");
    }

    static void watches() throws Exception {
        Client c = new Client("connect, for watches");
        ZooKeeper zk = c.zk;
        Stat stat = new Stat();
        Events events = new Events();

        step("exists with a watch on a missing node", () -> zk.exists("/w", events));
        step("node created", () -> zk.create("/w", null, OPEN, CreateMode.PERSISTENT));
        events.next();
        step("getData with a watch", () -> zk.getData("/w", events, stat));
        step("node changed", () -> zk.setData("/w", bytes("1"), -1));
        events.next();
        step("getChildren with a watch", () -> zk.getChildren("/w", events));
        step("child created", () -> zk.create("/w/k", null, OPEN, CreateMode.PERSISTENT));
        events.next();
        step("getChildren2 with a watch", () -> zk.getChildren("/w", events, stat));
        step("child deleted", () -> zk.delete("/w/k", -1));
        events.next();
        step("exists with a watch", () -> zk.exists("/w", events));
        step("getChildren2 with a watch on the same node", () -> zk.getChildren("/w", events, stat));
        step("node deleted", () -> zk.delete("/w", -1));
        events.next(); // one for both watches
        step("getData with a watch on a missing node", Code.NONODE, () -> zk.getData("/w", events, stat));

        step("addWatch persistent", () -> zk.addWatch("/p", events, AddWatchMode.PERSISTENT));
        step("addWatch recursive", () -> zk.addWatch("/r", events, AddWatchMode.PERSISTENT_RECURSIVE));
        step("node created under a persistent watch", () -> zk.create("/p", null, OPEN, CreateMode.PERSISTENT));
        step("child created under a persistent watch", () -> zk.create("/p/k", null, OPEN, CreateMode.PERSISTENT));
        step("node changed under a persistent watch", () -> zk.setData("/p", null, -1));
        step("node created under a recursive watch", () -> zk.create("/r", null, OPEN, CreateMode.PERSISTENT));
        step("child created under a recursive watch", () -> zk.create("/r/kind", null, OPEN, CreateMode.PERSISTENT));
        step("grandchild with a non-ASCII path created under a recursive watch", () -> zk.create("/r/kind/日本", null, OPEN, CreateMode.PERSISTENT));
        step("grandchild changed under a recursive watch", () -> zk.setData("/r/kind/日本", null, -1));
        step("multi under persistent and recursive watches", () -> zk.multi(Arrays.asList(
            Op.delete("/r/kind/日本", -1), Op.delete("/r/kind", -1), Op.delete("/r", -1), Op.delete("/p/k", -1), Op.delete("/p", -1))));
        step("node created again under a persistent watch", () -> zk.create("/p", null, OPEN, CreateMode.PERSISTENT));
        step("setACL under a persistent watch", () -> zk.setACL("/p", OPEN, -1));

        step("checkWatches of a persistent watch", () -> zk.removeWatches("/p", events, WatcherType.Any, false));
        step("removeWatches of a recursive watch", () -> zk.removeAllWatches("/r", WatcherType.PersistentRecursive, false));
        step("exists with a watch to be removed", () -> zk.exists("/w", events));
        step("checkWatches of a data watch", () -> zk.removeWatches("/w", events, WatcherType.Data, false));
        step("getChildren with a watch to be removed", () -> zk.getChildren("/", events));
        step("removeWatches of a child watch", () -> zk.removeAllWatches("/", WatcherType.Children, false));
        step("removeWatches where there is none", Code.NOWATCHER, () -> zk.removeAllWatches("/none", WatcherType.Any, false));
        step("checkWatches where there is none", Code.NOWATCHER, () -> zk.removeWatches("/none", events, WatcherType.Any, false));
        c.close("closeSession, after watches");
    }

    /** What a client says when it comes back: who it is, its auth, and the watches it still waits for. */
    static void reconnects() throws Exception {
        Client c = new Client("connect, to be cut off");
        ZooKeeper zk = c.zk;
        ZooKeeper other = new Client(null).zk;
        Events events = new Events();
        for (String path : Arrays.asList("/x", "/x/data", "/x/gone", "/x/children", "/x/same", "/x/emptied")) {
            other.create(path, null, OPEN, CreateMode.PERSISTENT);
        }
        name("watches before a reconnect");
        zk.getData("/x/data", events, null);
        zk.getData("/x/gone", events, null);
        zk.exists("/x/new", events);
        zk.exists("/x/never", events);
        zk.getChildren("/x/children", events);
        zk.getChildren("/x/emptied", events);
        zk.getData("/x/same", events, null);
        zk.addAuthInfo("digest", bytes("ann:secret"));
        zk.sync("/");

        name("reconnect with watches");
        ask("cut");
        c.await(KeeperState.Disconnected);
        other.setData("/x/data", bytes("new"), -1);
        other.delete("/x/gone", -1);
        other.create("/x/new", null, OPEN, CreateMode.PERSISTENT);
        other.create("/x/children/k", null, OPEN, CreateMode.PERSISTENT);
        other.delete("/x/emptied", -1);
        ask("release");
        c.await(KeeperState.SyncConnected);
        for (int i = 0; i < 5; i++) {
            events.next();
        }
        step("node changed after a reconnect", () -> zk.setData("/x/same", null, -1));
        events.next();

        name("persistent watches before a reconnect");
        zk.addWatch("/x", events, AddWatchMode.PERSISTENT);
        zk.addWatch("/x/children", events, AddWatchMode.PERSISTENT_RECURSIVE);
        zk.getData("/x/same", events, null);
        name("reconnect with persistent watches");
        ask("cut");
        c.await(KeeperState.Disconnected);
        other.setData("/x", bytes("missed"), -1);
        other.create("/x/children/missed", null, OPEN, CreateMode.PERSISTENT);
        other.setData("/x/same", bytes("late"), -1);
        ask("release");
        c.await(KeeperState.SyncConnected);
        events.next();
        step("node changed under a persistent watch after a reconnect", () -> zk.setData("/x", null, -1));
        events.next();
        step("child created under a recursive watch after a reconnect", () -> zk.create("/x/children/heard", null, OPEN, CreateMode.PERSISTENT));
        events.next();
        c.close("closeSession, after reconnects");
        other.close();
    }

    static void sessions() throws Exception {
        Client owner = new Client("connect, to be taken over");
        long id = owner.zk.getSessionId();
        byte[] password = owner.zk.getSessionPasswd();
        Client heir = new Client("connect, to a session that exists", id, password, KeeperState.SyncConnected);
        heir.close("closeSession, of a session taken over");
        name("reconnect to a session taken over and closed");
        owner.await(KeeperState.Expired);
        new Client("connect, to a session that is over", id, password, KeeperState.Expired);

        Client other = new Client("connect, to be guessed at");
        new Client("connect, with a wrong password", other.zk.getSessionId(), new byte[16], KeeperState.Expired);
        name("reconnect after somebody guessed");
        other.await(KeeperState.SyncConnected); // the guess cut it off, and it came back
        other.close("closeSession, of one guessed at");

        Client idle = new Client("connect, with the shortest timeout", 100);
        name("ping");
        Thread.sleep(3_000);
        idle.close("closeSession, after pings");
        Client patient = new Client("connect, with too long a timeout", 10_000_000);
        patient.close("closeSession, of the patient");
    }

    static void extendedTypesOff() throws Exception {
        Client c = new Client("connect, with extended types off");
        step("createTTL with extended types off", Code.UNIMPLEMENTED, () ->
            c.zk.create("/t", null, OPEN, CreateMode.PERSISTENT_WITH_TTL, new Stat(), 5_000));
        step("createContainer with extended types off", () -> c.zk.create("/c", null, OPEN, CreateMode.CONTAINER));
        ZooKeeperAdmin admin = admin("connect, to reconfigure");
        step("reconfig that is disabled", Code.RECONFIGDISABLED, () ->
            admin.reconfigure("server.2=127.0.0.1:2:3;4", null, null, -1, new Stat()));
    }

    static void quota() throws Exception {
        Client c = new Client("connect, under a quota");
        ZooKeeper zk = c.zk;
        Stat stat = new Stat();
        step("create what gets a quota", () -> zk.create("/q", null, OPEN, CreateMode.PERSISTENT));
        StatsTrack limits = new StatsTrack();
        limits.setCountHardLimit(2);
        limits.setByteHardLimit(10);
        limits.setCount(100);
        step("set a quota", () -> SetQuotaCommand.createQuota(zk, "/q", limits));
        step("create within the quota", () -> zk.create("/q/1", bytes("12345"), OPEN, CreateMode.PERSISTENT));
        step("create past the count quota", Code.QUOTAEXCEEDED, () -> zk.create("/q/2", null, OPEN, CreateMode.PERSISTENT));
        step("setData past the byte quota", Code.QUOTAEXCEEDED, () -> zk.setData("/q/1", bytes("12345678901"), -1));
        step("getData of a quota's limits", () -> zk.getData("/zookeeper/quota/q/zookeeper_limits", false, stat));
        step("getData of a quota's stats", () -> zk.getData("/zookeeper/quota/q/zookeeper_stats", false, stat));
        c.close("closeSession, under a quota");
    }

    static void sasl() throws Exception {
        Client c = new Client("connect with SASL", KeeperState.SaslAuthenticated);
        step("whoAmI with SASL", () -> c.zk.whoAmI());
        step("create for a SASL id", () -> c.zk.create("/own", null, Ids.CREATOR_ALL_ACL, CreateMode.PERSISTENT));
        step("getACL of a SASL id", () -> c.zk.getACL("/own", new Stat()));
        c.close("closeSession, of SASL");
    }

    static void saslRequired() throws Exception {
        Client c = new Client("connect where SASL is required");
        step("create where SASL is required", Code.SESSIONCLOSEDREQUIRESASLAUTH, () ->
            c.zk.create("/x", null, OPEN, CreateMode.PERSISTENT));
    }

    static void ensemble() throws Exception {
        ZooKeeperAdmin admin = admin("connect, to an ensemble");
        Stat stat = new Stat();
        name("getData of an ensemble's first config");
        String[] lines = new String(admin.getConfig(false, stat), StandardCharsets.UTF_8).split("\n");
        String follower = Arrays.stream(lines)
            .filter(line -> line.startsWith("server.") && !line.endsWith(direct)).findFirst().get();
        String id = follower.substring("server.".length(), follower.indexOf('='));

        step("sync with an ensemble", () -> admin.sync("/"));
        step("getData of an ensemble's config", () -> admin.getConfig(false, stat));
        step("reconfig without rights", Code.NOAUTH, () -> admin.reconfigure((String) null, id, null, -1, stat));
        step("auth as super", () -> {
            admin.addAuthInfo("digest", bytes("super:test"));
            admin.sync("/");
        });
        step("reconfig that removes a server", () -> admin.reconfigure((String) null, id, null, -1, stat));
        step("reconfig that adds a server", () -> admin.reconfigure(follower, null, null, -1, stat));
        step("reconfig of a wrong version", Code.BADVERSION, () -> admin.reconfigure((String) null, id, null, 12, stat));
        step("reconfig to servers that are not there", Code.NEWCONFIGNOQUORUM, () -> admin.reconfigure(
            null, null, "server.7=127.0.0.1:1:2:participant;127.0.0.1:3", -1, stat));
        step("reconfig with a line that is none", Code.BADARGUMENTS, () -> admin.reconfigure("server.9", null, null, -1, stat));
        step("closeSession, of an ensemble", () -> admin.close());
    }

    static void reconfigOfOne() throws Exception {
        ZooKeeperAdmin admin = admin("connect, to reconfigure a single server");
        step("reconfig of a single server", Code.UNIMPLEMENTED, () ->
            admin.reconfigure("server.2=127.0.0.1:2:3;4", null, null, -1, new Stat()));
    }

    static void readOnly() throws Exception {
        Client c = new Client("connect, to a server without a quorum", KeeperState.ConnectedReadOnly);
        step("getData from a read-only server", () -> c.zk.getData("/", false, new Stat()));
        step("create at a read-only server", Code.NOTREADONLY, () -> c.zk.create("/x", null, OPEN, CreateMode.PERSISTENT));
        step("sync at a read-only server", Code.NOTREADONLY, () -> c.zk.sync("/"));
        step("multi at a read-only server", Code.NOTREADONLY, () -> c.zk.multi(Arrays.asList(Op.check("/", -1))));
    }

    /** A session, and the states it goes through. */
    static class Client implements Watcher {
        final BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
        final ZooKeeper zk;

        /** No name: past the recorder. */
        Client(String name) throws Exception {
            if (name != null) {
                name(name);
            }
            zk = new ZooKeeper(name == null ? direct : recorded, SESSION_TIMEOUT_MS, this);
            await(KeeperState.SyncConnected);
        }

        Client(String name, int sessionTimeoutMs) throws Exception {
            name(name);
            zk = new ZooKeeper(recorded, sessionTimeoutMs, this);
            await(KeeperState.SyncConnected);
        }

        Client(String name, KeeperState until) throws Exception {
            name(name);
            zk = new ZooKeeper(recorded, SESSION_TIMEOUT_MS, this, true);
            await(until);
        }

        Client(String name, long id, byte[] password, KeeperState until) throws Exception {
            name(name);
            zk = new ZooKeeper(recorded, SESSION_TIMEOUT_MS, this, id, password);
            await(until);
        }

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() == Event.EventType.None) {
                states.add(event.getState());
            }
        }

        void await(KeeperState wanted) throws Exception {
            KeeperState state;
            do {
                state = states.poll(20, TimeUnit.SECONDS);
                if (state == null) {
                    throw new IOException("never " + wanted);
                }
            } while (state != wanted);
        }

        void close(String name) throws Exception {
            step(name, () -> zk.close());
        }
    }

    static class Events implements Watcher {
        final BlockingQueue<WatchedEvent> queue = new LinkedBlockingQueue<>();

        @Override
        public void process(WatchedEvent event) {
            if (event.getType() != Event.EventType.None) {
                queue.add(event);
            }
        }

        void next() throws Exception {
            if (queue.poll(10, TimeUnit.SECONDS) == null) {
                throw new IOException("an event that never came");
            }
        }
    }

    interface Call {
        void run() throws Exception;
    }

    static void step(String name, Call call) throws Exception {
        step(name, Code.OK, call);
    }

    static void step(String name, Code expected, Call call) throws Exception {
        name(name);
        Code code = Code.OK;
        try {
            call.run();
        } catch (KeeperException e) {
            code = e.code();
        }
        if (code != expected) {
            throw new IOException(name + " ended with " + code + ", not " + expected);
        }
    }

    static void name(String name) throws IOException {
        ask("name " + name);
    }

    static void ask(String line) throws IOException {
        System.out.println(line);
        System.out.flush();
        if (ANSWERS.readLine() == null) {
            throw new IOException("nobody is recording");
        }
    }

    static ZooKeeperAdmin admin(String name) throws Exception {
        name(name);
        BlockingQueue<KeeperState> states = new LinkedBlockingQueue<>();
        ZooKeeperAdmin admin = new ZooKeeperAdmin(recorded, SESSION_TIMEOUT_MS, event -> states.add(event.getState()));
        if (states.poll(20, TimeUnit.SECONDS) != KeeperState.SyncConnected) {
            throw new IOException("never connected");
        }
        return admin;
    }

    static List<ACL> masked() {
        List<ACL> acls = new ArrayList<>(acl(Perms.READ, "world", "anyone"));
        acls.addAll(acl(Perms.ALL, "digest", "ann:hidden-from-strangers"));
        return acls;
    }

    static List<ACL> acl(int perms, String scheme, String id) {
        return new ArrayList<>(Arrays.asList(new ACL(perms, new Id(scheme, id))));
    }

    static byte[] bytes(String text) {
        return text.getBytes(StandardCharsets.UTF_8);
    }

    static List<String> sorted(List<String> names) {
        Collections.sort(names);
        return names;
    }
}

/*
 * Drives Apache's own C client through every request it can send, while record.ts listens in between.
 *
 *   cc -DTHREADED record.c -lzookeeper_mt -o record && ./record <recorded host:port> <direct host:port>
 *
 * Speaks with record.ts as Record.java does: see program.ts. A step that ends otherwise than it says ends the
 * program.
 */
#include <pthread.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>
#include <unistd.h>
#include <zookeeper/zookeeper.h>

#define SESSION_TIMEOUT_MS 30000
#define WAIT_S 20
#define OPEN &ZOO_OPEN_ACL_UNSAFE

static const char *recorded;
static const char *direct;

/* What the client's own threads have told, and main waits for. */
static pthread_mutex_t mutex = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static int events;
static int completions;
static int completion_rc;

static void die(const char *what, int rc) {
    fprintf(stderr, "%s ended with %d (%s)\n", what, rc, zerror(rc));
    exit(1);
}

static void ask(const char *verb, const char *words) {
    char answer[16];
    printf("%s%s\n", verb, words);
    fflush(stdout);
    if (fgets(answer, sizeof answer, stdin) == NULL) die("recording", 0);
}

static void name(const char *words) { ask("name ", words); }

#define step(words, expected, call)       \
    do {                                  \
        name(words);                      \
        int rc_ = (call);                 \
        if (rc_ != (expected)) die(words, rc_); \
    } while (0)

static void wait_for(int *counter, int wanted) {
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += WAIT_S;
    pthread_mutex_lock(&mutex);
    while (*counter < wanted) {
        if (pthread_cond_timedwait(&changed, &mutex, &deadline) != 0) die("waiting", 0);
    }
    *counter -= wanted;
    pthread_mutex_unlock(&mutex);
}

static void tell(int *counter, int rc) {
    pthread_mutex_lock(&mutex);
    completion_rc = rc;
    (*counter)++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&mutex);
}

static void on_event(zhandle_t *zh, int type, int state, const char *path, void *context) {
    if (type != ZOO_SESSION_EVENT) tell(&events, 0);
}

static void on_session(zhandle_t *zh, int type, int state, const char *path, void *context) {}

static void on_void(int rc, const void *data) { tell(&completions, rc); }

static void on_string(int rc, const char *value, const void *data) { tell(&completions, rc); }

static int sync_now(zhandle_t *zh, const char *path) {
    int rc = zoo_async(zh, path, on_string, NULL);
    if (rc != ZOK) return rc;
    wait_for(&completions, 1);
    return completion_rc;
}

static int auth_now(zhandle_t *zh, const char *scheme, const char *cert) {
    int rc = zoo_add_auth(zh, scheme, cert, (int)strlen(cert), on_void, NULL);
    if (rc != ZOK) return rc;
    wait_for(&completions, 1);
    return completion_rc;
}

static void wait_for_state(zhandle_t *zh, int state) {
    for (int i = 0; i < WAIT_S * 200; i++) {
        if (zoo_state(zh) == state) return;
        usleep(5000);
    }
    die("waiting for a state", zoo_state(zh));
}

static zhandle_t *connect_as(const char *host, const clientid_t *id, int timeout_ms, int state) {
    zhandle_t *zh = zookeeper_init(host, on_session, timeout_ms, id, NULL, 0);
    if (zh == NULL) die("zookeeper_init", 0);
    wait_for_state(zh, state);
    return zh;
}

static zhandle_t *session(const char *words) {
    name(words);
    return connect_as(recorded, NULL, SESSION_TIMEOUT_MS, ZOO_CONNECTED_STATE);
}

static void creates(zhandle_t *zh) {
    char path[256];
    char all[256];
    struct Stat stat;
    struct ACL_vector none = {0, NULL};
    int len = sizeof path;
    for (int i = 0; i < 256; i++) all[i] = (char)i;

    step("create persistent", ZOK, zoo_create(zh, "/a", "one", 3, OPEN, ZOO_PERSISTENT, path, len));
    step("create with null data", ZOK, zoo_create(zh, "/a/null", NULL, -1, OPEN, ZOO_PERSISTENT, path, len));
    step("create with empty data", ZOK, zoo_create(zh, "/a/empty", "", 0, OPEN, ZOO_PERSISTENT, path, len));
    step("create with binary data", ZOK, zoo_create(zh, "/a/binary", all, 256, OPEN, ZOO_PERSISTENT, path, len));
    step("create with a non-ASCII path", ZOK, zoo_create(zh, "/zürich", NULL, -1, OPEN, ZOO_PERSISTENT, path, len));
    step("create below a non-ASCII path", ZOK, zoo_create(zh, "/zürich/日本", NULL, -1, OPEN, ZOO_PERSISTENT, path, len));
    step("create persistent sequential", ZOK, zoo_create(zh, "/a/s-", NULL, -1, OPEN, ZOO_PERSISTENT_SEQUENTIAL, path, len));
    step("create ephemeral", ZOK, zoo_create(zh, "/a/e", "mine", 4, OPEN, ZOO_EPHEMERAL, path, len));
    step("create ephemeral sequential", ZOK, zoo_create(zh, "/a/es-", NULL, -1, OPEN, ZOO_EPHEMERAL_SEQUENTIAL, path, len));
    step("create a node that exists", ZNODEEXISTS, zoo_create(zh, "/a", NULL, -1, OPEN, ZOO_PERSISTENT, path, len));
    step("create below a missing node", ZNONODE, zoo_create(zh, "/none/x", NULL, -1, OPEN, ZOO_PERSISTENT, path, len));
    step("create below an ephemeral node", ZNOCHILDRENFOREPHEMERALS, zoo_create(zh, "/a/e/x", NULL, -1, OPEN, ZOO_PERSISTENT, path, len));
    step("create with an empty ACL list", ZINVALIDACL, zoo_create(zh, "/a/x", NULL, -1, &none, ZOO_PERSISTENT, path, len));
    step("create with auth ids and none authenticated", ZINVALIDACL, zoo_create(zh, "/a/x", NULL, -1, &ZOO_CREATOR_ALL_ACL, ZOO_PERSISTENT, path, len));
    step("create container", ZOK, zoo_create(zh, "/c", NULL, -1, OPEN, ZOO_CONTAINER, path, len));
    step("create with a TTL", ZOK, zoo_create_ttl(zh, "/t", "soon", 4, OPEN, ZOO_PERSISTENT_WITH_TTL, 3600000, path, len));
    step("create2 persistent", ZOK, zoo_create2(zh, "/b", "two", 3, OPEN, ZOO_PERSISTENT, path, len, &stat));
    step("create2 ephemeral sequential", ZOK, zoo_create2(zh, "/b/es-", NULL, -1, OPEN, ZOO_EPHEMERAL_SEQUENTIAL, path, len, &stat));
    step("create2 container", ZOK, zoo_create2(zh, "/c2", NULL, -1, OPEN, ZOO_CONTAINER, path, len, &stat));
    step("create2 sequential with a TTL", ZOK, zoo_create2_ttl(zh, "/t/s-", NULL, -1, OPEN, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 5000000, path, len, &stat));
}

static void reads_and_writes(zhandle_t *zh) {
    char data[1024];
    struct Stat stat;
    struct String_vector names;
    int len = sizeof data;

    step("exists", ZOK, zoo_exists(zh, "/a", 0, &stat));
    step("exists of an ephemeral node", ZOK, zoo_exists(zh, "/a/e", 0, &stat));
    step("exists of a missing node", ZNONODE, zoo_exists(zh, "/none", 0, &stat));
    step("getData", ZOK, zoo_get(zh, "/a", 0, data, &len, &stat));
    step("getData that is null", ZOK, (len = sizeof data, zoo_get(zh, "/a/null", 0, data, &len, &stat)));
    step("getData that is empty", ZOK, (len = sizeof data, zoo_get(zh, "/a/empty", 0, data, &len, &stat)));
    step("getData that is binary", ZOK, (len = sizeof data, zoo_get(zh, "/a/binary", 0, data, &len, &stat)));
    step("getData of a missing node", ZNONODE, (len = sizeof data, zoo_get(zh, "/none", 0, data, &len, &stat)));
    step("setData", ZOK, zoo_set(zh, "/a", "uno", 3, 0));
    step("setData of any version", ZOK, zoo_set2(zh, "/a", "un", 2, -1, &stat));
    step("setData to null", ZOK, zoo_set(zh, "/a/binary", NULL, -1, -1));
    step("setData of a wrong version", ZBADVERSION, zoo_set(zh, "/a", "x", 1, 7));
    step("setData of a missing node", ZNONODE, zoo_set(zh, "/none", "x", 1, -1));
    step("getChildren", ZOK, zoo_get_children(zh, "/a", 0, &names));
    deallocate_String_vector(&names);
    step("getChildren of a missing node", ZNONODE, zoo_get_children(zh, "/none", 0, &names));
    step("getChildren2", ZOK, zoo_get_children2(zh, "/a", 0, &names, &stat));
    deallocate_String_vector(&names);
    step("getChildren2 of a non-ASCII path", ZOK, zoo_get_children2(zh, "/zürich", 0, &names, &stat));
    deallocate_String_vector(&names);
    step("sync", ZOK, sync_now(zh, "/a"));
    step("getData of the config", ZOK, (len = sizeof data, zoo_getconfig(zh, 0, data, &len, &stat)));
    step("reconfig that is disabled", ZRECONFIGDISABLED,
         (len = sizeof data, zoo_reconfig(zh, "server.2=127.0.0.1:2:3;4", NULL, NULL, -1, data, &len, &stat)));
    step("delete of a wrong version", ZBADVERSION, zoo_delete(zh, "/a/empty", 5));
    step("delete of a node with children", ZNOTEMPTY, zoo_delete(zh, "/a", -1));
    step("delete of a missing node", ZNONODE, zoo_delete(zh, "/none", -1));
    step("delete of the root", ZBADARGUMENTS, zoo_delete(zh, "/", -1));
    step("delete", ZOK, zoo_delete(zh, "/a/empty", 0));
}

static void acls(zhandle_t *zh) {
    char path[256];
    char data[64];
    int len = sizeof data;
    struct Stat stat;
    struct ACL_vector read;
    struct ACL entries[] = {{17, {"world", "anyone"}}, {31, {"digest", "ben:Zm9v"}}, {2, {"ip", "127.0.0.0/8"}}};
    struct ACL_vector mixed = {3, entries};

    step("create with several ACLs", ZOK, zoo_create(zh, "/acl", "x", 1, &mixed, ZOO_PERSISTENT, path, sizeof path));
    step("getACL", ZOK, zoo_get_acl(zh, "/acl", &read, &stat));
    deallocate_ACL_vector(&read);
    step("getACL of a missing node", ZNONODE, zoo_get_acl(zh, "/none", &read, &stat));
    step("setACL", ZOK, zoo_set_acl(zh, "/acl", 0, OPEN));
    step("setACL of a wrong version", ZBADVERSION, zoo_set_acl(zh, "/acl", 9, OPEN));
    step("auth by digest", ZOK, auth_now(zh, "digest", "ann:secret"));
    step("create for whoever is authenticated", ZOK, zoo_create(zh, "/own", "mine", 4, &ZOO_CREATOR_ALL_ACL, ZOO_PERSISTENT, path, sizeof path));

    zhandle_t *stranger = session("connect, as a stranger");
    step("getData without READ", ZNOAUTH, zoo_get(stranger, "/own", 0, data, &len, &stat));
    step("setData without WRITE", ZNOAUTH, zoo_set(stranger, "/own", "x", 1, -1));
    step("auth by a scheme nobody knows", ZAUTHFAILED, auth_now(stranger, "nope", "x"));
    zookeeper_close(stranger);
}

static void multis(zhandle_t *zh) {
    zoo_op_t ops[8];
    zoo_op_result_t results[8];
    char paths[3][256];
    struct Stat stat;

    zoo_create_op_init(&ops[0], "/m", "m", 1, OPEN, ZOO_PERSISTENT, paths[0], sizeof paths[0]);
    zoo_create_op_init(&ops[1], "/m/s-", NULL, -1, OPEN, ZOO_PERSISTENT_SEQUENTIAL, paths[1], sizeof paths[1]);
    zoo_create_op_init(&ops[2], "/m/e", "", 0, OPEN, ZOO_EPHEMERAL, paths[2], sizeof paths[2]);
    zoo_check_op_init(&ops[3], "/m", 0);
    zoo_set_op_init(&ops[4], "/m", "mm", 2, 0, &stat);
    zoo_delete_op_init(&ops[5], "/m/e", -1);
    step("multi with every kind of op", ZOK, zoo_multi(zh, 6, ops, results));

    zoo_create_op_init(&ops[0], "/m/x", NULL, -1, OPEN, ZOO_PERSISTENT, paths[0], sizeof paths[0]);
    zoo_create_op_init(&ops[1], "/m", NULL, -1, OPEN, ZOO_PERSISTENT, paths[1], sizeof paths[1]);
    zoo_delete_op_init(&ops[2], "/m/x", -1);
    step("multi that fails in the middle", ZNODEEXISTS, zoo_multi(zh, 3, ops, results));
}

static void watches(zhandle_t *zh) {
    char path[256];
    char data[64];
    int len = sizeof data;
    struct Stat stat;
    struct String_vector names;

    step("exists with a watch on a missing node", ZNONODE, zoo_wexists(zh, "/w", on_event, NULL, &stat));
    step("node created", ZOK, zoo_create(zh, "/w", NULL, -1, OPEN, ZOO_PERSISTENT, path, sizeof path));
    wait_for(&events, 1);
    step("getData with a watch", ZOK, zoo_wget(zh, "/w", on_event, NULL, data, &len, &stat));
    step("node changed", ZOK, zoo_set(zh, "/w", "1", 1, -1));
    wait_for(&events, 1);
    step("getChildren2 with a watch", ZOK, zoo_wget_children2(zh, "/w", on_event, NULL, &names, &stat));
    deallocate_String_vector(&names);
    step("child created", ZOK, zoo_create(zh, "/w/k", NULL, -1, OPEN, ZOO_PERSISTENT, path, sizeof path));
    wait_for(&events, 1);
    step("exists with a watch", ZOK, zoo_wexists(zh, "/w/k", on_event, NULL, &stat));
    step("node deleted", ZOK, zoo_delete(zh, "/w/k", -1));
    wait_for(&events, 1);
    step("exists with a watch to be removed", ZOK, zoo_wexists(zh, "/w", on_event, NULL, &stat));
    step("removeWatches of a data watch", ZOK, zoo_remove_watches(zh, "/w", ZWATCHTYPE_DATA, on_event, NULL, 0));
    step("getChildren with a watch to be removed", ZOK, zoo_wget_children(zh, "/w", on_event, NULL, &names));
    deallocate_String_vector(&names);
    step("removeWatches of all", ZOK, zoo_remove_all_watches(zh, "/w", ZWATCHTYPE_ANY, 0));
}

static void reconnects(zhandle_t *zh) {
    char path[256];
    char data[64];
    int len = sizeof data;
    struct Stat stat;
    struct String_vector names;
    zhandle_t *other = connect_as(direct, NULL, SESSION_TIMEOUT_MS, ZOO_CONNECTED_STATE);
    const char *paths[] = {"/x", "/x/data", "/x/gone", "/x/children", "/x/same"};
    for (int i = 0; i < 5; i++) zoo_create(other, paths[i], NULL, -1, OPEN, ZOO_PERSISTENT, path, sizeof path);

    name("watches before a reconnect");
    zoo_wget(zh, "/x/data", on_event, NULL, data, &len, &stat);
    zoo_wget(zh, "/x/gone", on_event, NULL, data, &len, &stat);
    zoo_wget(zh, "/x/same", on_event, NULL, data, &len, &stat);
    zoo_wexists(zh, "/x/new", on_event, NULL, &stat);
    if (zoo_wget_children(zh, "/x/children", on_event, NULL, &names) == ZOK) deallocate_String_vector(&names);

    name("reconnect with watches");
    ask("cut", "");
    for (int i = 0; i < 1000 && zoo_state(zh) == ZOO_CONNECTED_STATE; i++) usleep(5000);
    zoo_set(other, "/x/data", "new", 3, -1);
    zoo_delete(other, "/x/gone", -1);
    zoo_create(other, "/x/new", NULL, -1, OPEN, ZOO_PERSISTENT, path, sizeof path);
    zoo_create(other, "/x/children/k", NULL, -1, OPEN, ZOO_PERSISTENT, path, sizeof path);
    ask("release", "");
    wait_for_state(zh, ZOO_CONNECTED_STATE);
    wait_for(&events, 4);
    step("node changed after a reconnect", ZOK, zoo_set(zh, "/x/same", "x", 1, -1));
    wait_for(&events, 1);
    zookeeper_close(other);
}

static void sessions(void) {
    zhandle_t *owner = session("connect, to be taken over");
    clientid_t id = *zoo_client_id(owner);
    /* Closed while it is cut off, it can't tell the server; or the two would take the session from each other. */
    ask("cut", "");
    for (int i = 0; i < 1000 && zoo_state(owner) == ZOO_CONNECTED_STATE; i++) usleep(5000);
    zookeeper_close(owner);
    ask("release", "");
    name("connect, to a session that exists");
    zhandle_t *heir = connect_as(recorded, &id, SESSION_TIMEOUT_MS, ZOO_CONNECTED_STATE);
    step("closeSession, of a session taken over", ZOK, zookeeper_close(heir));
    name("connect, to a session that is over");
    zookeeper_close(connect_as(recorded, &id, SESSION_TIMEOUT_MS, ZOO_EXPIRED_SESSION_STATE));

    name("connect, with the shortest timeout");
    zhandle_t *idle = connect_as(recorded, NULL, 100, ZOO_CONNECTED_STATE);
    name("ping");
    sleep(3);
    step("closeSession, after pings", ZOK, zookeeper_close(idle));
}

int main(int argc, char **argv) {
    recorded = argv[1];
    direct = argv[2];
    zoo_set_debug_level(ZOO_LOG_LEVEL_ERROR);
    zhandle_t *zh = session("connect, a new session");
    creates(zh);
    reads_and_writes(zh);
    acls(zh);
    multis(zh);
    watches(zh);
    reconnects(zh);
    step("closeSession", ZOK, zookeeper_close(zh));
    sessions();
    return 0;
}

/* The chapters of single nodes, of many calls at once, and of multi. */

#include "teller.h"

#include <stdint.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>

static void created(zhandle_t *zh, const char *path, const char *data, int mode, int64_t ttl)
{
    char at[256] = "";
    struct Stat stat;
    int length = data == NULL ? -1 : (int)strlen(data);
    int rc = ttl < 0 ? zoo_create2(zh, path, data, length, &ZOO_OPEN_ACL_UNSAFE, mode, at,
                                   sizeof at, &stat)
                     : zoo_create2_ttl(zh, path, data, length, &ZOO_OPEN_ACL_UNSAFE, mode, ttl, at,
                                       sizeof at, &stat);
    if (rc == ZOK) say("create %s %s: %s %s", mode_text(mode), path, at, stat_text(zh, &stat));
    else say("create %s %s: %s", mode_text(mode), path, zerror(rc));
}

static void got(zhandle_t *zh, const char *path)
{
    char data[64];
    int length = sizeof data;
    struct Stat stat;
    int rc = zoo_get(zh, path, 0, data, &length, &stat);
    if (rc == ZOK) say("get %s: %s %s", path, data_text(data, length), stat_text(zh, &stat));
    else say("get %s: %s", path, zerror(rc));
}

static void set(zhandle_t *zh, const char *path, const char *data, int version)
{
    struct Stat stat;
    int length = data == NULL ? -1 : (int)strlen(data);
    int rc = zoo_set2(zh, path, data, length, version, &stat);
    say("set %s at %d: %s %s", path, version, zerror(rc), rc == ZOK ? stat_text(zh, &stat) : "");
}

static void existed(zhandle_t *zh, const char *path)
{
    struct Stat stat;
    int rc = zoo_exists(zh, path, 0, &stat);
    say("exists %s: %s %s", path, zerror(rc), rc == ZOK ? stat_text(zh, &stat) : "");
}

static void listed(zhandle_t *zh, const char *path)
{
    struct String_vector names = {0, NULL};
    struct Stat stat;
    int rc = zoo_get_children(zh, path, 0, &names);
    say("get_children %s: %s %s", path, zerror(rc), rc == ZOK ? children_text(&names) : "");
    deallocate_String_vector(&names);
    names = (struct String_vector){0, NULL};
    rc = zoo_get_children2(zh, path, 0, &names, &stat);
    say("get_children2 %s: %s %s %s", path, zerror(rc), rc == ZOK ? children_text(&names) : "",
        rc == ZOK ? stat_text(zh, &stat) : "");
    deallocate_String_vector(&names);
}

static void deleted(zhandle_t *zh, const char *path, int version)
{
    say("delete %s at %d: %s", path, version, zerror(zoo_delete(zh, path, version)));
}

static void tell_of_names(zhandle_t *zh)
{
    static const char *const paths[] = {
        "",        "none",      "/story/",    "//story",       "/story//x",    "/story/.",
        "/story/..", "/story/./x", "/story/\x01", "/story/a b", "/story/caf\xc3\xa9",
        "/story/...", "/story/\xef\xbf\xbd", "/story/\xf0\x9f\x90\x91", "/story/\x7f",
    };
    for (size_t i = 0; i < sizeof paths / sizeof *paths; i++) {
        created(zh, paths[i], "", ZOO_PERSISTENT, -1);
    }
    listed(zh, "/story");
    static const char *const made[] = {
        "/story/a b", "/story/caf\xc3\xa9", "/story/...", "/story/\xf0\x9f\x90\x91",
    };
    for (size_t i = 0; i < sizeof made / sizeof *made; i++) deleted(zh, made[i], 0);
}

static void tell_of_system_nodes(zhandle_t *zh)
{
    listed(zh, "/zookeeper");
    existed(zh, "/zookeeper/quota");
    got(zh, "/zookeeper/quota");
    set(zh, "/zookeeper/config", "x", -1);
    created(zh, "/zookeeper", "", ZOO_PERSISTENT, -1);
    created(zh, "/zookeeper/config/x", "", ZOO_PERSISTENT, -1);
    deleted(zh, "/zookeeper/quota", -1);
    deleted(zh, "/zookeeper", -1);
    deleted(zh, "/", -1);
    created(zh, "/", "", ZOO_PERSISTENT, -1);

    char data[256];
    int length = sizeof data;
    int rc = zoo_getconfig(zh, 0, data, &length, NULL);
    say("getconfig: %s, %d bytes", zerror(rc), length);
    length = sizeof data;
    rc = zoo_reconfig(zh, "server.2=127.0.0.1:1:2;3", NULL, NULL, -1, data, &length, NULL);
    say("reconfig, joining: %s", zerror(rc));
    rc = zoo_reconfig(zh, NULL, "1", NULL, -1, data, &length, NULL);
    say("reconfig, leaving: %s", zerror(rc));
    rc = zoo_reconfig(zh, NULL, NULL, "server.1=127.0.0.1:1:2;3", 7, data, &length, NULL);
    say("reconfig, members: %s", zerror(rc));
}

void tell_of_nodes(zhandle_t *zh)
{
    created(zh, "/story", "once", ZOO_PERSISTENT, -1);
    created(zh, "/story", "twice", ZOO_PERSISTENT, -1);
    created(zh, "/story/none/x", "", ZOO_PERSISTENT, -1);
    created(zh, "/story/null", NULL, ZOO_PERSISTENT, -1);
    created(zh, "/story/empty", "", ZOO_PERSISTENT, -1);
    created(zh, "/story/seq-", "s", ZOO_PERSISTENT_SEQUENTIAL, -1);
    created(zh, "/story/eph", "e", ZOO_EPHEMERAL, -1);
    created(zh, "/story/eph/x", "", ZOO_PERSISTENT, -1);
    created(zh, "/story/eph-", "e", ZOO_EPHEMERAL_SEQUENTIAL, -1);
    created(zh, "/story/box", "c", ZOO_CONTAINER, -1);
    created(zh, "/story/box/", "", ZOO_PERSISTENT_SEQUENTIAL, -1);
    created(zh, "/story/ttl", "t", ZOO_PERSISTENT_WITH_TTL, 3600000);
    created(zh, "/story/ttl-", "t", ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL, 1099511627775);
    created(zh, "/story/ttl0", "t", ZOO_PERSISTENT_WITH_TTL, 0);
    created(zh, "/story/ttlmax", "t", ZOO_PERSISTENT_WITH_TTL, 1099511627776);
    created(zh, "/story/ttlbad", "t", ZOO_PERSISTENT, 5);
    created(zh, "/story/mode", "t", 9, -1);
    listed(zh, "/story");

    got(zh, "/story");
    got(zh, "/story/null");
    got(zh, "/story/empty");
    got(zh, "/story/none");
    set(zh, "/story", "more", 7);
    set(zh, "/story", "more", 0);
    set(zh, "/story", "most", 0);
    set(zh, "/story", NULL, -1);
    set(zh, "/story/none", "x", -1);
    got(zh, "/story");
    existed(zh, "/story");
    existed(zh, "/story/none");
    listed(zh, "/story/none");
    listed(zh, "/story/empty");

    char small[2];
    int length = sizeof small;
    set(zh, "/story/empty", "no longer", -1);
    int rc = zoo_get(zh, "/story/empty", 0, small, &length, NULL);
    say("get into a small buffer: %s %s", zerror(rc), data_text(small, length));

    deleted(zh, "/story/none", -1);
    deleted(zh, "/story/box", -1);
    deleted(zh, "/story/empty", 0);
    deleted(zh, "/story/empty", 1);
    deleted(zh, "/story/null", 0);
    deleted(zh, "/story/ttl", -1);
    deleted(zh, "/story/eph", -1);
    tell_of_names(zh);
    tell_of_system_nodes(zh);
}

static void made(int rc, const char *path, const void *what)
{
    note("%s: %s %s", (const char *)what, zerror(rc), rc == ZOK ? path : "");
}

static void made2(int rc, const char *path, const struct Stat *stat, const void *what)
{
    note("%s: %s %s, %d bytes", (const char *)what, zerror(rc), rc == ZOK ? path : "",
         rc == ZOK ? stat->dataLength : 0);
}

static void read_data(int rc, const char *data, int length, const struct Stat *stat,
                      const void *what)
{
    note("%s: %s %s, version %d", (const char *)what, zerror(rc),
         rc == ZOK ? data_text(data, length) : "", rc == ZOK ? stat->version : -1);
}

static void read_stat(int rc, const struct Stat *stat, const void *what)
{
    note("%s: %s, version %d", (const char *)what, zerror(rc), rc == ZOK ? stat->version : -1);
}

static void read_names(int rc, const struct String_vector *names, const void *what)
{
    note("%s: %s, %d names", (const char *)what, zerror(rc), rc == ZOK ? names->count : -1);
}

static void read_names2(int rc, const struct String_vector *names, const struct Stat *stat,
                        const void *what)
{
    note("%s: %s, %d names, %d children", (const char *)what, zerror(rc),
         rc == ZOK ? names->count : -1, rc == ZOK ? stat->numChildren : -1);
}

static void read_acl(int rc, struct ACL_vector *acl, struct Stat *stat, const void *what)
{
    (void)stat;
    note("%s: %s%s", (const char *)what, zerror(rc), rc == ZOK ? acl_text(acl) : "");
}

static void done(int rc, const void *what)
{
    note("%s: %s", (const char *)what, zerror(rc));
}

/* Told only where it is out of order or went wrong. */
static int answered;

static void counted_too(int rc, const void *number)
{
    if ((intptr_t)number != answered || rc != ZOK) {
        note("answer %d came as number %d: %s", (int)(intptr_t)number, answered, zerror(rc));
    }
    answered++;
}

static void counted(int rc, const char *path, const void *number)
{
    (void)path;
    counted_too(rc, number);
}

/* None of these waits for another: the order of the answers is the server's. */
static void tell_of_calls_in_flight(zhandle_t *zh)
{
    const struct ACL_vector *open = &ZOO_OPEN_ACL_UNSAFE;
    say("many calls at once");
    zoo_acreate(zh, "/story/many", "m", 1, open, ZOO_PERSISTENT, made, "acreate");
    zoo_acreate(zh, "/story/many", "m", 1, open, ZOO_PERSISTENT, made, "acreate again");
    zoo_acreate2(zh, "/story/many/s-", "22", 2, open, ZOO_PERSISTENT_SEQUENTIAL, made2, "acreate2");
    zoo_acreate2_ttl(zh, "/story/many/t-", "3", 1, open, ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL,
                     3600000, made2, "acreate2_ttl");
    zoo_awget(zh, "/story/many", heard, "a watcher", read_data, "awget");
    zoo_aset(zh, "/story/many", "n", 1, 0, read_stat, "aset");
    zoo_aset(zh, "/story/many", "o", 1, 0, read_stat, "aset again");
    zoo_aget(zh, "/story/many", 0, read_data, "aget");
    zoo_aexists(zh, "/story/many", 0, read_stat, "aexists");
    zoo_aexists(zh, "/story/many/none", 0, read_stat, "aexists none");
    zoo_aget_children(zh, "/story/many", 0, read_names, "aget_children");
    zoo_aget_children2(zh, "/story/many", 0, read_names2, "aget_children2");
    zoo_aget_acl(zh, "/story/many", read_acl, "aget_acl");
    zoo_aset_acl(zh, "/story/many", 0, &ZOO_READ_ACL_UNSAFE, done, "aset_acl");
    zoo_agetconfig(zh, 0, read_data, "agetconfig");
    zoo_async(zh, "/story/many", made, "async");
    zoo_async(zh, "/story/many/none", made, "async of none");
    zoo_adelete(zh, "/story/many", -1, done, "adelete");
    tell_until_now(zh);
    zoo_aset(zh, "/story/many", "p", 1, -1, read_stat, "aset refused");
    tell_until_now(zh);

    int unsent = 0;
    for (intptr_t i = 0; i < 200; i++) {
        char path[64];
        snprintf(path, sizeof path, "/story/box/n%d", (int)i);
        unsent += zoo_acreate(zh, path, "x", 1, open, 0, counted, (void *)(2 * i)) != ZOK;
        unsent += zoo_adelete(zh, path, 0, counted_too, (void *)(2 * i + 1)) != ZOK;
    }
    tell_until_now(zh);
    say("two hundred creates and deletes at once: %d not sent, %d answered", unsent,
        answered);
}

enum { OPS_MAX = 8, PATH_BYTES = 64 };

static zoo_op_t ops[OPS_MAX];
static zoo_op_result_t results[OPS_MAX];
static char paths[OPS_MAX][PATH_BYTES];
static struct Stat stats[OPS_MAX];
static int op_count;

static void op_create(const char *path, int mode)
{
    paths[op_count][0] = '\0';
    zoo_create_op_init(&ops[op_count], path, "m", 1, &ZOO_OPEN_ACL_UNSAFE, mode, paths[op_count],
                       PATH_BYTES);
    op_count++;
}

static void op_set(const char *path, int version)
{
    zoo_set_op_init(&ops[op_count], path, "set", 3, version, &stats[op_count]);
    op_count++;
}

static void op_delete(const char *path, int version)
{
    zoo_delete_op_init(&ops[op_count++], path, version);
}

static void op_check(const char *path, int version)
{
    zoo_check_op_init(&ops[op_count++], path, version);
}

static void multi(zhandle_t *zh, const char *what)
{
    memset(results, 0, sizeof results);
    int rc = zoo_multi(zh, op_count, ops, results);
    say("multi %s: %s", what, zerror(rc));
    for (int i = 0; i < op_count; i++) {
        say("  %d: %s %s %s", i, zerror(results[i].err),
            rc == ZOK && results[i].value != NULL ? results[i].value : "",
            rc == ZOK && results[i].stat != NULL ? stat_text(zh, results[i].stat) : "");
    }
    op_count = 0;
}

static void tell_of_multi(zhandle_t *zh)
{
    op_create("/story/m", ZOO_PERSISTENT);
    op_create("/story/m/s-", ZOO_PERSISTENT_SEQUENTIAL);
    op_create("/story/m/e", ZOO_EPHEMERAL);
    op_check("/story/m", 0);
    op_set("/story/m", 0);
    op_set("/story/m", 1);
    op_delete("/story/m/e", 0);
    multi(zh, "that is good");
    listed(zh, "/story/m");
    got(zh, "/story/m");

    op_create("/story/m/a", ZOO_PERSISTENT);
    op_set("/story/m", 7);
    op_delete("/story/m/a", -1);
    multi(zh, "with a wrong version");
    op_create("/story/m/a", ZOO_PERSISTENT);
    op_create("/story/m/a", ZOO_PERSISTENT);
    multi(zh, "that makes a node twice");
    op_check("/story/none", -1);
    multi(zh, "that checks a node that is not");
    op_check("/story/m", 9);
    op_set("/story/m", -1);
    multi(zh, "that checks a wrong version");
    op_set("/story/m", -1);
    op_delete("/story/m", -1);
    multi(zh, "that deletes what has children");
    op_create("/story/m/e", ZOO_EPHEMERAL);
    op_create("/story/m/e/x", ZOO_PERSISTENT);
    multi(zh, "with a child of an ephemeral");
    op_create("/story/m/a", ZOO_PERSISTENT);
    op_delete("/story/m/a", 0);
    op_create("/story/m/a", ZOO_PERSISTENT);
    op_set("/story/m/a", 0);
    multi(zh, "that makes, deletes and makes");
    multi(zh, "of nothing");
    op_create("story", ZOO_PERSISTENT);
    multi(zh, "with a bad path");
    listed(zh, "/story/m");
    got(zh, "/story/m/a");

    static zoo_op_result_t later[2];
    zoo_op_t two[2];
    zoo_delete_op_init(&two[0], "/story/m/a", 1);
    zoo_check_op_init(&two[1], "/story/m/a", -1);
    say("amulti: %s", zerror(zoo_amulti(zh, 2, two, later, done, "amulti is done")));
    tell_until_now(zh);
    say("  %s, %s", zerror(later[0].err), zerror(later[1].err));
}

void tell_of_many_at_once(zhandle_t *zh)
{
    tell_of_calls_in_flight(zh);
    tell_of_multi(zh);
}

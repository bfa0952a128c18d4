/* The chapters of watches, and of links that are cut under them. */

#include "teller.h"

#include <string.h>

static void created(zhandle_t *zh, const char *path, int mode)
{
    int rc = zoo_create(zh, path, "w", 1, &ZOO_OPEN_ACL_UNSAFE, mode, NULL, 0);
    say("create %s: %s", path, zerror(rc));
}

static void set(zhandle_t *zh, const char *path, int version)
{
    say("set %s: %s", path, zerror(zoo_set(zh, path, "x", 1, version)));
}

static void deleted(zhandle_t *zh, const char *path)
{
    say("delete %s: %s", path, zerror(zoo_delete(zh, path, -1)));
}

static void watch_data(zhandle_t *zh, const char *path, const char *name)
{
    char data[16];
    int length = sizeof data;
    int rc = zoo_wget(zh, path, heard, (void *)name, data, &length, NULL);
    say("%s watches the data of %s: %s", name, path, zerror(rc));
}

static void watch_existence(zhandle_t *zh, const char *path, const char *name)
{
    int rc = zoo_wexists(zh, path, heard, (void *)name, NULL);
    say("%s watches for %s: %s", name, path, zerror(rc));
}

static void watch_children(zhandle_t *zh, const char *path, const char *name)
{
    struct String_vector names = {0, NULL};
    int rc = zoo_wget_children(zh, path, heard, (void *)name, &names);
    say("%s watches the children of %s: %s", name, path, zerror(rc));
    deallocate_String_vector(&names);
}

static void tell_of_single_watches(zhandle_t *zh)
{
    created(zh, "/story/w", ZOO_PERSISTENT);
    watch_data(zh, "/story/w", "data");
    watch_data(zh, "/story/w", "more data");
    watch_data(zh, "/story/w", "data");
    watch_existence(zh, "/story/w", "existence");
    watch_children(zh, "/story/w", "children");
    set(zh, "/story/w", 9);
    tell_until_now(zh);
    say("set_acl: %s", zerror(zoo_set_acl(zh, "/story/w", -1, &ZOO_OPEN_ACL_UNSAFE)));
    tell_until_now(zh);
    set(zh, "/story/w", 0);
    tell_until_now(zh);
    set(zh, "/story/w", 1);
    tell_until_now(zh);
    created(zh, "/story/w/x", ZOO_EPHEMERAL);
    tell_until_now(zh);
    created(zh, "/story/w/y", ZOO_EPHEMERAL);
    tell_until_now(zh);
    watch_children(zh, "/story/w", "children");
    watch_data(zh, "/story/w/x", "data");
    watch_children(zh, "/story/w/x", "children of x");
    set(zh, "/story/w/x", -1);
    tell_until_now(zh);
    watch_data(zh, "/story/w/x", "data");
    watch_existence(zh, "/story/w/x", "existence");
    deleted(zh, "/story/w/x");
    tell_until_now(zh);
    watch_data(zh, "/story/w/x", "data of nothing");
    watch_children(zh, "/story/w/x", "children of nothing");
    watch_existence(zh, "/story/w/x", "existence");
    created(zh, "/story/w/x", ZOO_PERSISTENT);
    tell_until_now(zh);
    set(zh, "/story/w/x", -1);
    tell_until_now(zh);
}

static void tell_of_the_handle_s_watcher(zhandle_t *zh)
{
    char data[16];
    int length = sizeof data;
    struct String_vector names = {0, NULL};
    say("exists, get and get_children with the handle's watcher: %s, %s, %s",
        zerror(zoo_exists(zh, "/story/w/z", 1, NULL)),
        zerror(zoo_get(zh, "/story/w/x", 1, data, &length, NULL)),
        zerror(zoo_get_children(zh, "/story/w", 1, &names)));
    deallocate_String_vector(&names);
    zoo_op_t ops[3];
    zoo_op_result_t results[3];
    zoo_set_op_init(&ops[0], "/story/w/x", "m", 1, -1, NULL);
    zoo_create_op_init(&ops[1], "/story/w/z", "m", 1, &ZOO_OPEN_ACL_UNSAFE, 0, NULL, 0);
    zoo_delete_op_init(&ops[2], "/story/w/y", 5);
    say("multi that fails: %s", zerror(zoo_multi(zh, 3, ops, results)));
    tell_until_now(zh);
    zoo_delete_op_init(&ops[2], "/story/w/y", -1);
    say("multi: %s", zerror(zoo_multi(zh, 3, ops, results)));
    tell_until_now(zh);
}

static void tell_of_removed_watches(zhandle_t *zh)
{
    watch_data(zh, "/story/w/x", "data");
    watch_data(zh, "/story/w/x", "more data");
    watch_children(zh, "/story/w/x", "children");
    say("remove one: %s",
        zerror(zoo_remove_watches(zh, "/story/w/x", ZWATCHTYPE_DATA, heard, "data", 0)));
    say("remove a stranger's: %s",
        zerror(zoo_remove_watches(zh, "/story/w/x", ZWATCHTYPE_DATA, heard, "stranger", 0)));
    tell_until_now(zh);
    set(zh, "/story/w/x", -1);
    tell_until_now(zh);
    watch_data(zh, "/story/w/x", "data");
    say("remove all: %s", zerror(zoo_remove_all_watches(zh, "/story/w/x", ZWATCHTYPE_ANY, 0)));
    say("remove all again: %s", zerror(zoo_remove_all_watches(zh, "/story/w/x", ZWATCHTYPE_ANY, 0)));
    tell_until_now(zh);
    set(zh, "/story/w/x", -1);
    created(zh, "/story/w/x/c", ZOO_PERSISTENT);
    tell_until_now(zh);
    deleted(zh, "/story/w/x/c");
}

/* The server does these by itself, some time after they are due. */
static void tell_of_nodes_that_go_by_themselves(zhandle_t *zh)
{
    char at[64];
    created(zh, "/story/crate", ZOO_CONTAINER);
    created(zh, "/story/crate/x", ZOO_PERSISTENT);
    watch_existence(zh, "/story/crate", "crate");
    deleted(zh, "/story/crate/x");
    tell(1);
    int rc = zoo_create_ttl(zh, "/story/brief", "b", 1, &ZOO_OPEN_ACL_UNSAFE,
                            ZOO_PERSISTENT_WITH_TTL, 300, at, sizeof at);
    say("create /story/brief: %s", zerror(rc));
    watch_existence(zh, "/story/brief", "brief");
    tell(1);
}

static void tell_of_a_chroot(zhandle_t *zh)
{
    char address[128];
    char at[64];
    struct String_vector names = {0, NULL};
    strcpy(address, direct);
    strcat(address, "/story/w");
    zhandle_t *dan = opened("dan", address, 20000, NULL);
    watch_children(dan, "/", "dan's root");
    watch_existence(dan, "/in", "dan's node");
    int rc = zoo_create(dan, "/in", "x", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, at, sizeof at);
    say("dan creates: %s %s", zerror(rc), at);
    tell_until_now(dan);
    rc = zoo_get_children(dan, "/", 0, &names);
    say("dan sees: %s %s", zerror(rc), children_text(&names));
    deallocate_String_vector(&names);
    say("ann sees: %s", zerror(zoo_exists(zh, "/story/w/in", 0, NULL)));
    watch_existence(zh, "/story/w/in", "ann");
    closed("dan", dan);
    tell(1);
}

void tell_of_watches(zhandle_t *zh)
{
    tell_of_single_watches(zh);
    tell_of_the_handle_s_watcher(zh);
    tell_of_removed_watches(zh);
    tell_of_nodes_that_go_by_themselves(zh);
    tell_of_a_chroot(zh);
}

static void read_data(int rc, const char *data, int length, const struct Stat *stat,
                      const void *what)
{
    (void)data;
    (void)length;
    (void)stat;
    note("%s: %s", (const char *)what, zerror(rc));
}

void tell_of_links(zhandle_t *zh)
{
    zhandle_t *eve = opened("eve", direct, 20000, NULL);
    created(zh, "/story/l", ZOO_PERSISTENT);
    created(zh, "/story/l/a", ZOO_PERSISTENT);
    created(zh, "/story/l/b", ZOO_PERSISTENT);
    created(zh, "/story/l/mine", ZOO_EPHEMERAL);

    say("nothing changes while the link is cut");
    watch_data(zh, "/story/l/a", "data of a");
    watch_existence(zh, "/story/l/none", "none");
    watch_children(zh, "/story/l", "children");
    ask("cut");
    tell(2);
    tell_until_now(zh);
    set(eve, "/story/l/a", -1);
    created(eve, "/story/l/none", ZOO_PERSISTENT);
    tell_until_now(zh);

    say("much changes while the link is cut");
    watch_data(zh, "/story/l/a", "data of a");
    watch_data(zh, "/story/l/b", "data of b");
    watch_existence(zh, "/story/l/new", "new");
    watch_existence(zh, "/story/l/none", "none");
    watch_children(zh, "/story/l", "children");
    watch_children(zh, "/story/l/a", "children of a");
    ask("hold");
    ask("cut");
    tell(1);
    set(eve, "/story/l/a", -1);
    deleted(eve, "/story/l/b");
    created(eve, "/story/l/new", ZOO_PERSISTENT);
    ask("admit");
    tell(1);
    tell_until_now(zh);
    created(eve, "/story/l/a/x", ZOO_PERSISTENT);
    set(eve, "/story/l/none", -1);
    tell_until_now(zh);
    say("ann's node is there: %s", zerror(zoo_exists(eve, "/story/l/mine", 0, NULL)));
    say("ann is still known: %s", zerror(zoo_set_acl(zh, "/story/all", -1, &ZOO_OPEN_ACL_UNSAFE)));

    say("the link is cut before an answer");
    ask("pause");
    zoo_aget(zh, "/story/l", 0, read_data, "aget");
    ask("cut");
    tell_sorted(2);
    ask("resume");
    tell(1);

    static char much[2 * 1024 * 1024];
    say("set of two megabytes: %s", zerror(zoo_set(zh, "/story/l", much, sizeof much, -1)));
    tell(2);
    say("exists: %s", zerror(zoo_exists(zh, "/story/l", 0, NULL)));
    closed("eve", eve);
}

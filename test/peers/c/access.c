/* The chapter of who may do what. */

#include "teller.h"

#include <string.h>

static void created(zhandle_t *zh, const char *path, const struct ACL_vector *acl)
{
    int rc = zoo_create(zh, path, "secret", 6, acl, ZOO_PERSISTENT, NULL, 0);
    say("create %s: %s", path, zerror(rc));
}

static void looked_at(const char *name, zhandle_t *zh, const char *path)
{
    struct ACL_vector acl = {0, NULL};
    struct Stat stat;
    int rc = zoo_get_acl(zh, path, &acl, &stat);
    say("%s: get_acl %s: %s%s %s", name, path, zerror(rc), rc == ZOK ? acl_text(&acl) : "",
        rc == ZOK ? stat_text(zh, &stat) : "");
    deallocate_ACL_vector(&acl);
    char data[16];
    int length = sizeof data;
    struct String_vector names = {0, NULL};
    say("%s: get %s: %s", name, path, zerror(zoo_get(zh, path, 0, data, &length, NULL)));
    say("%s: set %s: %s", name, path, zerror(zoo_set(zh, path, "x", 1, -1)));
    say("%s: exists %s: %s", name, path, zerror(zoo_exists(zh, path, 0, NULL)));
    say("%s: get_children %s: %s", name, path, zerror(zoo_get_children(zh, path, 0, &names)));
    deallocate_String_vector(&names);
}

static void set_acl(zhandle_t *zh, const char *path, int version, const struct ACL_vector *acl)
{
    say("set_acl %s at %d: %s", path, version, zerror(zoo_set_acl(zh, path, version, acl)));
}

void tell_of_access(zhandle_t *zh)
{
    struct ACL_vector none = {0, NULL};
    struct ACL odd = {ZOO_PERM_ALL, {"odd", "one"}};
    struct ACL_vector odd_acl = {1, &odd};
    struct ACL badly_digested = {ZOO_PERM_ALL, {"digest", "no colon"}};
    struct ACL_vector badly_digested_acl = {1, &badly_digested};
    struct ACL bad_ip = {ZOO_PERM_ALL, {"ip", "127.0.0.256"}};
    struct ACL_vector bad_ip_acl = {1, &bad_ip};
    struct ACL two[2] = {{ZOO_PERM_ALL, {"ip", "127.0.0.0/8"}}, {ZOO_PERM_READ, {"world", "anyone"}}};
    struct ACL_vector two_acl = {2, two};
    struct ACL far = {ZOO_PERM_ALL, {"ip", "10.1.2.3"}};
    struct ACL_vector far_acl = {1, &far};
    struct ACL both[2] = {{ZOO_PERM_READ | ZOO_PERM_CREATE, {"world", "anyone"}},
                          {ZOO_PERM_ALL, {"auth", ""}}};
    struct ACL_vector both_acl = {2, both};

    created(zh, "/story/nobody's", &none);
    created(zh, "/story/odd", &odd_acl);
    created(zh, "/story/undigested", &badly_digested_acl);
    created(zh, "/story/ip", &bad_ip_acl);
    created(zh, "/story/mine", &ZOO_CREATOR_ALL_ACL);
    said_auth(zh, "digest", "ann:secret");
    created(zh, "/story/mine", &ZOO_CREATOR_ALL_ACL);
    created(zh, "/story/mine/x", &ZOO_OPEN_ACL_UNSAFE);
    created(zh, "/story/near", &two_acl);
    created(zh, "/story/far", &far_acl);
    created(zh, "/story/both", &both_acl);
    looked_at("ann", zh, "/story/mine");
    looked_at("ann", zh, "/story/far");

    zhandle_t *bob = opened("bob", direct, 20000, NULL);
    looked_at("bob", bob, "/story/mine");
    looked_at("bob", bob, "/story/near");
    looked_at("bob", bob, "/story/both");
    created(bob, "/story/mine/y", &ZOO_OPEN_ACL_UNSAFE);
    say("bob: delete /story/mine/x: %s", zerror(zoo_delete(bob, "/story/mine/x", -1)));
    say("bob: set /story/mine/x: %s", zerror(zoo_set(bob, "/story/mine/x", "x", 1, -1)));
    set_acl(bob, "/story/mine", -1, &ZOO_OPEN_ACL_UNSAFE);
    said_auth(bob, "digest", "ann:wrong");
    looked_at("bob", bob, "/story/mine");
    said_auth(bob, "digest", "ann:secret");
    looked_at("bob", bob, "/story/mine");
    said_auth(bob, "digest", "no colon");
    created(bob, "/story/all", &ZOO_CREATOR_ALL_ACL);
    looked_at("bob", bob, "/story/all");

    set_acl(zh, "/story/mine", 5, &ZOO_OPEN_ACL_UNSAFE);
    set_acl(zh, "/story/mine", 0, &none);
    set_acl(zh, "/story/mine", 0, &odd_acl);
    set_acl(zh, "/story/mine", 0, &ZOO_READ_ACL_UNSAFE);
    set_acl(zh, "/story/mine", 1, &ZOO_OPEN_ACL_UNSAFE);
    set_acl(zh, "/story/none", -1, &ZOO_OPEN_ACL_UNSAFE);
    set_acl(zh, "/story/both", -1, &ZOO_OPEN_ACL_UNSAFE);
    looked_at("bob", bob, "/story/mine");
    looked_at("ann", zh, "/story/both");
    closed("bob", bob);

    zhandle_t *cyd = opened("cyd", direct, 20000, NULL);
    say("add_auth odd: %s", zerror(zoo_add_auth(cyd, "odd", "x", 1, NULL, NULL)));
    tell(1);
    say("cyd can not go on: %s", zerror(zoo_exists(cyd, "/story", 0, NULL)));
    say("cyd is lost: %s", is_unrecoverable(cyd) == ZINVALIDSTATE ? "yes" : "no");
    closed("cyd", cyd);
}

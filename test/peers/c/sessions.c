/* The chapter of sessions: how long they are, who may take one up again, and how they end. */

#include "teller.h"

#include <string.h>

static void created(zhandle_t *zh, const char *path)
{
    int rc = zoo_create(zh, path, "s", 1, &ZOO_OPEN_ACL_UNSAFE, ZOO_EPHEMERAL, NULL, 0);
    say("create %s: %s", path, zerror(rc));
}

static void tell_of_timeouts(void)
{
    static const int asked[] = {1000, 4000, 9999, 40000, 1000000};
    for (size_t i = 0; i < sizeof asked / sizeof *asked; i++) {
        zhandle_t *zh = opened("somebody", direct, asked[i], NULL);
        say("asked for %d, given %d", asked[i], zoo_recv_timeout(zh));
        closed("somebody", zh);
    }
}

/* A wrong password takes no session, but the link of whoever has it. */
static void tell_of_strange_ids(const clientid_t *known)
{
    clientid_t wrong = *known;
    wrong.passwd[0] ^= 1;
    ask("hold");
    zhandle_t *zh = coming("a thief", direct, 20000, &wrong);
    tell_sorted(2);
    say("exists: %s", zerror(zoo_exists(zh, "/", 0, NULL)));
    closed("a thief", zh);
    ask("admit");
    tell(1);
    wrong = *known;
    wrong.client_id ^= 0x5a5a;
    zh = opened("a stranger", direct, 20000, &wrong);
    closed("a stranger", zh);
}

void tell_of_sessions(void)
{
    tell_of_timeouts();
    zhandle_t *witness = opened("witness", direct, 20000, NULL);

    zhandle_t *fay = opened("fay", direct, 20000, NULL);
    created(fay, "/story/fay");
    created(fay, "/story/fay's");
    zoo_wexists(witness, "/story/fay", heard, "witness", NULL);
    closed("fay", fay);
    tell(1);
    say("witness: %s", zerror(zoo_exists(witness, "/story/fay's", 0, NULL)));

    say("one session, two handles");
    zhandle_t *gus = opened("gus", linked, 20000, NULL);
    clientid_t id = *zoo_client_id(gus);
    created(gus, "/story/gus");
    tell_of_strange_ids(&id);
    ask("hold");
    zhandle_t *heir = coming("heir", direct, 20000, &id);
    tell_sorted(2);
    say("the same session: %s", zoo_client_id(heir)->client_id == id.client_id ? "yes" : "no");
    struct Stat stat;
    int rc = zoo_exists(heir, "/story/gus", 0, &stat);
    say("heir: %s %s", zerror(rc), rc == ZOK ? stat_text(heir, &stat) : "");
    created(heir, "/story/heir");
    zoo_wexists(witness, "/story/gus", heard, "witness", NULL);
    zoo_wexists(witness, "/story/heir", heard, "witness", NULL);
    closed("heir", heir);
    tell_sorted(2);
    ask("admit");
    tell(1);
    say("gus can not go on: %s", zerror(zoo_exists(gus, "/story", 0, NULL)));
    say("gus is lost: %s", is_unrecoverable(gus) == ZINVALIDSTATE ? "yes" : "no");
    closed("gus", gus);
    zhandle_t *late = opened("late", direct, 20000, &id);
    closed("late", late);

    zhandle_t *again = opened("again", direct, 20000, NULL);
    created(again, "/story/gus");
    closed("again", again);
    closed("witness", witness);
}

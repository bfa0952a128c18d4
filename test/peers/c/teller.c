/* How the story is told: notes of other threads, and words for what the library hands over. */

#include "teller.h"

#include <pthread.h>
#include <stdarg.h>
#include <stdio.h>
#include <stdlib.h>
#include <string.h>
#include <time.h>

enum { NOTES_MAX = 512, LINE_MAX_BYTES = 512, PATIENCE_S = 20 };

const char *linked;
const char *direct;

static pthread_mutex_t lock = PTHREAD_MUTEX_INITIALIZER;
static pthread_cond_t changed = PTHREAD_COND_INITIALIZER;
static char notes[NOTES_MAX][LINE_MAX_BYTES];
static int note_count;
static int marks;

void say(const char *format, ...)
{
    va_list arguments;
    va_start(arguments, format);
    vprintf(format, arguments);
    va_end(arguments);
    putchar('\n');
    fflush(stdout);
}

void note(const char *format, ...)
{
    va_list arguments;
    pthread_mutex_lock(&lock);
    if (note_count == NOTES_MAX) abort();
    va_start(arguments, format);
    vsnprintf(notes[note_count++], LINE_MAX_BYTES, format, arguments);
    va_end(arguments);
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

static void print_notes(void)
{
    for (int i = 0; i < note_count; i++) say("  %s", notes[i]);
    note_count = 0;
}

/* Called with the lock held. A story that hangs says so and ends. */
static void wait_for(const int *value, int wanted)
{
    struct timespec deadline;
    clock_gettime(CLOCK_REALTIME, &deadline);
    deadline.tv_sec += PATIENCE_S;
    while (*value < wanted) {
        if (pthread_cond_timedwait(&changed, &lock, &deadline) == 0) continue;
        print_notes();
        say("  nothing more was heard");
        exit(1);
    }
}

void tell(int count)
{
    pthread_mutex_lock(&lock);
    wait_for(&note_count, count);
    print_notes();
    pthread_mutex_unlock(&lock);
}

static int by_text(const void *a, const void *b)
{
    return strcmp(a, b);
}

void tell_sorted(int count)
{
    pthread_mutex_lock(&lock);
    wait_for(&note_count, count);
    qsort(notes, (size_t)note_count, sizeof *notes, by_text);
    print_notes();
    pthread_mutex_unlock(&lock);
}

static void marked(int rc, const char *path, const void *data)
{
    (void)path;
    (void)data;
    if (rc != ZOK) note("sync: %s", zerror(rc));
    pthread_mutex_lock(&lock);
    marks++;
    pthread_cond_broadcast(&changed);
    pthread_mutex_unlock(&lock);
}

/* Completions are called in the order of what the server says, and on the thread that watchers are. */
void tell_until_now(zhandle_t *zh)
{
    pthread_mutex_lock(&lock);
    int before = marks;
    pthread_mutex_unlock(&lock);
    int rc = zoo_async(zh, "/", marked, NULL);
    pthread_mutex_lock(&lock);
    if (rc == ZOK) wait_for(&marks, before + 1);
    else say("  sync: %s", zerror(rc));
    print_notes();
    pthread_mutex_unlock(&lock);
}

void ask(const char *what)
{
    char line[64];
    say("ask %s", what);
    if (fgets(line, sizeof line, stdin) == NULL) exit(1);
}

static const char *state_text(int state)
{
    if (state == ZOO_CONNECTED_STATE) return "connected";
    if (state == ZOO_CONNECTING_STATE) return "connecting";
    if (state == ZOO_ASSOCIATING_STATE) return "associating";
    if (state == ZOO_READONLY_STATE) return "connected for reading alone";
    if (state == ZOO_EXPIRED_SESSION_STATE) return "expired";
    if (state == ZOO_AUTH_FAILED_STATE) return "refused for what it said of itself";
    return "in a state that has no name";
}

static const char *type_text(int type)
{
    if (type == ZOO_CREATED_EVENT) return "created";
    if (type == ZOO_DELETED_EVENT) return "deleted";
    if (type == ZOO_CHANGED_EVENT) return "changed";
    if (type == ZOO_CHILD_EVENT) return "children changed";
    if (type == ZOO_NOTWATCHING_EVENT) return "no longer watched";
    return "an event that has no name";
}

/* Every watcher is told of the session as well; that is told once, by the one of the session. */
void heard(zhandle_t *zh, int type, int state, const char *path, void *name)
{
    (void)zh;
    if (type == ZOO_SESSION_EVENT) return;
    note("%s hears: %s %s, while %s", (char *)name, path, type_text(type), state_text(state));
}

static void heard_of_session(zhandle_t *zh, int type, int state, const char *path, void *name)
{
    (void)path;
    if (type == ZOO_SESSION_EVENT) note("%s is %s", (char *)name, state_text(state));
    else heard(zh, type, state, path, name);
}

zhandle_t *coming(const char *name, const char *address, int timeout_ms, const clientid_t *id)
{
    say("%s comes%s", name, id == NULL ? "" : " with a session");
    zhandle_t *zh = zookeeper_init(address, heard_of_session, timeout_ms, id, (void *)name, 0);
    if (zh == NULL) {
        say("no handle for %s", name);
        exit(1);
    }
    return zh;
}

zhandle_t *opened(const char *name, const char *address, int timeout_ms, const clientid_t *id)
{
    zhandle_t *zh = coming(name, address, timeout_ms, id);
    tell(1);
    return zh;
}

void closed(const char *name, zhandle_t *zh)
{
    say("%s goes: %s", name, zerror(zookeeper_close(zh)));
}

static void said(int rc, const void *scheme)
{
    note("%s: %s", (const char *)scheme, zerror(rc));
}

void said_auth(zhandle_t *zh, const char *scheme, const char *proof)
{
    int rc = zoo_add_auth(zh, scheme, proof, (int)strlen(proof), said, scheme);
    say("add_auth %s: %s", scheme, zerror(rc));
    tell(1);
}

const char *stat_text(zhandle_t *zh, const struct Stat *stat)
{
    static char text[256];
    const char *owner = "another";
    if (stat->ephemeralOwner == 0) owner = "nobody";
    else if (stat->ephemeralOwner == zoo_client_id(zh)->client_id) owner = "me";
    snprintf(text, sizeof text,
             "(version %d, children's %d, acl's %d, %d bytes, %d children, owned by %s%s%s)",
             stat->version, stat->cversion, stat->aversion, stat->dataLength, stat->numChildren,
             owner, stat->mzxid == stat->czxid ? "" : ", data changed",
             stat->pzxid == stat->czxid ? "" : ", children changed");
    return text;
}

const char *data_text(const char *data, int length)
{
    static char text[128];
    if (length < 0) return "null";
    snprintf(text, sizeof text, "\"%.*s\"", length < 64 ? length : 64, data);
    return text;
}

static int by_name(const void *a, const void *b)
{
    return strcmp(*(char *const *)a, *(char *const *)b);
}

/* In no order on the wire. */
const char *children_text(struct String_vector *names)
{
    static char text[1024];
    qsort(names->data, (size_t)names->count, sizeof *names->data, by_name);
    strcpy(text, "[");
    for (int i = 0; i < names->count; i++) {
        size_t used = strlen(text);
        snprintf(text + used, sizeof text - used, "%s%s", i == 0 ? "" : " ", names->data[i]);
    }
    strncat(text, "]", sizeof text - strlen(text) - 1);
    return text;
}

/* What `auth` stands for is a set, so its ids are in no order either. */
const char *acl_text(struct ACL_vector *acl)
{
    enum { ENTRIES_MAX = 8 };
    static char text[512];
    char entries[ENTRIES_MAX][128];
    int count = acl->count < ENTRIES_MAX ? acl->count : ENTRIES_MAX;
    for (int i = 0; i < count; i++) {
        const struct ACL *one = &acl->data[i];
        snprintf(entries[i], sizeof entries[i], " %s:%s:%s%s%s%s%s", one->id.scheme, one->id.id,
                 one->perms & ZOO_PERM_CREATE ? "c" : "", one->perms & ZOO_PERM_DELETE ? "d" : "",
                 one->perms & ZOO_PERM_READ ? "r" : "", one->perms & ZOO_PERM_WRITE ? "w" : "",
                 one->perms & ZOO_PERM_ADMIN ? "a" : "");
    }
    qsort(entries, (size_t)count, sizeof *entries, by_text);
    text[0] = '\0';
    for (int i = 0; i < count; i++) {
        strncat(text, entries[i], sizeof text - strlen(text) - 1);
    }
    return text;
}

const char *mode_text(int mode)
{
    if (mode == ZOO_PERSISTENT) return "persistent";
    if (mode == ZOO_EPHEMERAL) return "ephemeral";
    if (mode == ZOO_PERSISTENT_SEQUENTIAL) return "sequential";
    if (mode == ZOO_EPHEMERAL_SEQUENTIAL) return "ephemeral sequential";
    if (mode == ZOO_CONTAINER) return "container";
    if (mode == ZOO_PERSISTENT_WITH_TTL) return "ttl";
    if (mode == ZOO_PERSISTENT_SEQUENTIAL_WITH_TTL) return "sequential ttl";
    return "nameless";
}

/*
 * How the story is told: one line for each step, in an order that is the same on every run.
 *
 * The library calls watchers and completions on threads of its own. They leave a note, and the thread
 * that tells the story prints the notes at points at which no other can come.
 */
#ifndef TELLER_H
#define TELLER_H

#include <zookeeper/zookeeper.h>

/* Where the story is told: one address leads over a link that can be cut, the other does not. */
extern const char *linked;
extern const char *direct;

void say(const char *format, ...);
void note(const char *format, ...);

/* Waits for so many notes, then prints all there are. */
void tell(int count);

/* The same, sorted: for what several threads or one unordered set tell. */
void tell_sorted(int count);

/* Prints the notes of everything that the server had said to this handle when it was asked. */
void tell_until_now(zhandle_t *zh);

/* Asks who runs this program to do something to the link, and waits until it is done. */
void ask(const char *what);

/* A handle whose session is told about under this name; `opened` waits until it is known what became
   of it. */
zhandle_t *coming(const char *name, const char *address, int timeout_ms, const clientid_t *id);
zhandle_t *opened(const char *name, const char *address, int timeout_ms, const clientid_t *id);
void closed(const char *name, zhandle_t *zh);

/* A watcher whose context is the name under which it is told about. */
void heard(zhandle_t *zh, int type, int state, const char *path, void *name);

void said_auth(zhandle_t *zh, const char *scheme, const char *proof);

/* All of a stat but its zxids and times. Each call takes the place of the one before. */
const char *stat_text(zhandle_t *zh, const struct Stat *stat);
const char *data_text(const char *data, int length);
const char *children_text(struct String_vector *names);
const char *acl_text(struct ACL_vector *acl);
const char *mode_text(int mode);

/* The chapters. */
void tell_of_nodes(zhandle_t *zh);
void tell_of_many_at_once(zhandle_t *zh);
void tell_of_access(zhandle_t *zh);
void tell_of_watches(zhandle_t *zh);
void tell_of_links(zhandle_t *zh);
void tell_of_sessions(void);

#endif

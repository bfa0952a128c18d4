/*
 * A story through ZooKeeper's C client, told in lines: whatever server it is told to has to give the
 * same ones. No ids, zxids or times are in them.
 *
 *   story <address of the link> <address of the server>
 *
 * A line `ask <what>` asks for something to be done to the link; the story goes on at a line on
 * standard input.
 */

#include "teller.h"

#include <stdio.h>

int main(int argc, char **argv)
{
    if (argc != 3) return 2;
    linked = argv[1];
    direct = argv[2];
    zoo_set_debug_level((ZooLogLevel)0);

    zhandle_t *ann = opened("ann", linked, 20000, NULL);
    tell_of_nodes(ann);
    tell_of_many_at_once(ann);
    tell_of_access(ann);
    tell_of_watches(ann);
    tell_of_links(ann);
    closed("ann", ann);
    tell_of_sessions();
    say("the end");
    return 0;
}

#!/bin/sh
# Stands in for the zkServer.sh of a ZooKeeper release, which the Go client's test suite starts as
# `zkServer.sh start-foreground <zoo.cfg>`, with -D arguments in SERVER_JVMFLAGS.
here=$(cd "$(dirname "$0")" && pwd) || exit 1
exec node --import "file://$here/../../../node_modules/tsx/dist/loader.mjs" "$here/front.ts" "$2"

// A story told by the Go client: nodes of every kind, versions, watches, a multi, digest ACLs, errors, a
// link that is cut and a session that ends.
//
// In: the address of a server, whose tree is empty. Out: one line for each step, without ids, times and
// zxids, so that what two servers answer can be compared.
package main

import (
	"fmt"
	"net"
	"os"
	"sort"
	"strings"
	"sync"
	"time"

	"github.com/go-zookeeper/zk"
)

const patience = 15 * time.Second

var world = zk.WorldACL(zk.PermAll)

func main() {
	address := os.Args[1]
	one, two := open(address, 10*time.Second), open(address, 10*time.Second)
	modes(one)
	versions(one)
	watches(one, two)
	multis(one)
	acls(one, two)
	wrong(one)
	cut(one, two)
	one.Close()
	ends(address, two)
	reaped(two)
	two.Close()
	fmt.Println("done")
}

func modes(c *client) {
	say("persistent", made(c.Create("/story", []byte("begin"), zk.FlagPersistent, world)))
	for _, kind := range []struct {
		name string
		flag int32
	}{
		{"ephemeral", zk.FlagEphemeral},
		{"sequential", zk.FlagSequence},
		{"ephemeral sequential", zk.FlagEphemeralSequential},
		{"container", zk.FlagContainer},
	} {
		path, err := c.Create("/story/"+strings.ReplaceAll(kind.name, " ", "-"), nil, kind.flag, world)
		say(kind.name, made(path, err), c.look(path))
	}
	path, err := c.CreateContainer("/story/own-op", []byte("c"), zk.FlagContainer, world)
	say("container by its own op", made(path, err), c.look(path))
	path, err = c.CreateTTL("/story/ttl", []byte("t"), zk.FlagTTL, world, time.Hour)
	say("ttl", made(path, err), c.look(path))
	path, err = c.CreateTTL("/story/ttl-", nil, zk.FlagPersistentSequentialWithTTL, world, time.Hour)
	say("sequential ttl", made(path, err), c.look(path))
	path, err = c.CreateProtectedEphemeralSequential("/story/guarded-", nil, world)
	say("protected", path[strings.LastIndex(path, "-")+1:], err, c.look(path))
	say("parent", c.look("/story"))
}

func versions(c *client) {
	_, err := c.Set("/story", []byte("one"), 0)
	say("set of version 0", err, c.look("/story"))
	_, err = c.Set("/story", []byte("two"), 0)
	say("set of version 0 again", err)
	_, err = c.Set("/story", nil, -1)
	say("set of any version", err, c.look("/story"))
	data, stat, err := c.Get("/story")
	say("get", len(data), stat.Version, err)
	say("delete of version 3", c.Delete("/story/ttl", 3))
	say("delete of version 0", c.Delete("/story/ttl", 0))
	found, _, err := c.Exists("/story/ttl")
	say("exists", found, err)
	path, err := c.Sync("/story")
	say("sync", path, err)
}

func watches(c, other *client) {
	found, _, created, err := c.ExistsW("/watched")
	say("exists watch", found, err)
	other.Create("/watched", []byte("a"), 0, world)
	say("event", event(created))
	_, _, changed, _ := c.GetW("/watched")
	_, _, existing, _ := c.ExistsW("/watched")
	other.Set("/watched", []byte("b"), -1)
	say("events", event(changed), event(existing))
	names, _, children, err := c.ChildrenW("/watched")
	say("children watch", names, err)
	other.Create("/watched/child", nil, 0, world)
	say("event", event(children))
	_, _, children, _ = c.ChildrenW("/watched/child")
	_, _, deleted, _ := c.GetW("/watched/child")
	other.Delete("/watched/child", -1)
	say("events", event(children), event(deleted))
	_, _, _, err = c.GetW("/watched/child")
	say("watch on nothing", err)
}

func multis(c *client) {
	say("multi", results(c.Multi(
		&zk.CreateRequest{Path: "/multi", Data: []byte("m"), Acl: world},
		&zk.CreateRequest{Path: "/multi/n-", Acl: world, Flags: zk.FlagSequence},
		&zk.SetDataRequest{Path: "/multi", Data: []byte("mm"), Version: 0},
		&zk.CheckVersionRequest{Path: "/multi", Version: 1},
		&zk.DeleteRequest{Path: "/multi/n-0000000000", Version: -1},
	)))
	say("multi that fails", results(c.Multi(
		&zk.CreateRequest{Path: "/multi/first", Acl: world},
		&zk.CheckVersionRequest{Path: "/multi", Version: 7},
		&zk.DeleteRequest{Path: "/multi", Version: -1},
	)))
	say("after both", c.look("/multi"))
	say("multi of nothing", results(c.Multi()))
}

func acls(c, other *client) {
	_, err := c.Create("/secret", []byte("s"), 0, zk.AuthACL(zk.PermAll))
	say("auth without an identity", err)
	_, err = c.Create("/secret", []byte("s"), 0, zk.DigestACL(zk.PermAll, "ann", "pass"))
	say("digest", err)
	_, _, err = c.Get("/secret")
	say("get before", err)
	say("identity", c.AddAuth("digest", []byte("ann:pass")))
	data, _, err := c.Get("/secret")
	say("get after", string(data), err)
	_, err = c.SetACL("/secret", append(zk.AuthACL(zk.PermAll), zk.WorldACL(zk.PermRead)...), 0)
	say("set acl", err)
	_, err = c.SetACL("/secret", world, 0)
	say("set acl of version 0 again", err)
	list, stat, err := c.GetACL("/secret")
	say("acl", list, stat.Aversion, err)
	data, _, err = other.Get("/secret")
	_, refused := other.Set("/secret", nil, -1)
	say("somebody else", string(data), err, refused)
	_, err = c.Create("/none", nil, 0, nil)
	say("no acl", err)
	_, err = c.Create("/odd", nil, 0, []zk.ACL{{Perms: zk.PermAll, Scheme: "nobody", ID: "x"}})
	say("unknown scheme", err)
}

func wrong(c *client) {
	_, err := c.Create("/story", nil, 0, world)
	say("create again", err)
	_, err = c.Create("/no/parent", nil, 0, world)
	say("create without a parent", err)
	_, err = c.Create("/story/ephemeral/child", nil, 0, world)
	say("create below an ephemeral node", err)
	say("delete of a parent", c.Delete("/story", -1))
	say("delete of nothing", c.Delete("/nothing", -1))
	_, err = c.CreateTTL("/story/zero", nil, zk.FlagTTL, world, 0)
	say("ttl of zero", err)
	_, _, err = c.Children("/nothing")
	say("children of nothing", err)
	_, err = c.IncrementalReconfig(nil, []string{"1"}, -1)
	say("reconfig", err)
}

// What happens while the link is away is told when it is back, in the same session.
func cut(c, other *client) {
	id := c.SessionID()
	_, _, changed, _ := c.GetW("/watched")
	_, _, created, _ := c.ExistsW("/later")
	_, _, children, _ := c.ChildrenW("/watched")
	_, _, quiet, _ := c.GetW("/multi")
	c.states()
	c.link.cut()
	other.Set("/watched", []byte("while away"), -1)
	other.Create("/later", nil, 0, world)
	other.Create("/watched/away", nil, 0, world)
	c.link.mend()
	say("after the cut", event(changed), event(created), event(children))
	c.until(zk.StateHasSession)
	found, _, err := c.Exists("/story/ephemeral")
	say("the same session", c.SessionID() == id, "its node is there", found, err)
	data, _, err := c.Get("/secret")
	say("its identity", string(data), err)
	_, err = c.SetACL("/secret", zk.AuthACL(zk.PermAll), -1)
	say("its rights", err)
	other.Set("/multi", nil, -1)
	say("a watch kept", event(quiet))
}

// A session that was away for too long: its nodes are gone and its watches say so.
func ends(address string, other *client) {
	found, _, err := other.Exists("/story/ephemeral")
	say("closed: its ephemeral node", found, err)
	brief := open(address, time.Second)
	brief.Create("/brief", nil, zk.FlagEphemeral, world)
	id := brief.SessionID()
	_, _, gone, _ := other.GetW("/brief")
	_, _, never, _ := brief.GetW("/story")
	brief.states()
	brief.link.cut()
	say("expired", event(gone))
	brief.link.mend()
	say("its watch", event(never))
	brief.until(zk.StateHasSession)
	say("another session", brief.SessionID() != id, brief.seen)
	brief.Close()
}

// The server is told to look for such nodes often. What Create makes with a container's flag is none:
// that takes an op of its own, and this one stays.
func reaped(c *client) {
	c.Create("/flagged", nil, zk.FlagContainer, world)
	c.CreateContainer("/container", nil, zk.FlagContainer, world)
	for _, parent := range []string{"/flagged", "/container"} {
		c.Create(parent+"/child", nil, 0, world)
		say("delete of its last child", c.Delete(parent+"/child", -1))
	}
	c.CreateTTL("/short", nil, zk.FlagTTL, world, 100*time.Millisecond)
	for _, path := range []string{"/container", "/short"} {
		// It may be gone before a watch is set.
		if found, _, gone, _ := c.ExistsW(path); found {
			event(gone)
		}
		say("in time", path, c.look(path))
	}
	say("flagged", c.look("/flagged"))
}

type client struct {
	*zk.Conn
	link   *link
	events <-chan zk.Event
	seen   []string
}

func open(address string, timeout time.Duration) *client {
	link := &link{}
	// The client's own channel drops what nobody takes from it in time.
	events := make(chan zk.Event, 1_000)
	tell := func(event zk.Event) {
		if event.Type == zk.EventSession {
			events <- event
		}
	}
	conn, _, err := zk.Connect([]string{address}, timeout,
		zk.WithDialer(link.dial), zk.WithEventCallback(tell), zk.WithLogger(silence{}))
	if err != nil {
		panic(err)
	}
	c := &client{Conn: conn, link: link, events: events}
	c.until(zk.StateHasSession)
	return c
}

// states forgets what was heard of the session so far.
func (c *client) states() {
	c.seen = nil
}

func (c *client) until(state zk.State) {
	deadline := time.After(patience)
	for {
		select {
		case event := <-c.events:
			c.seen = append(c.seen, event.State.String())
			if event.State == state {
				return
			}
		case <-deadline:
			say("waited in vain for", state)
			os.Exit(1)
		}
	}
}

// look tells of a node what two servers have in common; owners that are sessions differ.
func (c *client) look(path string) string {
	data, stat, err := c.Get(path)
	if err != nil {
		return err.Error()
	}
	names, _, err := c.Children(path)
	owner := fmt.Sprintf("%#x", uint64(stat.EphemeralOwner))
	if stat.EphemeralOwner == c.SessionID() {
		owner = "me"
	}
	for i, name := range names {
		if strings.HasPrefix(name, "_c_") {
			names[i] = name[strings.LastIndex(name, "-")+1:]
		}
	}
	sort.Strings(names)
	return fmt.Sprintf("%q v%d c%d a%d owner %s length %d children %d %v %v", data, stat.Version,
		stat.Cversion, stat.Aversion, owner, stat.DataLength, stat.NumChildren, names, err)
}

// link is what a client dials through: cut, it stays away until it is mended.
type link struct {
	mutex  sync.Mutex
	socket net.Conn
	away   chan struct{}
}

func (l *link) dial(network, address string, timeout time.Duration) (net.Conn, error) {
	l.mutex.Lock()
	away := l.away
	l.mutex.Unlock()
	if away != nil {
		<-away
	}
	socket, err := net.DialTimeout(network, address, timeout)
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.socket = socket
	return socket, err
}

func (l *link) cut() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	l.away = make(chan struct{})
	l.socket.Close()
}

func (l *link) mend() {
	l.mutex.Lock()
	defer l.mutex.Unlock()
	close(l.away)
	l.away = nil
}

type silence struct{}

func (silence) Printf(string, ...interface{}) {}

func say(parts ...interface{}) {
	fmt.Println(parts...)
}

func made(path string, err error) string {
	if err != nil {
		return err.Error()
	}
	return path
}

func results(all []zk.MultiResponse, err error) string {
	said := []string{fmt.Sprint(err)}
	for _, one := range all {
		version := "-"
		if one.Stat != nil {
			version = fmt.Sprint("v", one.Stat.Version)
		}
		said = append(said, fmt.Sprintf("%q %s %v", one.String, version, one.Error))
	}
	return strings.Join(said, "; ")
}

func event(events <-chan zk.Event) string {
	select {
	case event := <-events:
		return fmt.Sprint(event.Type, " ", event.Path, " ", event.Err)
	case <-time.After(patience):
		return "no event"
	}
}

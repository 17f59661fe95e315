package command

import (
	"container/list"
	"fmt"
	"time"

	"github.com/dragoman-hub/dragoman/core/fifo"
)

// Namespace is where an id means one command: all connections of an authenticated
// principal, or one connection of an open hub, whose clients may all count from 1.
type Namespace struct {
	Principal string
	Conn      uint64
}

// sharedNamespace is the namespace of commands on an open hub that have an id and an
// idempotencyKey: such a pair means the same over every connection.
var sharedNamespace = Namespace{}

// scopedID is an id in its namespace; key is set only in the shared namespace.
type scopedID struct {
	Namespace
	id, key string
}

// scopedKey is an idempotencyKey, which belongs to a session, or to the server (section
// 8.2). The zero value is no key.
type scopedKey struct {
	scope, lane, key string
}

// commandInfo describes a command whatever its outcome.
type commandInfo struct {
	name        string // its id, or the synthetic one
	explicit    bool   // the client gave the id
	kind        string
	key         string
	session     string
	scope       string
	lane        string
	identity    []byte // the members that its lifecycle events share
	fingerprint fingerprint
	number      uint64 // of its admission
	run         int64  // of the earlier server that admitted it, or 0
}

// tracked is an admitted command that is in flight or whose outcome is remembered.
type tracked struct {
	commandInfo
	ids   []scopedID  // the first says whose the command is
	idBuf [1]scopedID // backs ids in most commands
	keyed scopedKey
	x     *Execution // nil once the command has finished

	response response
	finished time.Time
	// duplicates wait for the response, dependents depend on the command.
	duplicates, dependents []*Execution

	element *list.Element // in replayCache.order; nil unless the outcome is remembered
	size    int
}

// replayCache finds the commands that a client may name again: those in flight and the
// latest outcomes.
//
// It is not a core/dedup, which would need several names for one value, each with bounds of
// its own, a bound on the bytes of all values, and keys that age from a time in the journal.
type replayCache struct {
	maxIDs   int           // outcomes by id, per namespace
	maxBytes int           // of all outcomes
	keyTTL   time.Duration // from the end of the command

	ids  map[scopedID]*tracked
	keys map[scopedKey]*tracked
	// Outcomes, oldest first: all, those with ids of each namespace, and those with a key.
	order      list.List
	namespaces map[Namespace]*fifo.Queue[*tracked]
	keyed      fifo.Queue[*tracked]
	bytes      int
}

func newReplayCache(o Options) replayCache {
	return replayCache{
		maxIDs: o.MaxOutcomes, maxBytes: o.OutcomeBytes, keyTTL: o.KeyTTL,
		ids: map[scopedID]*tracked{}, keys: map[scopedKey]*tracked{}, namespaces: map[Namespace]*fifo.Queue[*tracked]{},
	}
}

// appendIDs appends the names of a command by its id, none if it has no id.
func appendIDs(dst []scopedID, in Namespace, id, key string) []scopedID {
	if id == "" {
		return nil
	}
	if in.Conn != 0 && key != "" {
		dst = append(dst, scopedID{sharedNamespace, id, key})
	}
	return append(dst, scopedID{in, id, ""})
}

// find returns the command that has the key or an id of k already, or the error text
// where that is a different command (sections 8.1 and 8.2).
func (c *replayCache) find(k *tracked, now time.Time) (before *tracked, conflict string) {
	c.expireKeys(now)
	what, name := "idempotencyKey", k.key
	if k.key != "" {
		before = c.keys[k.keyed]
	}
	if before == nil {
		what, name = "id", k.name
		for _, id := range k.ids {
			if before = c.ids[id]; before != nil {
				break
			}
		}
	}
	if before != nil && before.fingerprint != k.fingerprint {
		return nil, fmt.Sprintf("Conflicting %s '%s': previously used for '%s', now used for '%s'", what, name, before.kind, k.kind)
	}
	return before, ""
}

// add adds a command in flight.
func (c *replayCache) add(k *tracked) {
	for _, id := range k.ids {
		c.ids[id] = k
	}
	if k.key != "" {
		c.keys[k.keyed] = k
	}
}

// settle keeps the outcome of a command that was added, and drops the oldest outcomes
// beyond the bounds.
func (c *replayCache) settle(k *tracked, r response, now time.Time) {
	k.x, k.finished, k.response = nil, now, r
	if len(k.ids) == 0 && k.key == "" {
		k.response.data = nil
		return
	}
	k.size = OutcomeOverhead + len(k.identity) + len(r.data) + len(r.err)
	c.bytes += k.size
	k.element = c.order.PushBack(k)
	if len(k.ids) > 0 {
		in := k.ids[0].Namespace
		line := c.namespaces[in]
		if line == nil {
			line = new(fifo.Queue[*tracked])
			c.namespaces[in] = line
		}
		if line.Push(k); line.Len() > c.maxIDs {
			c.forgetOldestID(in)
		}
	}
	if k.key != "" {
		c.keyed.Push(k)
	}
	for c.bytes > c.maxBytes {
		oldest := c.order.Front().Value.(*tracked) // and so the oldest by each of its names
		if len(oldest.ids) > 0 {
			c.forgetOldestID(oldest.ids[0].Namespace)
		}
		if oldest.keyed != (scopedKey{}) {
			c.forgetOldestKey()
		}
	}
}

// OutcomeOverhead is roughly what an outcome costs without its texts.
const OutcomeOverhead = 512

// forgetOldestID forgets the ids of the oldest outcome of a namespace.
func (c *replayCache) forgetOldestID(in Namespace) {
	line := c.namespaces[in]
	k, _ := line.Pop()
	if line.Len() == 0 {
		delete(c.namespaces, in)
	}
	for _, id := range k.ids {
		if c.ids[id] == k {
			delete(c.ids, id)
		}
	}
	k.ids = nil
	c.dropIfNameless(k)
}

// forgetOldestKey forgets the key of the oldest outcome that has one.
func (c *replayCache) forgetOldestKey() {
	k, _ := c.keyed.Pop()
	if c.keys[k.keyed] == k {
		delete(c.keys, k.keyed)
	}
	k.keyed = scopedKey{}
	c.dropIfNameless(k)
}

func (c *replayCache) dropIfNameless(k *tracked) {
	if len(k.ids) > 0 || k.keyed != (scopedKey{}) {
		return
	}
	c.order.Remove(k.element)
	k.element, k.response.data = nil, nil
	c.bytes -= k.size
}

// expireKeys forgets the keys that have reached their age.
func (c *replayCache) expireKeys(now time.Time) {
	for c.keyed.Len() > 0 && now.Sub(c.keyed.First().finished) >= c.keyTTL {
		c.forgetOldestKey()
	}
}

// forgetNamespace forgets the ids of a connection that has ended, once it has no command
// in flight: nobody can name them again, and nothing depends on them.
func (c *replayCache) forgetNamespace(in Namespace) {
	for c.namespaces[in] != nil {
		c.forgetOldestID(in)
	}
}

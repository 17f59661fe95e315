package pi

import (
	"cmp"
	"encoding/binary"
	"encoding/hex"
	"hash/maphash"
	"math/rand/v2"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
)

// tree is the conversation of a session: entries that each follow another, and the
// leaf, where the conversation stands. The path from the root to the leaf is what the
// agent is to know; what was left for another branch stays. It is only ever added to.
// Server.mu guards the tree of a session.
type tree struct {
	header sessionfile.Header
	nodes  []*node          // as they were added
	room   []node           // for those to come
	places map[uint64]int32 // among the nodes, by the sum of the id: see find
	leaf   *node            // nil before the first entry
	// context are the messages on the path, with the latest compaction applied. It is
	// replaced, never changed.
	context []message
	weight  weight            // of the context
	name    string            // of the session
	level   string            // of thinking, on the path; "" when nothing says
	labels  map[string]string // by entry
}

// node is one entry of a tree.
type node struct {
	sessionfile.Entry
	parent *node
	// said is what the entry adds to the context; its role is "" of an entry that adds
	// nothing.
	said message
}

// newTree begins a conversation in the directory cwd.
func newTree(id, session, cwd, parentSession string) *tree {
	return &tree{
		header: sessionfile.Header{
			Version: sessionfile.Version, ID: id, Timestamp: time.Now().UTC().Format(sessionfile.Time), Cwd: cwd,
			ParentSession: parentSession, SessionID: session,
		},
		places: map[uint64]int32{}, labels: map[string]string{},
	}
}

// growTree returns the conversation that a file holds.
func growTree(f sessionfile.File) *tree { return growTreeOf(f, messageOfEntry) }

// growTreeOf is growTree with what an entry says as said reads it.
func growTreeOf(f sessionfile.File, said func(sessionfile.Entry) message) *tree {
	t := newTree(f.Header.ID, "", "", "")
	t.header = f.Header
	for _, e := range f.Entries {
		t.add(e, said(e))
	}
	t.rebuild()
	return t
}

// add adds an entry behind its parent, which may be any of before, and moves the leaf
// to it. The context is left to the caller.
func (t *tree) add(e sessionfile.Entry, said message) *node {
	return t.append(node{Entry: e, parent: t.find(e.ParentID), said: said})
}

// mostRoom is for how many nodes a tree makes room at once: a long conversation is a
// few large objects, and not as many as it has entries.
const mostRoom = 32

func (t *tree) append(made node) *node {
	if len(t.room) == cap(t.room) {
		t.room = make([]node, 0, min(mostRoom, len(t.nodes)+2))
	}
	t.room = append(t.room, made)
	n, e := &t.room[len(t.room)-1], made.Entry
	t.places[idSum(e.ID)] = int32(len(t.nodes)) //nolint:gosec // no memory holds as many
	t.nodes = append(t.nodes, n)
	t.leaf = n
	switch e.Type {
	case sessionfile.TypeInfo:
		var b sessionfile.Info
		if e.Body(&b) == nil {
			t.name = cmp.Or(b.Name, t.name) // pi: an empty one names nothing
		}
	case sessionfile.TypeLabel:
		var b sessionfile.Label
		if e.Body(&b) != nil {
			break
		}
		if t.labels[b.TargetID] = b.Label; b.Label == "" {
			delete(t.labels, b.TargetID)
		}
	}
	return n
}

var idSeed = maphash.MakeSeed()

func idSum(id string) uint64 { return maphash.String(idSeed, id) }

// find returns the entry of an id, or nil. Conversations stay, and collections look at
// every pointer in them: the places have none.
func (t *tree) find(id string) *node {
	at, ok := t.places[idSum(id)]
	if !ok {
		return nil
	}
	if n := t.nodes[at]; n.ID == id {
		return n
	}
	if i := slices.IndexFunc(t.nodes, func(n *node) bool { return n.ID == id }); i >= 0 { // two of one sum
		return t.nodes[i]
	}
	return nil
}

// grow adds an entry behind the leaf.
func (t *tree) grow(b sessionfile.Body) *node {
	e := t.next(b)
	n := t.add(e, messageOfEntry(e))
	switch b := b.(type) {
	case sessionfile.Compaction:
		t.rebuild()
		return n
	case sessionfile.ThinkingLevelChange:
		t.level = b.ThinkingLevel
	}
	if n.said.role != "" {
		t.take(n.said)
	}
	return n
}

// take makes a message behind the leaf a part of the context.
func (t *tree) take(m message) {
	t.context = append(t.context, m)
	if n := tokensOf(m.usage); n > 0 {
		t.weight.reported = n
	}
}

// say adds a message behind the leaf. It shares memory with its entry from there on.
func (t *tree) say(m message) *node {
	e := t.next(sessionfile.Message{Message: m.json})
	end := len(e.Line) - 1
	m.json = e.Line[end-len(m.json) : end : end]
	n := t.append(node{Entry: e, parent: t.leaf, said: m})
	t.take(m)
	return n
}

// next makes an entry that follows the leaf.
func (t *tree) next(b sessionfile.Body) sessionfile.Entry {
	parent := ""
	if t.leaf != nil {
		parent = t.leaf.ID
	}
	id := t.freshID()
	return sessionfile.New(string(id[:]), parent, time.Now(), b)
}

// freshID returns the id of an entry to come: eight hexadecimal digits.
func (t *tree) freshID() (id [8]byte) {
	for {
		var random [len(id) / 2]byte
		binary.BigEndian.PutUint32(random[:], rand.Uint32())
		hex.Encode(id[:], random[:])
		if t.find(string(id[:])) == nil {
			return id
		}
	}
}

// move lets the conversation go on behind the entry; nil is before all.
func (t *tree) move(to *node) {
	t.leaf = to
	t.rebuild()
}

// path returns the entries from the root to the leaf.
func (t *tree) path() []*node { return pathTo(t.leaf) }

func pathTo(n *node) []*node {
	var all []*node
	for ; n != nil; n = n.parent {
		all = append(all, n)
	}
	slices.Reverse(all)
	return all
}

// rebuild makes the context anew.
func (t *tree) rebuild() {
	t.context, t.weight = nil, weight{reported: reported(t.leaf)}
	_, _, t.level = t.settings()
	for _, n := range standing(t.leaf) {
		t.context = append(t.context, n.said)
	}
}

// standing returns the entries that say something on the path to a leaf, as the agent
// is to know them: the summary of the latest compaction, if there is one, stands
// before what it keeps and for what came before that.
func standing(leaf *node) []*node {
	path := pathTo(leaf)
	var all []*node
	for i, n := range slices.Backward(path) {
		var c sessionfile.Compaction
		if n.Type != sessionfile.TypeCompaction || n.Body(&c) != nil {
			continue
		}
		all = append(all, n)
		from := slices.IndexFunc(path[:i], func(n *node) bool { return n.ID == c.FirstKeptEntryID })
		if from < 0 {
			from = i
		}
		path = path[from:]
		break
	}
	for _, n := range path {
		if n.said.role != "" && n.Type != sessionfile.TypeCompaction {
			all = append(all, n)
		}
	}
	return all
}

// settings returns who answered last on the path, as a provider and an id, and the
// thinking level; "" of what nothing says.
func (t *tree) settings() (provider string, id core.AgentID, level string) {
	for n := t.leaf; n != nil && (id == "" || level == ""); n = n.parent {
		switch {
		case level == "" && n.Type == sessionfile.TypeThinking:
			var b sessionfile.ThinkingLevelChange
			if n.Body(&b) == nil {
				level = b.ThinkingLevel
			}
		case id == "" && n.Type == sessionfile.TypeModel:
			var b sessionfile.ModelChange
			if n.Body(&b) == nil {
				provider, id = b.Provider, core.AgentID(b.ModelID)
			}
		case id == "" && n.said.role == roleAssistant:
			var b struct {
				Provider string       `json:"provider"`
				Model    core.AgentID `json:"model"`
			}
			if core.DecodeJSON(n.said.json, core.JSONLimits{Bytes: len(n.said.json)}, &b) == nil {
				provider, id = b.Provider, b.Model
				if provider == api { // what the hub has said itself
					provider, id = "", ""
				}
			}
		}
	}
	return provider, id, level
}

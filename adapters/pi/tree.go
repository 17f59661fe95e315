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
	nodes  []*node // as they were added
	room   []node  // for those to come
	page   sessionfile.Page
	read   int              // how many of the nodes come from elsewhere: the first
	places map[uint64]int32 // of those, by the sum of the id: see find
	number uint32           // of the latest id that was given here
	leaf   *node            // nil before the first entry
	// context are the entries that say something on the path, with the latest compaction
	// applied. It is replaced, never changed.
	context []*node
	weight  weight            // of the context
	name    string            // of the session
	level   string            // of thinking, on the path; "" when nothing says
	labels  map[string]string // by entry
}

// node is one entry of a tree.
type node struct {
	sessionfile.Entry
	parent *node
	// role is that of what the entry adds to the context, "" of one that adds nothing.
	role   string
	calls  int
	usage  core.Usage
	tokens int64 // about, that it takes in a context
	words  int   // bytes of text that it says, at least
}

// said is what the entry adds to the context. It shares memory with the entry, where
// that is a message.
func (n *node) said() message {
	raw := n.Message()
	if n.role == "" || raw == nil {
		return messageOfEntry(n.Entry)
	}
	return message{role: n.role, json: raw, calls: n.calls, usage: n.usage, tokens: n.tokens, words: n.words}
}

// messagesIn are what entries add to the context.
func messagesIn(nodes []*node) []message {
	all := make([]message, len(nodes))
	for i, n := range nodes {
		all[i] = n.said()
	}
	return all
}

// newTree begins a conversation in the directory cwd.
func newTree(id, session, cwd, parentSession string) *tree {
	return &tree{
		header: sessionfile.Header{
			Version: sessionfile.Version, ID: id, Timestamp: time.Now().UTC().Format(sessionfile.Time), Cwd: cwd,
			ParentSession: parentSession, SessionID: session,
		},
		places: map[uint64]int32{}, number: rand.Uint32(), labels: map[string]string{},
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

// add adds an entry that was made elsewhere behind its parent, which may be any of before,
// and moves the leaf to it. It is for a tree in which none was made yet. The context is
// left to the caller.
func (t *tree) add(e sessionfile.Entry, said message) {
	parent := t.find(e.ParentID())
	t.places[idSum(e.ID())] = int32(t.read) //nolint:gosec // no memory holds as many
	t.read++
	t.append(e, parent, said)
}

// mostRoom is for how many nodes a tree makes room at once, about 4 KiB of them: a long
// conversation is a few large objects, and not as many as it has entries.
const mostRoom = 26

func (t *tree) append(e sessionfile.Entry, parent *node, said message) *node {
	if len(t.room) == cap(t.room) {
		t.room = make([]node, 0, min(mostRoom, len(t.nodes)+2))
	}
	t.room = append(t.room, node{e, parent, said.role, said.calls, said.usage, estimate(said), said.words})
	n := &t.room[len(t.room)-1]
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

// find returns the entry of an id, or nil: seldom of one that was made here, and of those
// that come from elsewhere often. Conversations stay, and collections look at every pointer
// in them: the places have none.
func (t *tree) find(id string) *node {
	among := t.nodes[t.read:]
	if at, ok := t.places[idSum(id)]; ok {
		if n := t.nodes[at]; n.ID() == id {
			return n
		}
		among = t.nodes // two of one sum
	}
	if i := slices.IndexFunc(among, func(n *node) bool { return n.ID() == id }); i >= 0 {
		return among[i]
	}
	return nil
}

// grow adds an entry behind the leaf.
func (t *tree) grow(b sessionfile.Body) *node {
	id := t.freshID()
	e := sessionfile.New(&t.page, string(id[:]), t.last(), time.Now(), b)
	n := t.append(e, t.leaf, messageOfEntry(e))
	switch b := b.(type) {
	case sessionfile.Compaction:
		t.rebuild()
		return n
	case sessionfile.ThinkingLevelChange:
		t.level = b.ThinkingLevel
	}
	if n.role != "" {
		t.take(n)
	}
	return n
}

// take makes what is said behind the leaf a part of the context.
func (t *tree) take(n *node) {
	t.context = append(t.context, n)
	t.weight.counted += n.tokens
	if tokens := tokensOf(n.usage); tokens > 0 {
		t.weight.reported = tokens
	}
}

// say adds a message behind the leaf.
func (t *tree) say(m message) *node {
	id := t.freshID()
	n := t.append(sessionfile.NewMessage(&t.page, string(id[:]), t.last(), time.Now(), m.json), t.leaf, m)
	t.take(n)
	return n
}

// last is the entry that the next one follows, or nil.
func (t *tree) last() *sessionfile.Entry {
	if t.leaf == nil {
		return nil
	}
	return &t.leaf.Entry
}

// freshID returns the id of an entry to come: eight hexadecimal digits. They count up from
// a random number, so that no entry that was made here has to be looked at, which is long
// out of the processor's caches.
func (t *tree) freshID() (id [8]byte) {
	for {
		t.number++
		var number [len(id) / 2]byte
		binary.BigEndian.PutUint32(number[:], t.number)
		hex.Encode(id[:], number[:])
		if _, taken := t.places[idSum(string(id[:]))]; !taken {
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
	t.context, t.weight = standing(t.leaf), weight{reported: reported(t.leaf)}
	for _, n := range t.context {
		t.weight.counted += n.tokens
	}
	t.level = t.thinking()
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
		from := slices.IndexFunc(path[:i], func(n *node) bool { return n.ID() == c.FirstKeptEntryID })
		if from < 0 {
			from = i
		}
		path = path[from:]
		break
	}
	for _, n := range path {
		if n.role != "" && n.Type != sessionfile.TypeCompaction {
			all = append(all, n)
		}
	}
	return all
}

// thinking returns the thinking level on the path, "" where nothing says.
func (t *tree) thinking() string {
	for n := t.leaf; n != nil; n = n.parent {
		var b sessionfile.ThinkingLevelChange
		if n.Type == sessionfile.TypeThinking && n.Body(&b) == nil && b.ThinkingLevel != "" {
			return b.ThinkingLevel
		}
	}
	return ""
}

// agent returns who answered last on the path, as a provider and an id; "" where nothing
// says. It decodes an answer.
func (t *tree) agent() (provider string, id core.AgentID) {
	for n := t.leaf; n != nil && id == ""; n = n.parent {
		switch {
		case n.Type == sessionfile.TypeModel:
			var b sessionfile.ModelChange
			if n.Body(&b) == nil {
				provider, id = b.Provider, core.AgentID(b.ModelID)
			}
		case n.role == roleAssistant:
			var b struct {
				Provider string       `json:"provider"`
				Model    core.AgentID `json:"model"`
			}
			if raw := n.Message(); core.DecodeJSON(raw, core.JSONLimits{Bytes: len(raw)}, &b) == nil {
				provider, id = b.Provider, b.Model
				if provider == api { // what the hub has said itself
					provider, id = "", ""
				}
			}
		}
	}
	return provider, id
}

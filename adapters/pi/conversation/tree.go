package conversation

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
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Tree is the conversation of a session: entries that each follow a parent, and the leaf,
// where it continues. The path from the root to the leaf is the context of the agent; other
// branches stay. Entries are only ever added. A Tree is not safe for concurrent use.
type Tree struct {
	Header sessionfile.Header
	Nodes  []*Node // in the order in which they were added
	block  []Node  // for those to come
	page   sessionfile.Page
	loaded int              // how many of the nodes, the first ones, were loaded
	index  map[uint64]int32 // places of the loaded nodes, by the hash of the id
	number uint32           // of the latest id that the tree chose
	Leaf   *Node            // nil before the first entry
	// Context are the entries with messages on the path, with the latest compaction applied.
	// It is replaced, never changed.
	Context []*Node
	// reported are the tokens of the context according to the agent's last answer, 0 if it
	// reported none; estimated are those of its messages.
	reported, estimated int64
	Name                string            // of the session
	Level               string            // of thinking, on the path; "" if not set
	labels              map[string]string // by entry
}

// Node is one entry of a tree.
type Node struct {
	sessionfile.Entry
	Parent *Node
	// Role is that of the message that the entry adds to the context, "" if it adds none.
	Role      string
	calls     int
	usage     core.Usage
	tokens    int64 // about, that it takes in a context
	textBytes int   // bytes of text that it says, at least
}

// ContextMessage returns the message that the entry adds to the context. It may share memory
// with the entry.
func (n *Node) ContextMessage() Message {
	raw := n.Message()
	if n.Role == "" || raw == nil {
		return MessageOf(n.Entry)
	}
	return Message{Role: n.Role, JSON: raw, Calls: n.calls, Usage: n.usage, Tokens: n.tokens, TextBytes: n.textBytes}
}

// Messages returns the messages that entries add to the context.
func Messages(nodes []*Node) []Message {
	all := make([]Message, len(nodes))
	for i, n := range nodes {
		all[i] = n.ContextMessage()
	}
	return all
}

// New returns an empty conversation in the directory cwd.
func New(id, session, cwd, parentSession string) *Tree {
	return &Tree{
		Header: sessionfile.Header{
			Version: sessionfile.Version, ID: id, Timestamp: time.Now().UTC().Format(sessionfile.Time), Cwd: cwd,
			ParentSession: parentSession, SessionID: session,
		},
		index: map[uint64]int32{}, number: rand.Uint32(), labels: map[string]string{},
	}
}

// FromFile returns the conversation of a file.
func FromFile(f sessionfile.File) *Tree { return FromFileWith(f, MessageOf) }

// FromFileWith is FromFile with another reader of the messages of entries.
func FromFileWith(f sessionfile.File, messageOf func(sessionfile.Entry) Message) *Tree {
	t := New(f.Header.ID, "", "", "")
	t.Header = f.Header
	for _, e := range f.Entries {
		t.load(e, messageOf(e))
	}
	t.refresh()
	return t
}

// load adds an existing entry after its parent, which may be any earlier one, and moves the
// leaf to it. The tree must not have entries of its own. The caller refreshes the context.
func (t *Tree) load(e sessionfile.Entry, m Message) {
	parent := t.Find(e.ParentID())
	t.index[hashID(e.ID())] = int32(t.loaded) //nolint:gosec // memory does not hold that many
	t.loaded++
	t.append(e, parent, m)
}

// nodesPerBlock is how many nodes a tree allocates at once, about 4 KiB of them, so that a
// long conversation is a few large objects.
const nodesPerBlock = 26

func (t *Tree) append(e sessionfile.Entry, parent *Node, m Message) *Node {
	if len(t.block) == cap(t.block) {
		t.block = make([]Node, 0, min(nodesPerBlock, len(t.Nodes)+2))
	}
	t.block = append(t.block, Node{e, parent, m.Role, m.Calls, m.Usage, estimate(m), m.TextBytes})
	n := &t.block[len(t.block)-1]
	t.Nodes = append(t.Nodes, n)
	t.Leaf = n
	switch e.Type {
	case sessionfile.TypeInfo:
		var b sessionfile.Info
		if e.Body(&b) == nil {
			t.Name = cmp.Or(b.Name, t.Name) // as in pi, an empty name changes nothing
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

func hashID(id string) uint64 { return maphash.String(idSeed, id) }

// Find returns the entry of an id, or nil. Only loaded entries have an index, since those of
// the tree itself are rarely looked up. The index has no pointers, which the garbage
// collector would follow for as long as the conversation is kept.
func (t *Tree) Find(id string) *Node {
	among := t.Nodes[t.loaded:]
	if at, ok := t.index[hashID(id)]; ok {
		if n := t.Nodes[at]; n.ID() == id {
			return n
		}
		among = t.Nodes // two ids have one hash
	}
	if i := slices.IndexFunc(among, func(n *Node) bool { return n.ID() == id }); i >= 0 {
		return among[i]
	}
	return nil
}

// AppendEntry adds an entry after the leaf.
func (t *Tree) AppendEntry(b sessionfile.Body) *Node {
	id := t.freshID()
	e := sessionfile.New(&t.page, string(id[:]), t.last(), time.Now(), b)
	n := t.append(e, t.Leaf, MessageOf(e))
	switch b := b.(type) {
	case sessionfile.Compaction:
		t.refresh()
		return n
	case sessionfile.ThinkingLevelChange:
		t.Level = b.ThinkingLevel
	}
	if n.Role != "" {
		t.extendContext(n)
	}
	return n
}

// extendContext adds a new leaf to the context.
func (t *Tree) extendContext(n *Node) {
	t.Context = append(t.Context, n)
	t.estimated += n.tokens
	if tokens := tokensOf(n.usage); tokens > 0 {
		t.reported = tokens
	}
}

// AppendMessage adds a message after the leaf.
func (t *Tree) AppendMessage(m Message) *Node {
	id := t.freshID()
	n := t.append(sessionfile.NewMessage(&t.page, string(id[:]), t.last(), time.Now(), m.JSON), t.Leaf, m)
	t.extendContext(n)
	return n
}

// last returns the entry of the leaf, or nil.
func (t *Tree) last() *sessionfile.Entry {
	if t.Leaf == nil {
		return nil
	}
	return &t.Leaf.Entry
}

// freshID returns the id of a new entry: eight hexadecimal digits. Ids count up from a random
// number, so that only loaded entries have to be checked for collisions.
func (t *Tree) freshID() (id [8]byte) {
	for {
		t.number++
		var number [len(id) / 2]byte
		binary.BigEndian.PutUint32(number[:], t.number)
		hex.Encode(id[:], number[:])
		if _, taken := t.index[hashID(string(id[:]))]; !taken {
			return id
		}
	}
}

// Move makes an entry the leaf; nil is before the first entry.
func (t *Tree) Move(to *Node) {
	t.Leaf = to
	t.refresh()
}

// Path returns the entries from the root to the leaf.
func (t *Tree) Path() []*Node { return pathTo(t.Leaf) }

func pathTo(n *Node) []*Node {
	var all []*Node
	for ; n != nil; n = n.Parent {
		all = append(all, n)
	}
	slices.Reverse(all)
	return all
}

// refresh rebuilds the context.
func (t *Tree) refresh() {
	t.Context, t.reported, t.estimated = contextOf(t.Leaf), ReportedTokens(t.Leaf), 0
	for _, n := range t.Context {
		t.estimated += n.tokens
	}
	t.Level = t.thinking()
}

// contextOf returns the entries with messages on the path to a leaf. The summary of the
// latest compaction replaces what that has removed.
func contextOf(leaf *Node) []*Node {
	path := pathTo(leaf)
	var all []*Node
	for i, n := range slices.Backward(path) {
		var c sessionfile.Compaction
		if n.Type != sessionfile.TypeCompaction || n.Body(&c) != nil {
			continue
		}
		all = append(all, n)
		from := slices.IndexFunc(path[:i], func(n *Node) bool { return n.ID() == c.FirstKeptEntryID })
		if from < 0 {
			from = i
		}
		path = path[from:]
		break
	}
	for _, n := range path {
		if n.Role != "" && n.Type != sessionfile.TypeCompaction {
			all = append(all, n)
		}
	}
	return all
}

// ThinkingOff is the thinking level that clients are shown if none was set.
const ThinkingOff = "off"

// ThinkingLevel returns the level that clients are shown.
func (t *Tree) ThinkingLevel() string { return cmp.Or(t.Level, ThinkingOff) }

// Messages returns the messages of the context.
func (t *Tree) Messages() []Message { return Messages(t.Context) }

// thinking returns the thinking level on the path, "" if not set.
func (t *Tree) thinking() string {
	for n := t.Leaf; n != nil; n = n.Parent {
		var b sessionfile.ThinkingLevelChange
		if n.Type == sessionfile.TypeThinking && n.Body(&b) == nil && b.ThinkingLevel != "" {
			return b.ThinkingLevel
		}
	}
	return ""
}

// Agent returns the provider and the id of the agent that answered last on the path; "" if
// there is none. It decodes an answer.
func (t *Tree) Agent() (provider string, id core.AgentID) {
	for n := t.Leaf; n != nil && id == ""; n = n.Parent {
		switch {
		case n.Type == sessionfile.TypeModel:
			var b sessionfile.ModelChange
			if n.Body(&b) == nil {
				provider, id = b.Provider, core.AgentID(b.ModelID)
			}
		case n.Role == RoleAssistant:
			var b struct {
				Provider string       `json:"provider"`
				Model    core.AgentID `json:"model"`
			}
			if raw := n.Message(); strictjson.Decode(raw, strictjson.Limits{Bytes: len(raw)}, &b) == nil {
				provider, id = b.Provider, b.Model
				if provider == API { // a message of the hub itself
					provider, id = "", ""
				}
			}
		}
	}
	return provider, id
}

// ReachesTokens reports whether the context takes at least limit tokens, by the report of
// the agent or else by estimate.
func (t *Tree) ReachesTokens(limit int64) bool { return cmp.Or(t.reported, t.estimated) >= limit }

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

// Tree is the conversation of a session: entries that each follow another, and the
// leaf, where the conversation stands. The path from the root to the leaf is what the
// agent is to know; what was left for another branch stays. It is only ever added to.
// Its owner guards it.
type Tree struct {
	Header sessionfile.Header
	Nodes  []*Node // as they were added
	spare  []Node  // for those to come
	page   sessionfile.Page
	loaded int              // how many of the nodes come from elsewhere: the first
	index  map[uint64]int32 // of those, by the sum of the id: see find
	number uint32           // of the latest id that was given here
	Leaf   *Node            // nil before the first entry
	// Context are the entries that say something on the path, with the latest compaction
	// applied. It is replaced, never changed.
	Context []*Node
	size    contextSize       // of the context
	Name    string            // of the session
	Level   string            // of thinking, on the path; "" when nothing says
	labels  map[string]string // by entry
}

// Node is one entry of a tree.
type Node struct {
	sessionfile.Entry
	Parent *Node
	// Role is that of what the entry adds to the context, "" of one that adds nothing.
	Role   string
	calls  int
	usage  core.Usage
	tokens int64 // about, that it takes in a context
	words  int   // bytes of text that it says, at least
}

// ContextMessage is what the entry adds to the context. It shares memory with the entry, where
// that is a message.
func (n *Node) ContextMessage() Message {
	raw := n.Message()
	if n.Role == "" || raw == nil {
		return MessageOf(n.Entry)
	}
	return Message{Role: n.Role, JSON: raw, Calls: n.calls, Usage: n.usage, Tokens: n.tokens, TextBytes: n.words}
}

// Messages are what entries add to the context.
func Messages(nodes []*Node) []Message {
	all := make([]Message, len(nodes))
	for i, n := range nodes {
		all[i] = n.ContextMessage()
	}
	return all
}

// New begins a conversation in the directory cwd.
func New(id, session, cwd, parentSession string) *Tree {
	return &Tree{
		Header: sessionfile.Header{
			Version: sessionfile.Version, ID: id, Timestamp: time.Now().UTC().Format(sessionfile.Time), Cwd: cwd,
			ParentSession: parentSession, SessionID: session,
		},
		index: map[uint64]int32{}, number: rand.Uint32(), labels: map[string]string{},
	}
}

// FromFile returns the conversation that a file holds.
func FromFile(f sessionfile.File) *Tree { return FromFileWith(f, MessageOf) }

// FromFileWith is growTree with what an entry says as said reads it.
func FromFileWith(f sessionfile.File, said func(sessionfile.Entry) Message) *Tree {
	t := New(f.Header.ID, "", "", "")
	t.Header = f.Header
	for _, e := range f.Entries {
		t.load(e, said(e))
	}
	t.refresh()
	return t
}

// load adds an entry that was made elsewhere behind its parent, which may be any of before,
// and moves the leaf to it. It is for a tree in which none was made yet. The context is
// left to the caller.
func (t *Tree) load(e sessionfile.Entry, said Message) {
	parent := t.Find(e.ParentID())
	t.index[idSum(e.ID())] = int32(t.loaded) //nolint:gosec // no memory holds as many
	t.loaded++
	t.append(e, parent, said)
}

// mostRoom is for how many nodes a tree makes room at once, about 4 KiB of them: a long
// conversation is a few large objects, and not as many as it has entries.
const mostRoom = 26

func (t *Tree) append(e sessionfile.Entry, parent *Node, said Message) *Node {
	if len(t.spare) == cap(t.spare) {
		t.spare = make([]Node, 0, min(mostRoom, len(t.Nodes)+2))
	}
	t.spare = append(t.spare, Node{e, parent, said.Role, said.Calls, said.Usage, estimate(said), said.TextBytes})
	n := &t.spare[len(t.spare)-1]
	t.Nodes = append(t.Nodes, n)
	t.Leaf = n
	switch e.Type {
	case sessionfile.TypeInfo:
		var b sessionfile.Info
		if e.Body(&b) == nil {
			t.Name = cmp.Or(b.Name, t.Name) // pi: an empty one names nothing
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

// Find returns the entry of an id, or nil: seldom of one that was made here, and of those
// that come from elsewhere often. Conversations stay, and collections look at every pointer
// in them: the places have none.
func (t *Tree) Find(id string) *Node {
	among := t.Nodes[t.loaded:]
	if at, ok := t.index[idSum(id)]; ok {
		if n := t.Nodes[at]; n.ID() == id {
			return n
		}
		among = t.Nodes // two of one sum
	}
	if i := slices.IndexFunc(among, func(n *Node) bool { return n.ID() == id }); i >= 0 {
		return among[i]
	}
	return nil
}

// AppendEntry adds an entry behind the leaf.
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
		t.take(n)
	}
	return n
}

// take makes what is said behind the leaf a part of the context.
func (t *Tree) take(n *Node) {
	t.Context = append(t.Context, n)
	t.size.counted += n.tokens
	if tokens := tokensOf(n.usage); tokens > 0 {
		t.size.reported = tokens
	}
}

// AppendMessage adds a message behind the leaf.
func (t *Tree) AppendMessage(m Message) *Node {
	id := t.freshID()
	n := t.append(sessionfile.NewMessage(&t.page, string(id[:]), t.last(), time.Now(), m.JSON), t.Leaf, m)
	t.take(n)
	return n
}

// last is the entry that the next one follows, or nil.
func (t *Tree) last() *sessionfile.Entry {
	if t.Leaf == nil {
		return nil
	}
	return &t.Leaf.Entry
}

// freshID returns the id of an entry to come: eight hexadecimal digits. They count up from
// a random number, so that no entry that was made here has to be looked at, which is long
// out of the processor's caches.
func (t *Tree) freshID() (id [8]byte) {
	for {
		t.number++
		var number [len(id) / 2]byte
		binary.BigEndian.PutUint32(number[:], t.number)
		hex.Encode(id[:], number[:])
		if _, taken := t.index[idSum(string(id[:]))]; !taken {
			return id
		}
	}
}

// Move lets the conversation go on behind the entry; nil is before all.
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
	t.Context, t.size = contextOf(t.Leaf), contextSize{reported: ReportedTokens(t.Leaf)}
	for _, n := range t.Context {
		t.size.counted += n.tokens
	}
	t.Level = t.thinking()
}

// contextOf returns the entries that say something on the path to a leaf, as the agent
// is to know them: the summary of the latest compaction, if there is one, stands
// before what it keeps and for what came before that.
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

// ThinkingOff is the thinking level that clients are shown where none was set.
const ThinkingOff = "off"

// ThinkingLevel is the level as clients are shown it.
func (t *Tree) ThinkingLevel() string { return cmp.Or(t.Level, ThinkingOff) }

// Messages are what the entries of the context say.
func (t *Tree) Messages() []Message { return Messages(t.Context) }

// thinking returns the thinking level on the path, "" where nothing says.
func (t *Tree) thinking() string {
	for n := t.Leaf; n != nil; n = n.Parent {
		var b sessionfile.ThinkingLevelChange
		if n.Type == sessionfile.TypeThinking && n.Body(&b) == nil && b.ThinkingLevel != "" {
			return b.ThinkingLevel
		}
	}
	return ""
}

// Agent returns who answered last on the path, as a provider and an id; "" where nothing
// says. It decodes an answer.
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
				if provider == API { // what the hub has said itself
					provider, id = "", ""
				}
			}
		}
	}
	return provider, id
}

// ReachesTokens reports whether the context takes so many tokens: by what the agent said, else
// by what it takes about.
func (t *Tree) ReachesTokens(limit int64) bool { return t.size.reaches(limit) }

// contextSize is what is known of how much the context of a tree takes, in tokens.
type contextSize struct {
	reported int64 // by what the agent said of its last answer; 0 where none did
	counted  int64 // about, by the messages
}

// reaches reports whether the context takes so many tokens: by what the agent said, else
// by what it takes about.
func (w contextSize) reaches(limit int64) bool {
	if w.reported > 0 {
		return w.reported >= limit
	}
	return w.counted >= limit
}

package cluster

import (
	"crypto/sha256"
	"encoding/binary"
	"encoding/json"
	"fmt"
	"strconv"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Entry is an agent as its hub tells the others. It is replaced, never changed.
type Entry struct {
	Card      core.Card
	Principal core.Principal
	// Connection is the number that its hub gave the connection of the agent. An agent that
	// joins again has another one.
	Connection uint64
	Since      time.Time
	// OnlyByID hides the agent from every address except its id.
	OnlyByID bool
	// Child is the state of an agent that the hub runs itself, else nil.
	Child *core.Child
	Load  Load
}

// Load is how much an agent has to do. When the agent was last seen is not told to others.
type Load struct {
	// Reported is the load state that the agent reported; zero if it reported none.
	Reported core.LoadState `json:"reported,omitzero"`
	Active   int            `json:"active,omitempty"`
	Queued   int            `json:"queued,omitempty"`
	// MinHops is how many hops a task has at least that the principal of the agent opens at another hub:
	// one more than what the agent works on. It is zero unless the principal is an agent.
	MinHops int `json:"min_hops,omitempty"`
	// HopsUntil is when MinHops ends; zero while the agent works.
	HopsUntil time.Time `json:"hops_until,omitzero"`
}

// agentForm is the JSON form of an Entry without its load.
type agentForm struct {
	Card       core.Card      `json:"card"`
	Principal  core.Principal `json:"principal"`
	Connection uint64         `json:"connection"`
	Since      time.Time      `json:"since"`
	OnlyByID   bool           `json:"only_by_id,omitempty"`
	Child      *core.Child    `json:"child,omitempty"`
}

// item is an agent in a message: the form of the agent and its load, or the load alone. Hubs of
// another version may have members in both that this one does not know; the digest counts them.
type item struct {
	Agent json.RawMessage `json:"agent,omitempty"`
	// ID names the agent where Agent is absent.
	ID   core.AgentID    `json:"id,omitempty"`
	Load json.RawMessage `json:"load"`
}

// shown is an agent as the other hubs know it. It is never changed.
type shown struct {
	Entry
	agentSum, loadSum digest
}

// MaxEntryBytes bounds an entry as JSON, so that each fits into a message.
const MaxEntryBytes = 512 << 10

// newShown returns the entry as it is shown, and its item.
func newShown(e Entry) (*shown, item, error) {
	agent, err := strictjson.Marshal(agentForm{e.Card, e.Principal, e.Connection, e.Since, e.OnlyByID, e.Child})
	if err != nil {
		return nil, item{}, fmt.Errorf("writing the agent %q: %w", e.Card.ID, err)
	}
	if len(agent) > MaxEntryBytes {
		return nil, item{}, core.NewFault(core.CodeTooLarge, "the agent %s has %d bytes, and in a cluster the limit is %d: shorten its card", e.Card.ID, len(agent), MaxEntryBytes)
	}
	load := strictjson.Encode(e.Load)
	return &shown{e, sumOf(agent), sumOfLoad(e.Card.ID, load)}, item{Agent: agent, Load: load}, nil
}

// withLoad returns the agent with another load, and the item of it.
func (s *shown) withLoad(l Load) (*shown, item) {
	load, with := strictjson.Encode(l), *s
	with.Load, with.loadSum = l, sumOfLoad(s.Card.ID, load)
	return &with, item{ID: s.Card.ID, Load: load}
}

// readShown reads an item with an agent.
func readShown(i item) (*shown, error) {
	var f agentForm
	if err := strictjson.Decode(i.Agent, messageLimits, &f); err != nil {
		return nil, fmt.Errorf("reading an agent: %w", err)
	}
	if err := core.CheckAgentID(f.Card.ID); err != nil {
		return nil, fmt.Errorf("reading an agent: %w", err)
	}
	l, err := readLoad(i.Load)
	if err != nil {
		return nil, err
	}
	e := Entry{f.Card, f.Principal, f.Connection, f.Since, f.OnlyByID, f.Child, l}
	return &shown{e, sumOf(i.Agent), sumOfLoad(f.Card.ID, i.Load)}, nil
}

func readLoad(raw json.RawMessage) (l Load, err error) {
	if err := strictjson.Decode(raw, messageLimits, &l); err != nil {
		return Load{}, fmt.Errorf("reading a load: %w", err)
	}
	return l, nil
}

// sum returns what the agent adds to the digest of its hub.
func (s *shown) sum() digest {
	if s == nil {
		return 0
	}
	return s.agentSum + s.loadSum
}

// digest is the sum of what was told of all agents of a hub. Hubs compare it to find out that
// they disagree without a hole in what was told.
type digest uint64

func sumOf(raw []byte) digest {
	sum := sha256.Sum256(raw)
	return digest(binary.BigEndian.Uint64(sum[:]))
}

func sumOfLoad(id core.AgentID, raw []byte) digest {
	return sumOf(append(append([]byte(id), 0), raw...))
}

// MarshalText implements encoding.TextMarshaler.
func (d digest) MarshalText() ([]byte, error) { return strconv.AppendUint(nil, uint64(d), 16), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (d *digest) UnmarshalText(text []byte) error {
	n, err := strconv.ParseUint(string(text), 16, 64)
	if err != nil {
		return fmt.Errorf("want a digest in hex, got %q", text)
	}
	*d = digest(n)
	return nil
}

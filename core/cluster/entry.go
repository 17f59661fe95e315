package cluster

import (
	"fmt"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
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

// namePrefix stands before the id of an agent in [Claims]. Those of the major version before began with "agent.".
const namePrefix = "at."

func claimName(id core.AgentID) string { return namePrefix + string(id) }

func idOf(name string) core.AgentID { return core.AgentID(strings.TrimPrefix(name, namePrefix)) }

// shown is an agent as the store has it, with its load. It is never changed.
type shown struct {
	Entry
	life journal.Life
	text string
}

// stored is the value of the name of an agent in the store: which connection of which hub has it.
type stored struct {
	form
	Hub        string         `json:"hub"`
	Epoch      uint64         `json:"epoch"`
	Connection uint64         `json:"connection"`
	Principal  core.Principal `json:"principal"`
	Card       core.Card      `json:"card"`
	Since      time.Time      `json:"since"`
	OnlyByID   bool           `json:"only_by_id,omitempty"`
	Child      *core.Child    `json:"child,omitempty"`
}

// MaxEntryBytes bounds an entry as JSON, so that each fits into a message.
const MaxEntryBytes = 512 << 10

// textOf returns what the store has of an agent of a life.
func textOf(l journal.Life, e *Entry) (string, error) {
	text, err := strictjson.Marshal(stored{
		form: of(kindAgent), Hub: l.Hub, Epoch: l.Epoch, Connection: e.Connection, Principal: e.Principal,
		Card: e.Card, Since: e.Since, OnlyByID: e.OnlyByID, Child: e.Child,
	})
	if err != nil {
		return "", fmt.Errorf("writing the agent %q: %w", e.Card.ID, err)
	}
	if len(text) > MaxEntryBytes {
		return "", core.NewFault(core.CodeTooLarge, "the agent %s has %d bytes, and in a cluster the limit is %d: shorten its card", e.Card.ID, len(text), MaxEntryBytes)
	}
	return string(text), nil
}

// readShown reads what the store has of an agent.
func readShown(text string) (*shown, error) {
	s, err := read[stored]([]byte(text), kindAgent)
	if err != nil {
		return nil, err
	}
	e := Entry{Card: s.Card, Principal: s.Principal, Connection: s.Connection, Since: s.Since, OnlyByID: s.OnlyByID, Child: s.Child}
	return &shown{Entry: e, life: journal.Life{Hub: s.Hub, Epoch: s.Epoch}, text: text}, nil
}

// withLoad returns the agent with another load.
func (s *shown) withLoad(l Load) *shown {
	with := *s
	with.Load = l
	return &with
}

package core

import (
	"cmp"
	"encoding/json"
	"math/bits"
	"slices"
	"strings"
	"time"
)

// Card is the description that an agent gives of itself.
type Card struct {
	ID      AgentID `json:"id"`
	Name    string  `json:"name"`
	Dialect string  `json:"dialect"`
	// Capabilities are matched exactly; an agent must have all that a request names.
	Capabilities []string `json:"capabilities,omitempty"`
	// Domains are dotted; they include all domains below them.
	Domains  []string `json:"domains,omitempty"`
	Model    string   `json:"model,omitempty"`
	Tools    []string `json:"tools,omitempty"`
	Channels []string `json:"channels,omitempty"`
	Features Features `json:"features"`
	// MaxConcurrent is how many tasks the agent runs at once; less than one is unset, and
	// means one unless an operator sets more.
	MaxConcurrent int `json:"max_concurrent"`
	// Fallback are the agents that get a request for this one where it cannot have it, the preferred one
	// first: see [ReachPreference].
	Fallback []AgentID `json:"fallback,omitempty"`
	// Metadata is everything else that the agent sent, verbatim.
	Metadata map[string]json.RawMessage `json:"metadata,omitempty"`
}

// Size estimates the size of the card in bytes: about that of its JSON.
func (c Card) Size() int {
	n := 0
	for _, p := range c.parts() {
		n += p.size
	}
	return n
}

// OrFallback returns the address of a request for the agent: with the agents that it falls back to, if it names
// the agent alone.
func (c Card) OrFallback(to Address) Address {
	if to.Reach() != ReachAgent || len(c.Fallback) == 0 {
		return to
	}
	return ToPreference(append([]AgentID{c.ID}, c.Fallback...)...)
}

// Check returns a too_large Fault for a card of more than so many bytes, which names the part
// to shorten, and an invalid Fault for agents that it cannot fall back to.
func (c Card) Check(limit int) error {
	size := c.Size()
	if size <= limit {
		return c.checkFallback()
	}
	parts := c.parts()
	most := slices.MaxFunc(parts, func(a, b cardPart) int { return cmp.Compare(a.size, b.size) })
	return NewFault(CodeTooLarge, "the card has %d bytes, the limit is %d (limits.card_bytes): shorten its %s, which take %d", size, limit, most.name, most.size)
}

// checkFallback returns an invalid Fault for agents that requests cannot fall back to.
func (c Card) checkFallback() error {
	if len(c.Fallback) == 0 {
		return nil
	}
	if _, err := ParseAddress(c.OrFallback(ToAgent(c.ID)).String()); err != nil {
		return NewFault(CodeInvalid, "the fallback of the card: %s", AsFault(err).Message)
	}
	return nil
}

// cardPart is a part of a card and its size in bytes.
type cardPart struct {
	name string
	size int
}

// parts returns the parts of the card.
func (c Card) parts() []cardPart {
	list := func(all []string) (n int) {
		for _, text := range all {
			n += len(text) + len(`"",`)
		}
		return n
	}
	metadata, fallback := 0, 0
	for _, id := range c.Fallback {
		fallback += len(id) + len(`"",`)
	}
	for key, value := range c.Metadata {
		metadata += len(key) + len(value) + len(`"":,`)
	}
	return []cardPart{
		{"id and names", len(c.ID) + len(c.Name) + len(c.Dialect) + len(c.Model)},
		{"capabilities", list(c.Capabilities)},
		{"domains", list(c.Domains)},
		{"tools", list(c.Tools)},
		{"channels", list(c.Channels)},
		{"fallback", fallback},
		{"metadata", metadata},
	}
}

// Answers reports whether the card matches the address, and how well: the length of the
// domain prefix that matched, so that the longest wins.
func (c Card) Answers(to Address) (score int, ok bool) {
	switch to.Reach() {
	case ReachAgent, ReachPreference:
		for id := range to.Agents() {
			if id == c.ID {
				return 0, true
			}
		}
	case ReachAny:
		return 0, true
	case ReachCapability:
		all := to.Capabilities()
		for _, want := range all {
			if !slices.Contains(c.Capabilities, want) {
				return 0, false
			}
		}
		return 0, len(all) > 0
	case ReachDomain:
		for _, d := range c.Domains {
			d = strings.TrimSuffix(d, ".*")
			if d == to.Domain() || strings.HasPrefix(to.Domain(), d+".") {
				score, ok = max(score, len(d)), true
			}
		}
		return score, ok
	}
	return 0, false
}

// Features is the set of optional features of an agent.
type Features uint16

// The features.
const (
	FeatureStreaming Features = 1 << iota
	FeatureUsage
	FeatureToolStates
	FeatureInjection
	FeatureCancellation
	FeatureApprovals
	FeatureNotices
	FeatureSessions
	FeatureFiles
	FeatureOptions
)

var featureNames = [...]string{"streaming", "usage", "tool_states", "injection", "cancellation", "approvals", "notices", "sessions", "files", "options"}

// Has reports whether all of g is in f.
func (f Features) Has(g Features) bool { return f&g == g }

// Names returns the names of the features in f, in a fixed order.
func (f Features) Names() []string {
	ns := make([]string, 0, bits.OnesCount16(uint16(f)))
	for i, n := range featureNames {
		if f&(1<<i) != 0 {
			ns = append(ns, n)
		}
	}
	return ns
}

// MarshalJSON writes the names as an array.
func (f Features) MarshalJSON() ([]byte, error) { return json.Marshal(f.Names()) }

// UnmarshalJSON reads an array of names; names it does not know are ignored.
func (f *Features) UnmarshalJSON(b []byte) error {
	var ns []string
	if err := json.Unmarshal(b, &ns); err != nil {
		return err
	}
	*f = 0
	for _, n := range ns {
		if i := slices.Index(featureNames[:], n); i >= 0 {
			*f |= 1 << i
		}
	}
	return nil
}

// LoadState says whether an agent takes work. The zero value is unset and means idle.
type LoadState uint8

// The states of an agent's load.
const (
	_              LoadState = iota
	LoadIdle                 // it has nothing to do
	LoadBusy                 // it works, and accepts more up to its limit
	LoadOverloaded           // it accepts nothing more for now
	LoadDraining             // it finishes what it has and accepts nothing more
)

var loadStates = names{"", "idle", "busy", "overloaded", "draining"}

// String returns the name of the state in JSON.
func (s LoadState) String() string { return loadStates.name(uint8(s)) }

// MarshalText implements encoding.TextMarshaler.
func (s LoadState) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *LoadState) UnmarshalText(b []byte) error { return loadStates.parse((*uint8)(s), b, "load") }

// Vitals is what an agent reports of itself in a heartbeat.
type Vitals struct {
	At time.Time `json:"at"`
	// Status and Active, a number of tasks, are as the agent reported them.
	Status string `json:"status,omitempty"`
	Active int    `json:"active"`
	// Metrics are numbers by names that the agent chose.
	Metrics map[string]float64 `json:"metrics,omitempty"`
	// Missed is how many heartbeats in a row have been missing since.
	Missed int `json:"missed,omitempty"`
}

// Load is how much an agent has to do.
type Load struct {
	State LoadState `json:"state"`
	// Active tasks are running, Queued ones wait for this agent.
	Active int `json:"active"`
	Queued int `json:"queued"`
	// LastSeen is its last sign of life; zero if this hub has none, as of an agent at another hub.
	LastSeen time.Time `json:"last_seen,omitzero"`
}

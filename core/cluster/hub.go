package cluster

import (
	"cmp"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core/journal"
)

// Hub is a hub of the cluster as this one sees it.
type Hub struct {
	Name string `json:"name"`
	// Index is unique in the cluster; it stands in the ids of the hub's tasks.
	Index int    `json:"index"`
	Epoch uint64 `json:"epoch"`
	State State  `json:"state"`
	// Agents and Tasks are how many it has.
	Agents int `json:"agents"`
	Tasks  int `json:"tasks"`
	// Since is when its life began; zero if this hub never heard it.
	Since time.Time `json:"since,omitzero"`
	// Address is where clients reach it; "" if it told none.
	Address string `json:"address,omitempty"`
	// TakenBy is the life that has taken its life over, else nil.
	TakenBy *journal.Life `json:"taken_by,omitempty"`
	// Forgotten says that it is gone for good: see [Cluster.Forget].
	Forgotten bool `json:"-"`
}

// Life returns the life of the hub.
func (h Hub) Life() journal.Life { return journal.Life{Hub: h.Name, Epoch: h.Epoch} }

// MaxIndex is the largest index of a hub.
const MaxIndex = 1023

// State says whether a hub is alive. The zero value is unset.
type State uint8

// The states of hubs.
const (
	_        State = iota
	Up             // it is heard
	Suspect        // it has not been heard lately
	Gone           // two hubs have not heard it for long, or it has left: its agents are no longer in the roster
	Draining       // it is heard, and takes no new work
	Starting       // it is heard, and takes no part yet
)

var stateNames = [...]string{"", "up", "suspect", "gone", "draining", "starting"}

// String returns the name of the state in JSON.
func (s State) String() string {
	if int(s) < len(stateNames) {
		return stateNames[s]
	}
	return fmt.Sprintf("state(%d)", uint8(s))
}

// MarshalText implements encoding.TextMarshaler.
func (s State) MarshalText() ([]byte, error) { return []byte(s.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (s *State) UnmarshalText(text []byte) error {
	i := slices.Index(stateNames[:], string(text))
	if i < 0 {
		return fmt.Errorf("unknown state of a hub %q", text)
	}
	*s = State(i)
	return nil
}

// heard reports whether the hub is heard.
func (s State) heard() bool { return s == Up || s == Draining || s == Starting }

// CheckName returns an error unless the name may be that of a hub.
func CheckName(name string) error {
	if name == "" || len(name) > 64 {
		return fmt.Errorf("the name of the hub has %d bytes: use 1 to 64", len(name))
	}
	for _, c := range name {
		if (c < 'a' || c > 'z') && (c < 'A' || c > 'Z') && (c < '0' || c > '9') && c != '-' && c != '_' {
			return fmt.Errorf("the name of the hub %q has %q: use letters, digits, - and _", name, c)
		}
	}
	return nil
}

func byName(a, b Hub) int { return cmp.Compare(a.Name, b.Name) }

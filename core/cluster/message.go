package cluster

import (
	"errors"
	"fmt"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The messages between hubs are JSON. Each has the version of this form. A minor version adds
// members, which older hubs ignore; a major one may change anything, and is refused.
const (
	major   = 1
	version = "1.0"
)

// The subjects. All hubs listen on the first; the others are requests to one hub.
const (
	subjectHubs = "hubs" // beats and deltas, in the order in which their hub sent them

	requestPing    = "ping"    // an empty request; the answer is a beat
	requestRoster  = "roster"  // a rosterAsk; the answer is a rosterPage
	requestRelease = "release" // a releaseAsk; the answer is a releaseAnswer
)

func subjectOf(hub, request string) string { return "hub." + hub + "." + request }

// messageLimits bounds a message.
var messageLimits = strictjson.Limits{Bytes: 1 << 20}

// form begins every message.
type form struct {
	Version string `json:"v"`
	Kind    string `json:"kind"`
}

// The kinds of messages.
const (
	kindBeat          = "beat"
	kindDelta         = "delta"
	kindRosterAsk     = "roster_ask"
	kindRosterPage    = "roster_page"
	kindReleaseAsk    = "release_ask"
	kindReleaseAnswer = "release_answer"
	kindClaim         = "claim"
)

// beat is a heartbeat: what a hub says of itself, and of the others.
type beat struct {
	form
	Hub   string `json:"hub"`
	Epoch uint64 `json:"epoch"`
	Index int    `json:"index"`
	// Seq rises with each beat of a life: its age in microseconds.
	Seq      uint64    `json:"seq"`
	Address  string    `json:"address,omitempty"`
	Since    time.Time `json:"since"`
	Draining bool      `json:"draining,omitempty"`
	// Starting says that it takes no part yet: see [Cluster.Announce].
	Starting bool `json:"starting,omitempty"`
	// Leaving says that the life is over after this beat.
	Leaving bool `json:"leaving,omitempty"`
	// Formed says that the cluster had enough hubs once.
	Formed bool `json:"formed,omitempty"`
	Agents int  `json:"agents"`
	Tasks  int  `json:"tasks"`
	// At and Digest are the version and the digest of its part of the roster.
	At     uint64     `json:"at"`
	Digest digest     `json:"digest"`
	Known  []knownHub `json:"known,omitempty"`
}

// knownHub is what a hub says of another.
type knownHub struct {
	Hub   string `json:"hub"`
	Epoch uint64 `json:"epoch"`
	Index int    `json:"index"`
	// Heard says that it hears that life.
	Heard bool `json:"heard,omitempty"`
	// Silent says that it has not heard that life for so long, or so surely, that it may be gone.
	Silent bool `json:"silent,omitempty"`
	// Seq is the latest beat of that life that it has heard.
	Seq uint64 `json:"seq,omitempty"`
	// By is who has taken that life over.
	By *journal.Life `json:"by,omitempty"`
	// Forgotten says that the hub does not count any more.
	Forgotten bool `json:"forgotten,omitempty"`
}

// delta is a change of a hub's part of the roster: agents that left, then agents that joined or
// changed, then loads.
type delta struct {
	form
	Hub   string `json:"hub"`
	Epoch uint64 `json:"epoch"`
	// At is the version that it leads to, from the one before.
	At     uint64         `json:"at"`
	Gone   []core.AgentID `json:"gone,omitempty"`
	Agents []item         `json:"agents,omitempty"`
	Loads  []item         `json:"loads,omitempty"`
}

// rosterAsk asks for a page of a hub's part of the roster.
type rosterAsk struct {
	form
	Epoch uint64 `json:"epoch"`
	// At is the version of which more pages are wanted; After is the last agent of the one
	// before. The first page is of the latest version.
	At    uint64       `json:"at,omitempty"`
	After core.AgentID `json:"after,omitempty"`
}

// rosterPage is some agents of a hub, ordered by id. All pages are of one version.
type rosterPage struct {
	form
	Epoch  uint64 `json:"epoch"`
	At     uint64 `json:"at"`
	Digest digest `json:"digest"` // of all agents of that version
	Agents []item `json:"agents,omitempty"`
	// Next is the last agent of the page, if there are more.
	Next core.AgentID `json:"next,omitempty"`
	// Again says that the version is no longer there: begin again.
	Again bool `json:"again,omitempty"`
}

// releaseAsk asks a hub to give an agent up, which has come to another hub.
type releaseAsk struct {
	form
	Epoch      uint64       `json:"epoch"`
	Agent      core.AgentID `json:"agent"`
	Connection uint64       `json:"connection"`
	// For is the principal that wants the id.
	For core.Principal `json:"for"`
	// Taken says that the claim is no longer that hub's.
	Taken bool `json:"taken,omitempty"`
}

// releaseAnswer says whether the agent has left.
type releaseAnswer struct {
	form
	Left bool `json:"left,omitempty"`
}

// claim is the value of the claim of an agent's id: whose it is.
type claim struct {
	form
	holder
	// Former are those that it was taken from, who may have the agent still.
	Former []holder `json:"former,omitempty"`
}

// holder is a connection of an agent to a hub.
type holder struct {
	Hub        string         `json:"hub"`
	Epoch      uint64         `json:"epoch"`
	Connection uint64         `json:"connection"`
	Principal  core.Principal `json:"principal"`
}

func (h holder) life() journal.Life { return journal.Life{Hub: h.Hub, Epoch: h.Epoch} }

func of(kind string) form { return form{version, kind} }

// errMajor reports a message of a later major version.
var errMajor = errors.New("the other hub is of a version that this one cannot work with: upgrade this one")

// kindOf returns the kind of a message that this version can read.
func kindOf(data []byte) (string, strictjson.Value, error) {
	v, err := strictjson.Parse(data, messageLimits)
	if err != nil {
		return "", v, fmt.Errorf("reading a message: %w", err)
	}
	var f form
	if err := v.Decode(&f); err != nil {
		return "", v, fmt.Errorf("reading a message: %w", err)
	}
	first, _, _ := strings.Cut(f.Version, ".")
	switch n, err := strconv.Atoi(first); {
	case err != nil || n < 1:
		return "", v, fmt.Errorf("reading a message: it has the version %q", f.Version)
	case n > major:
		return "", v, fmt.Errorf("reading a message of version %s: %w", f.Version, errMajor)
	}
	return f.Kind, v, nil
}

// read reads a message of one kind.
func read[M any](data []byte, kind string) (m M, err error) {
	got, v, err := kindOf(data)
	if err != nil {
		return m, err
	}
	if got != kind {
		return m, fmt.Errorf("reading a message: want a %s, got %q", kind, got)
	}
	return m, decodeMessage(v, &m)
}

// decodeMessage decodes a message of a known kind, and checks what the schema cannot say.
func decodeMessage(v strictjson.Value, into any) error {
	if err := v.Decode(into); err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	var err error
	switch m := into.(type) {
	case *beat:
		err = m.check()
	case *delta:
		err = checkLife(m.Hub, m.Epoch)
	case *claim:
		err = m.check()
	}
	if err != nil {
		return fmt.Errorf("reading a message: %w", err)
	}
	return nil
}

func (b *beat) check() error {
	if err := checkHub(b.Hub, b.Epoch, b.Index); err != nil {
		return err
	}
	for _, k := range b.Known {
		if err := checkHub(k.Hub, k.Epoch, k.Index); err != nil {
			return err
		}
		if k.By != nil {
			if err := checkLife(k.By.Hub, k.By.Epoch); err != nil {
				return err
			}
		}
	}
	return nil
}

func (c *claim) check() error {
	for _, h := range append(c.Former, c.holder) {
		if err := checkLife(h.Hub, h.Epoch); err != nil {
			return err
		}
	}
	return nil
}

func checkHub(name string, epoch uint64, index int) error {
	if index < 0 || index > MaxIndex {
		return fmt.Errorf("the hub %q has the index %d: want 0 to %d", name, index, MaxIndex)
	}
	return checkLife(name, epoch)
}

func checkLife(hub string, epoch uint64) error {
	if epoch == 0 {
		return fmt.Errorf("the life of hub %q has no epoch", hub)
	}
	return CheckName(hub)
}

// encode returns the message as JSON.
func encode(m any) []byte { return strictjson.Encode(m) }

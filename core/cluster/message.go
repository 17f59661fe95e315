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
	major   = 2 // before, the roster was told, and a name in the store was a claim alone
	version = "2.0"
)

// The subjects. All hubs listen on the first; the others are requests to one hub.
const (
	subjectHubs = "hubs" // beats and loads, in the order in which their hub sent them

	requestPing    = "ping"    // an empty request; the answer is a beat
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
	kindLoads         = "loads"
	kindReleaseAsk    = "release_ask"
	kindReleaseAnswer = "release_answer"
	kindAgent         = "agent" // in the store
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
	Formed bool       `json:"formed,omitempty"`
	Agents int        `json:"agents"`
	Tasks  int        `json:"tasks"`
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

// loads are loads of the agents of a hub. One that is lost is mended by the next pages of them.
type loads struct {
	form
	Hub   string `json:"hub"`
	Epoch uint64 `json:"epoch"`
	// Seq rises with each message of a life.
	Seq   uint64                `json:"seq"`
	Loads map[core.AgentID]Load `json:"loads,omitempty"`
	// Whole makes it a page: the agents behind After, up to To or the last one, that it does not name are
	// idle.
	Whole bool         `json:"whole,omitempty"`
	After core.AgentID `json:"after,omitempty"`
	To    core.AgentID `json:"to,omitempty"`
}

// releaseAsk asks a hub to give an agent up, which has come to another hub.
type releaseAsk struct {
	form
	Epoch      uint64       `json:"epoch"`
	Agent      core.AgentID `json:"agent"`
	Connection uint64       `json:"connection"`
	// For is the principal that wants the id.
	For core.Principal `json:"for"`
	// Must says that both connections are of one principal: the hub has to give the agent up.
	Must bool `json:"must,omitempty"`
}

// releaseAnswer says whether the agent has left.
type releaseAnswer struct {
	form
	Left bool `json:"left,omitempty"`
}

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
	case *loads:
		err = checkLife(m.Hub, m.Epoch)
	case *stored:
		err = checkLife(m.Hub, m.Epoch)
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

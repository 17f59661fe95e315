package coretest

import (
	"context"
	"encoding/json"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster/remote"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/roster"
	"github.com/dragoman-hub/dragoman/core/rpc"
)

// OtherHub is the other hub of a cluster of two, which a test plays: it owns the tasks for its agents, and
// tells the hub under test of their events. It knows nothing else.
type OtherHub struct {
	t    testing.TB
	hubs *remote.Hubs
	// opened has the tasks that came.
	opened chan hub.Opening
}

// nameOfOther is its name in the cluster.
const nameOfOther = "there"

// NewOtherHub returns options with another hub. Join makes it known.
func NewOtherHub(t testing.TB, opts hub.Options) (*OtherHub, hub.Options) {
	o := &OtherHub{t: t, opened: make(chan hub.Opening, 16)}
	o.hubs = remote.New(remote.Options{Links: o, Name: "here"})
	opts.Remote, opts.Node = o.hubs, o.hubs.RPC()
	return o, opts
}

// Join connects it with an agent.
func (o *OtherHub) Join(card core.Card) {
	o.hubs.HubUp(nameOfOther, 1)
	o.hubs.AgentUp(nameOfOther, roster.Entry{Card: card}, core.Principal{ID: string(card.ID)})
}

// Task returns the next task that comes, with the number of its latest event, which is the first.
func (o *OtherHub) Task() *OtherTask {
	o.t.Helper()
	select {
	case in := <-o.opened:
		return &OtherTask{OtherHub: o, ID: in.Opened.Body.(core.Opened).Task, epoch: 1, seq: 1}
	case <-time.After(time.Minute):
		o.t.Fatal("no task came to the other hub")
		return nil
	}
}

// OtherTask is a task that the other hub owns.
type OtherTask struct {
	*OtherHub
	ID    core.TaskID
	epoch uint32
	seq   uint64
}

// Say has events happen to the task.
func (t *OtherTask) Say(bodies ...core.Body) {
	var all []core.Event
	for _, b := range bodies {
		t.seq++
		all = append(all, core.Event{Seq: t.seq, Epoch: t.epoch, At: time.Now(), Body: b})
	}
	t.hubs.Extend(t.ID, all)
}

// TakenOver has a hub go on with the task that has taken it over: in a new epoch.
func (t *OtherTask) TakenOver() { t.epoch++ }

// Open implements [remote.Links].
func (o *OtherHub) Open(_ string, in hub.Opening) error {
	o.opened <- in
	return nil
}

// Ask implements [remote.Links]: it knows nothing.
func (o *OtherHub) Ask(context.Context, string, rpc.Request) (json.RawMessage, error) {
	return json.RawMessage("null"), nil
}

// Do implements [remote.Links].
func (o *OtherHub) Do(string, core.Call) error { return nil }

// Hand implements [remote.Links].
func (o *OtherHub) Hand(string, remote.Transfer) error { return errNowhere }

// Took implements [remote.Links].
func (o *OtherHub) Took(string, remote.Record, bool) error { return nil }

// Kept implements [remote.Links].
func (o *OtherHub) Kept(string, remote.Record) error { return nil }

// Follow implements [remote.Links].
func (o *OtherHub) Follow(string, core.TaskID, core.Cursor) error { return nil }

// Leave implements [remote.Links].
func (o *OtherHub) Leave(string, core.TaskID) error { return nil }

// Tell implements [remote.Links].
func (o *OtherHub) Tell(string, rpc.Told) error { return nil }

// Dial implements [remote.Links].
func (o *OtherHub) Dial(string, string, core.Principal) (rpc.Conn, error) { return nil, errNowhere }

var errNowhere = core.NewFault(core.CodeUnreachable, "the other hub of the test takes nothing else")

package hub

import (
	"encoding/json"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/pack"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/rpc"
	"github.com/dragoman-hub/dragoman/core/tool"
)

// A call of a tool goes from the hub of its caller, which has checked it and has the timer of the call,
// to the hub of the pack, which gives it to the pack like one of its own.

// newsOfPacks is what the registries of packs tell each other.
const newsOfPacks rpc.News[pack.Word] = "packs"

// newsOfCalls is what becomes of a call of a tool whose pack is at another hub. A hub that cannot tell it ends
// the call.
const newsOfCalls rpc.News[callWord] = "calls"

func (h *Hub) hearPacks() {
	newsOfPacks.Hear(h, func(from string, w pack.Word) {
		for p, why := range h.packs.Hear(from, w) {
			(*Session)(p.(*peer)).Close(why)
		}
	}, func(from string) { h.packs.HubUp(from) })
	newsOfCalls.Hear(h, h.hearCall, nil)
}

// callWord is news of a call, in its stable JSON form. Execution is the id of the call at the hub of its
// caller. Of the other members one is set.
type callWord struct {
	Execution string        `json:"execution"`
	Begun     *begunCall    `json:"begun,omitempty"`     // by the hub of the caller
	Withdrawn bool          `json:"withdrawn,omitempty"` // by the hub of the caller: nobody waits
	Returned  *returnedCall `json:"returned,omitempty"`  // by the hub of the pack
	Progress  *string       `json:"progress,omitempty"`  // by the hub of the pack
	Asked     *askedOfCall  `json:"asked,omitempty"`     // by the hub of the pack: a question to people
	Dropped   string        `json:"dropped,omitempty"`   // by the hub of the pack: the id of such a question
	Answered  *answerOfCall `json:"answered,omitempty"`  // by the hub of the caller: to such a question
}

type begunCall struct {
	Tool         string          `json:"tool"`
	Input        json.RawMessage `json:"input"`
	From         core.Principal  `json:"from"`
	Agent        core.AgentID    `json:"agent,omitempty"`
	Capabilities []string        `json:"capabilities,omitempty"`
	Trace        core.Trace      `json:"trace,omitzero"`
	Keep         bool            `json:"keep,omitempty"`
	Hops         int             `json:"hops,omitempty"`
}

type returnedCall struct {
	Output  json.RawMessage `json:"output,omitempty"`
	Fault   *core.Fault     `json:"fault,omitempty"`
	Foreign *core.Foreign   `json:"foreign,omitempty"`
}

type askedOfCall struct {
	ID       string            `json:"id"`
	Question question.Question `json:"question"`
}

type answerOfCall struct {
	ID      string           `json:"id"`
	Outcome question.Outcome `json:"outcome"`
	By      core.Principal   `json:"by,omitzero"`
	Fault   *core.Fault      `json:"fault,omitempty"`
}

func (h *Hub) tellPacks(hub string, w pack.Word) {
	newsOfPacks.TellEach(h, []string{hub}, w)
}

// remotePack is a pack of another hub as the registry sees it: calls of its tools go to that hub.
type remotePack struct {
	engine   *Hub
	provider pack.Provider
}

func (h *Hub) remotePack(p pack.Provider) pack.Peer { return &remotePack{h, p} }

// Provider implements [pack.Peer].
func (p *remotePack) Provider() pack.Provider { return p.provider }

func (p *remotePack) tell(w callWord) error {
	return newsOfCalls.Tell(p.engine, p.provider.Hub, w)
}

// Execute implements [pack.Peer].
func (p *remotePack) Execute(e *pack.Execution) {
	c := e.Call()
	err := p.tell(callWord{Execution: e.ID, Begun: &begunCall{
		Tool: e.Tool, Input: e.Input, From: e.From, Agent: e.Agent, Capabilities: c.Capabilities, Trace: c.Trace, Keep: c.Keep, Hops: c.Hops,
	}})
	if err != nil { // the registry must not be called from here
		time.AfterFunc(0, func() { _ = p.engine.packs.Answer(p, e.ID, tool.Result{Fault: core.AsFault(err)}) })
	}
}

// Withdraw implements [pack.Peer].
func (p *remotePack) Withdraw(execution string) {
	_ = p.tell(callWord{Execution: execution, Withdrawn: true}) // the calls of a hub that is gone end
}

// Returned implements [pack.Peer]. It calls nothing.
func (*remotePack) Returned(*tool.Result) {}

// ToolsChanged implements [pack.Peer]. It does not watch.
func (*remotePack) ToolsChanged() {}

// Late implements [pack.Peer]. It calls nothing.
func (*remotePack) Late(pack.Call) pack.Late { return nil }

// remoteCaller is another hub while it is connected, as the packs and the people of this one see it: it calls tools, and
// asks people.
type remoteCaller struct {
	engine *Hub
	name   string

	mu      sync.Mutex
	gone    *core.Fault
	asks    map[string]*askFrom // questions of its packs to people of callers of this hub
	waiting map[string]*asking  // questions of packs of this hub to people of callers of that one
}

// Provider implements [pack.Peer].
func (o *remoteCaller) Provider() pack.Provider { return pack.Provider{Hub: o.name} }

// Returned implements [pack.Peer]. Where there is no room for both, the words of the pack are left out.
func (o *remoteCaller) Returned(r *tool.Result) {
	word := callWord{Execution: r.Call, Returned: &returnedCall{r.Output, r.Fault, r.Foreign}}
	err := o.tell(word)
	if err != nil && r.Foreign != nil {
		word.Returned.Foreign = nil
		err = o.tell(word)
	}
	if err != nil {
		lost := core.NewFault(core.CodeInternal, "the tool has answered, and hub %s could not take the answer: too much was on its way there", o.name)
		o.say(callWord{Execution: r.Call, Returned: &returnedCall{Fault: lost}})
	}
}

// tell tells the hub.
func (o *remoteCaller) tell(w callWord) error { return newsOfCalls.Tell(o.engine, o.name, w) }

// say tells the hub something that is short, or may be lost.
func (o *remoteCaller) say(w callWord) { newsOfCalls.TellEach(o.engine, []string{o.name}, w) }

// Late implements [pack.Peer]: that hub knows what a late answer is good for.
func (o *remoteCaller) Late(call pack.Call) pack.Late { return lateRemotely{o, call.ID} }

// Execute implements [pack.Peer]. It is no pack.
func (*remoteCaller) Execute(*pack.Execution) {}

// Withdraw implements [pack.Peer]. It is no pack.
func (*remoteCaller) Withdraw(string) {}

// ToolsChanged implements [pack.Peer]. It does not watch.
func (*remoteCaller) ToolsChanged() {}

// lateRemotely is a call of another hub that timed out.
type lateRemotely struct {
	hub       *remoteCaller
	execution string
}

// TimedOut implements [pack.Late].
func (lateRemotely) TimedOut() {}

// Answer implements [pack.Late].
func (l lateRemotely) Answer(_ string, r *tool.Result) bool {
	r.Call = l.execution
	l.hub.Returned(r)
	return true
}

// extraTime is how much longer the hub of a pack waits for it than the hub of the caller.
const extraTime = 10 * time.Second

// hearCall takes news of a call.
func (h *Hub) hearCall(from string, w callWord) {
	h.mu.Lock()
	o := h.peers[from]
	h.mu.Unlock()
	if o == nil {
		return // the hub is gone
	}
	switch {
	case w.Begun != nil:
		b := w.Begun
		h.packs.Call(pack.Call{
			Caller: o, ID: w.Execution, Tool: b.Tool, Input: b.Input, From: b.From, Agent: b.Agent, Capabilities: b.Capabilities,
			Trace: b.Trace, Keep: b.Keep, Hops: b.Hops, Extra: extraTime,
		})
	case w.Withdrawn:
		h.packs.Expire(o, w.Execution)
	case w.Returned != nil:
		if p := h.packOf(from, w.Execution); p != nil {
			_ = h.packs.Answer(p, w.Execution, tool.Result{Output: w.Returned.Output, Fault: w.Returned.Fault, Foreign: w.Returned.Foreign}) // an error means that nobody waits: it is counted
		}
	case w.Progress != nil:
		if p := h.packOf(from, w.Execution); p != nil {
			_ = h.progressTool(p, w.Execution, *w.Progress) // nobody may wait any more
		}
	case w.Asked != nil:
		o.asked(w.Execution, *w.Asked)
	case w.Dropped != "":
		o.drop(w.Dropped)
	case w.Answered != nil:
		o.answered(*w.Answered)
	}
}

// packOf returns the pack of another hub that is to answer an execution; nil for none.
func (h *Hub) packOf(hub, execution string) *remotePack {
	p, _ := h.packs.Provider(execution).(*remotePack)
	if p == nil || p.provider.Hub != hub {
		return nil
	}
	return p
}

// packsUp makes a hub one that may call tools of this one. Callers hold mu.
func (h *Hub) packsUp(hub string) {
	if h.peers[hub] == nil {
		h.peers[hub] = &remoteCaller{engine: h, name: hub, asks: map[string]*askFrom{}, waiting: map[string]*asking{}}
	}
	h.packs.HubUp(hub)
}

// packsGone ends the calls from a hub and of its packs. Callers hold mu.
func (h *Hub) packsGone(hub string) {
	gone := core.NewFault(core.CodeUnreachable, "hub %s is gone", hub)
	h.packs.HubGone(hub, gone)
	if o := h.peers[hub]; o != nil {
		delete(h.peers, hub)
		h.packs.Leave(o, gone)
		o.end(gone)
	}
}

package wire

import (
	"encoding/json"
	"fmt"
	"maps"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Call is one command, and what the command cannot hold.
type Call struct {
	ID      string
	Trace   core.Trace
	Command core.Command
	With    With
	// Unknown are the members of a request that the hub does not know, and passes on: see
	// [Event.Unknown].
	Unknown map[string]string
}

// With is what some commands need beside themselves.
type With struct {
	// Stop ends what an earlier call of the same command began: read with Watch, follow,
	// subscribe, list of questions with Watch, watch_all with Positions.
	Stop bool `json:"stop,omitempty"`
	// Watch makes the events of a task, or the questions to people, follow.
	Watch bool `json:"watch,omitempty"`
	// Resume continues the subscriptions of an earlier connection.
	Resume bool `json:"resume,omitempty"`
	// Positions gives the events of watch_all their positions.
	Positions bool `json:"positions,omitempty"`
	// After is the cursor to read a task from, the position to follow all tasks from, or the agent
	// after which a page begins; Before the task before which one begins.
	After  string      `json:"after,omitempty"`
	Before core.TaskID `json:"before,omitempty"`
	Limit  int         `json:"limit,omitempty"`
	// State, Agent, From, Thread and Cause select tasks; Thread and Agent questions.
	State  string        `json:"state,omitempty"`
	Agent  core.AgentID  `json:"agent,omitempty"`
	From   string        `json:"from,omitempty"`
	Thread core.ThreadID `json:"thread,omitempty"`
	Cause  core.TaskID   `json:"cause,omitempty"`
	// By is how usage is added up.
	By string `json:"by,omitempty"`
	// Hub is the hub whose audit is listed; "" is this one.
	Hub string `json:"hub,omitempty"`
	// Tools are the definitions of the tools of a pack.
	Tools []Tool `json:"tools,omitempty"`
}

// Tool describes a tool of the hub or of a pack.
type Tool struct {
	Name        string `json:"name"`
	Description string `json:"description,omitempty"`
	// Pack is the pack of the tool, in what the hub tells; "" for the hub's own.
	Pack        string          `json:"pack,omitempty"`
	InputSchema json.RawMessage `json:"input_schema,omitempty"`
	TimeoutMS   int64           `json:"timeout_ms,omitempty"`
	Requires    []string        `json:"requires,omitempty"`
}

// Timeout is the longest time that a call may take.
func (t Tool) Timeout() time.Duration {
	const most = int64(24 * time.Hour / time.Millisecond)
	return time.Duration(min(t.TimeoutMS, most)) * time.Millisecond
}

// commands reads the command of each act.
var commands = map[string]func(strictjson.Value) (core.Command, error){
	core.ActOpen.String():      readOpen,
	core.ActCancel.String():    checked(func(c core.Cancel) string { return without(c.Task, "task") }),
	core.ActInject.String():    checked(func(c core.Inject) string { return without(c.Task, "task") }),
	core.ActDecide.String():    checked(func(c core.Decide) string { return without(c.Task, "task") }),
	core.ActAnswer.String():    checked(func(c core.Reply) string { return without(c.Question, "question") }),
	core.ActRead.String():      checked(func(c core.Read) string { return without(c.Task, "task") }),
	core.ActReaders.String():   checked(func(c core.Readers) string { return without(c.Task, "task") }),
	core.ActWatchAll.String():  checked(func(core.WatchAll) string { return "" }),
	core.ActFollow.String():    checked(func(c core.Follow) string { return without(c.Thread, "thread") }),
	core.ActSubscribe.String(): checked(func(core.Subscribe) string { return "" }),
	core.ActList.String():      checked(func(c core.List) string { return without(c.Object(), "what") }),
	core.ActCallTool.String():  checked(func(c core.CallTool) string { return without(c.Tool, "tool") }),
	core.ActProvide.String():   checked(func(c core.Provide) string { return without(c.Pack, "pack") }),
	core.ActJoin.String():      checked(func(core.Join) string { return "" }),
	core.ActRestart.String():   checked(func(c core.Restart) string { return without(c.Name, "name") }),
	core.ActAdmit.String():     checked(func(c core.Admit) string { return without(c.Principal, "principal") }),
	core.ActDrain.String():     checked(func(core.Drain) string { return "" }),
	core.ActForget.String():    checked(func(c core.Forget) string { return without(c.Hub, "hub") }),
	core.ActConfigure.String(): checked(func(c core.Configure) string { return without(c.Agent, "agent") }),
}

// without names a member that is empty.
func without[S ~string](value S, member string) string {
	if value == "" {
		return member
	}
	return ""
}

// checked reads a command for which lacks names no missing member.
func checked[C core.Command](lacks func(C) string) func(strictjson.Value) (core.Command, error) {
	return func(v strictjson.Value) (core.Command, error) {
		var c C
		if err := v.DecodeKnown(&c); err != nil {
			return nil, err
		}
		if member := lacks(c); member != "" {
			return nil, missing(member)
		}
		return c, nil
	}
}

// readOpen reads a request, which travels: what the hub does not know of it is kept.
func readOpen(v strictjson.Value) (core.Command, error) {
	var known struct {
		core.Open
		Request strictjson.Value `json:"request"`
	}
	if err := v.DecodeKnown(&known); err != nil {
		return nil, err
	}
	o := new(core.Open)
	if err := v.Decode(o); err != nil {
		return nil, err
	}
	if o.Request == nil {
		return nil, missing("request")
	}
	o.Request.Foreign = keep(o.Request.Foreign, unknown(known.Request, requestMembers), "", nil)
	return o, nil
}

// readCall reads a call. with is the member beside it.
func readCall(v, with strictjson.Value) (Frame, error) {
	var j struct {
		ID      string           `json:"id"`
		Trace   core.Trace       `json:"trace"`
		Act     string           `json:"act"`
		Command strictjson.Value `json:"command"`
		// Principal is in the hub's own form of a call. The connection says who gives it.
		Principal strictjson.Value `json:"principal"`
	}
	if err := v.DecodeKnown(&j); err != nil {
		return nil, err
	}
	if err := checkID(j.ID); err != nil {
		return nil, err
	}
	of := commands[j.Act]
	if of == nil {
		return nil, core.NewFault(core.CodeUnknownKind, "unknown act %s%s", Excerpt(j.Act), didYouMean(j.Act, slices.Sorted(maps.Keys(commands))))
	}
	c := Call{ID: j.ID, Trace: j.Trace}
	if err := with.DecodeKnown(&c.With); err != nil {
		return nil, core.NewFault(core.CodeInvalid, "with: %s", err)
	}
	if !j.Command.Absent() && j.Command.Kind() != strictjson.Object {
		return nil, core.NewFault(core.CodeInvalid, "command: want an object, got %s", j.Command.Kind())
	}
	command, err := of(j.Command)
	if err != nil {
		return nil, core.NewFault(core.CodeInvalid, "command: %s", messageOf(err))
	}
	c.Command = command
	if o, is := command.(*core.Open); is && o.Request.Foreign != nil {
		c.Unknown = nearest(nil, unknown(j.Command.Get("request"), requestMembers), requestMembers)
	}
	return c, nil
}

// Excerpt returns the beginning of a text, quoted, for errors and logs.
func Excerpt[T ~string | ~[]byte](text T) string {
	const most = 64
	if len(text) > most {
		return fmt.Sprintf("%.64q...", text)
	}
	return fmt.Sprintf("%q", text)
}

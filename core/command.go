package core

import (
	"encoding/json"
	"time"
)

// Command is a request to the hub. The set is closed: only the types of this package
// implement it. Dialects act only by commands, so that rights, limits, the audit and traces
// have one place.
type Command interface {
	// Act returns the kind of the command.
	Act() Act
	// Object returns the id or name of what the command acts on, such as a task; "" for none.
	Object() string
}

// Act names a kind of [Command]. The zero Act is unset.
type Act uint8

// The acts.
const (
	_ Act = iota
	ActOpen
	ActCancel
	ActInject
	ActDecide
	ActAnswer
	ActRead
	ActReaders
	ActWatchAll
	ActFollow
	ActSubscribe
	ActList
	ActCallTool
	ActProvide
	ActJoin
	ActConfigure
	ActRestart
	ActAdmit
	ActDrain
	ActForget
	actEnd
)

// actInfo describes an act.
type actInfo struct {
	name    string
	right   Right
	audited bool
	limited bool // by the rate of its caller
	steers  Kind // the event of a task that runs; 0 for a command on anything else
	read    func([]byte) (Command, error)
}

// acts describes every act.
var acts = [actEnd]actInfo{
	ActOpen:      {"open", RightAsk, true, true, 0, readOpen},
	ActCancel:    {"cancel", RightSteer, true, false, KindCancelRequested, readCommand[Cancel]},
	ActInject:    {"inject", RightSteer, true, true, KindInjected, readCommand[Inject]},
	ActDecide:    {"decide", RightApprove, true, false, KindApprovalDecided, readCommand[Decide]},
	ActAnswer:    {"answer", RightAnswer, true, false, 0, readCommand[Reply]},
	ActRead:      {"read", RightRead, false, true, 0, readCommand[Read]},
	ActReaders:   {"readers", RightRead, false, true, 0, readCommand[Readers]},
	ActWatchAll:  {"watch_all", RightOperate, true, true, 0, readCommand[WatchAll]},
	ActFollow:    {"follow", RightRead, false, true, 0, readCommand[Follow]},
	ActSubscribe: {"subscribe", RightRead, false, true, 0, readCommand[Subscribe]},
	ActList:      {"list", RightSee, false, false, 0, readCommand[List]},
	ActCallTool:  {"call_tool", RightAsk, true, true, 0, readCommand[CallTool]},
	ActProvide:   {"provide", RightProvide, true, true, 0, readCommand[Provide]},
	ActJoin:      {"join", 0, true, true, 0, readCommand[Join]},
	ActConfigure: {"configure", RightOperate, true, true, 0, readCommand[Configure]},
	ActRestart:   {"restart", RightOperate, true, true, 0, readCommand[Restart]},
	ActAdmit:     {"admit", RightOperate, true, true, 0, readCommand[Admit]},
	ActDrain:     {"drain", RightOperate, true, true, 0, readCommand[Drain]},
	ActForget:    {"forget", RightOperate, true, true, 0, readCommand[Forget]},
}

// Acts returns every act, in order.
func Acts() []Act {
	all := make([]Act, 0, actEnd-1)
	for a := ActOpen; a < actEnd; a++ {
		all = append(all, a)
	}
	return all
}

func (a Act) info() actInfo { return acts[min(a, actEnd-1)] }

// String returns the name of the act in JSON, in the audit and in the documentation.
func (a Act) String() string {
	if a == 0 || a >= actEnd {
		return "unset"
	}
	return acts[a].name
}

// IsAudited reports whether commands of the act are audited.
func (a Act) IsAudited() bool { return a < actEnd && acts[a].audited }

// IsLimited reports whether the rate of the caller bounds commands of the act. It never bounds those that end, or
// let go on, what runs, nor lists, which could not say that they are incomplete.
func (a Act) IsLimited() bool { return a < actEnd && acts[a].limited }

// Steers returns the kind of the event that a command of the act appends to its task, which has to run; 0 for an act
// on anything else.
func (a Act) Steers() Kind { return a.info().steers }

// Right returns the right that most commands of the act need: see [RightOf].
func (a Act) Right() Right { return a.info().right }

// Right is a right that a command needs. Commands with the zero Right need none.
type Right uint8

// The rights.
const (
	_            Right = iota
	RightSee           // find and list agents
	RightAsk           // open tasks and call tools
	RightRead          // read tasks
	RightSteer         // cancel tasks and push context into them
	RightApprove       // decide on tool calls
	RightAnswer        // answer questions
	RightProvide       // offer tools
	RightOperate       // settings, usage, the audit, and all tasks
)

var rights = names{"", "see", "ask", "read", "steer", "approve", "answer", "provide", "operate"}

// String returns the name of the right in settings.
func (r Right) String() string { return rights.name(uint8(r)) }

// RightOf returns the right that a command needs.
func RightOf(c Command) Right {
	switch c := c.(type) {
	case List:
		return c.What.right()
	case *Open:
		if c.For.ID != "" {
			return RightOperate
		}
	}
	return c.Act().info().right
}

// Call is one command with its caller.
type Call struct {
	// ID identifies the call in the audit and in traces; "" if there are none.
	ID        string
	Principal Principal
	Trace     Trace
	Command   Command
}

// Open opens a task. Only its pointer is a Command, because it is allocated together with
// its request.
type Open struct {
	Request *Request `json:"request"`
	// For is the requester if the caller acts for another; zero means the caller.
	For Principal `json:"for,omitzero"`
	// Keep lets the task continue when the caller leaves. Unwatched sends the caller no
	// events. Private delivers a notice only to its addressee.
	Keep      bool `json:"keep,omitempty"`
	Unwatched bool `json:"unwatched,omitempty"`
	Private   bool `json:"private,omitempty"`
	// MinHops and Above are what another hub says of the tasks above this one. Callers that
	// speak in JSON have no say in them.
	MinHops int      `json:"-"`
	Above   []TaskID `json:"-"`
	// Key is that of [Opened].
	Key string `json:"-"`
	// DefaultDeadline says that the deadline of the request is that of a setting, as one that it does
	// not have.
	DefaultDeadline bool `json:"-"`
	// Attends says that the caller reads the list of questions of the task's thread, before an agent
	// can ask any.
	Attends bool `json:"-"`
	// AsksAgain says that the caller asks again where no agent is here for the address: then there is no task.
	AsksAgain bool `json:"-"`
	// Tool is the tool of the hub that opens it, and ToolCall the id of the call; "" for none.
	Tool     string `json:"-"`
	ToolCall string `json:"-"`
}

// Cancel cancels a task.
type Cancel struct {
	Task   TaskID `json:"task"`
	Reason string `json:"reason,omitempty"`
}

// Inject pushes context to the agent of a task.
type Inject struct {
	Task    TaskID   `json:"task"`
	Context Injected `json:"context"`
}

// Decide approves or denies a tool call.
type Decide struct {
	Task     TaskID          `json:"task"`
	Decision ApprovalDecided `json:"decision"`
}

// Reply answers a question of an agent to people: with labels of its options, a text or
// both, with the content of its form, or by dismissing it.
type Reply struct {
	Question  string   `json:"question"`
	Selected  []string `json:"selected,omitempty"`
	Text      string   `json:"text,omitempty"`
	Dismissed bool     `json:"dismissed,omitempty"`
	// Content is the object that the question's form asks for; nil for none.
	Content json.RawMessage `json:"content,omitempty"`
}

// Read reads a task.
type Read struct {
	Task TaskID `json:"task"`
}

// Readers lists the readers of a task.
type Readers struct {
	Task TaskID `json:"task"`
}

// WatchAll reads the events of all tasks.
type WatchAll struct{}

// Follow reads the tasks that are opened in a thread, if the caller may read them.
type Follow struct {
	Thread ThreadID `json:"thread"`
}

// Subscribe subscribes the caller to the notices of topics.
type Subscribe struct {
	Topics []string `json:"topics"`
}

// List returns one of the lists of the hub.
type List struct {
	What Listed `json:"what"`
}

// CallTool calls a tool of the hub or of a pack.
type CallTool struct {
	Tool  string          `json:"tool"`
	Input json.RawMessage `json:"input,omitempty"`
}

// Provide offers the tools of a pack.
type Provide struct {
	Pack  string   `json:"pack"`
	Tools []string `json:"tools"`
}

// Join makes the caller an agent.
type Join struct {
	Card Card `json:"card"`
}

// Configure changes the settings of an agent. A nil field stays as it is; 0 restores the
// default of the agent or its dialect.
type Configure struct {
	Agent         AgentID        `json:"agent"`
	MaxConcurrent *int           `json:"max_concurrent,omitempty"`
	Heartbeat     *time.Duration `json:"heartbeat_ns,omitempty"`
	Reason        string         `json:"reason,omitempty"`
}

// Restart starts an agent or a pack of the hub's settings again.
type Restart struct {
	Name string `json:"name"`
}

// Admit decides on a principal that registered itself: it may connect, or is revoked, which ends
// its sessions.
type Admit struct {
	Principal string `json:"principal"`
	Approved  bool   `json:"approved"`
}

// Drain makes the hub take nothing new, and ends its sessions once it is empty. Only its restart
// undoes it.
type Drain struct{}

// Forget says that a hub of the cluster is gone for good: it no longer counts for the majority.
type Forget struct {
	Hub string `json:"hub"`
}

// Listed names a list of the hub. The zero Listed is unset.
type Listed uint8

// The lists.
const (
	_ Listed = iota
	ListAgents
	ListTasks
	ListApprovals
	ListQuestions
	ListUsage
	ListPacks
	ListAudit
	ListPrincipals
)

var lists = names{"", "agents", "tasks", "approvals", "questions", "usage", "packs", "audit", "principals"}

// String returns the name of the list.
func (l Listed) String() string { return lists.name(uint8(l)) }

// MarshalText implements encoding.TextMarshaler.
func (l Listed) MarshalText() ([]byte, error) { return []byte(l.String()), nil }

// UnmarshalText implements encoding.TextUnmarshaler.
func (l *Listed) UnmarshalText(b []byte) error { return lists.parse((*uint8)(l), b, "list") }

// right returns the right that the list needs. Of tasks, approvals and questions, it
// contains those that the caller may read.
func (l Listed) right() Right {
	if l == ListUsage || l == ListAudit || l == ListPrincipals {
		return RightOperate
	}
	return RightSee
}

// Act implements [Command].
func (*Open) Act() Act { return ActOpen }

// Act implements [Command].
func (Cancel) Act() Act { return ActCancel }

// Act implements [Command].
func (Inject) Act() Act { return ActInject }

// Act implements [Command].
func (Decide) Act() Act { return ActDecide }

// Act implements [Command].
func (Reply) Act() Act { return ActAnswer }

// Act implements [Command].
func (Read) Act() Act { return ActRead }

// Act implements [Command].
func (Readers) Act() Act { return ActReaders }

// Act implements [Command].
func (WatchAll) Act() Act { return ActWatchAll }

// Act implements [Command].
func (Follow) Act() Act { return ActFollow }

// Act implements [Command].
func (Subscribe) Act() Act { return ActSubscribe }

// Act implements [Command].
func (List) Act() Act { return ActList }

// Act implements [Command].
func (CallTool) Act() Act { return ActCallTool }

// Act implements [Command].
func (Provide) Act() Act { return ActProvide }

// Act implements [Command].
func (Join) Act() Act { return ActJoin }

// Act implements [Command].
func (Configure) Act() Act { return ActConfigure }

// Act implements [Command].
func (Restart) Act() Act { return ActRestart }

// Act implements [Command].
func (Admit) Act() Act { return ActAdmit }

// Act implements [Command].
func (Drain) Act() Act { return ActDrain }

// Act implements [Command].
func (Forget) Act() Act { return ActForget }

// Object implements [Command].
func (c *Open) Object() string { return c.Request.To.String() }

// Object implements [Command].
func (c Cancel) Object() string { return string(c.Task) }

// Object implements [Command].
func (c Inject) Object() string { return string(c.Task) }

// Object implements [Command].
func (c Decide) Object() string { return string(c.Task) }

// Object implements [Command].
func (c Reply) Object() string { return c.Question }

// Object implements [Command].
func (c Read) Object() string { return string(c.Task) }

// Object implements [Command].
func (c Readers) Object() string { return string(c.Task) }

// Object implements [Command].
func (WatchAll) Object() string { return "" }

// Object implements [Command].
func (c Follow) Object() string { return string(c.Thread) }

// Object implements [Command].
func (Subscribe) Object() string { return "" }

// Object implements [Command].
func (c List) Object() string { return c.What.String() }

// Object implements [Command].
func (c CallTool) Object() string { return c.Tool }

// Object implements [Command].
func (c Provide) Object() string { return c.Pack }

// Object implements [Command].
func (c Join) Object() string { return string(c.Card.ID) }

// Object implements [Command].
func (c Configure) Object() string { return string(c.Agent) }

// Object implements [Command].
func (c Restart) Object() string { return c.Name }

// Object implements [Command].
func (c Admit) Object() string { return c.Principal }

// Object implements [Command].
func (Drain) Object() string { return "" }

// Object implements [Command].
func (c Forget) Object() string { return c.Hub }

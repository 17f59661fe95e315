package mcp

import (
	"encoding/json"
	"fmt"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/frame"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// run is a running call of a tool: a session of its own and, for agent_ask, its task. It may
// outlast the request that began it. One goroutine uses it at a time.
type run struct {
	session *hub.Session
	tool    string
	// key identifies the run: the id of its task, or a name of its own; "" for one whose client cannot be
	// asked.
	key string
	// task is nil for tools other than agent_ask. A run that is not its owner only reads it.
	task  *task.Task
	owner bool
	// result is nil until the call has ended.
	result *outcome
	holder *holder
	// events is how many events the task has. text ends with what it said last, which is
	// the answer if isAnswer; said counts how often that changed.
	events   uint64
	text     []byte
	isAnswer bool
	said     int
	// changed says that inputs may be out of date: the approvals and questions that wait.
	changed bool
	inputs  []input
	round   int             // how often the client was asked in a result
	refused map[string]bool // inputs that the caller may not give
	// expiry ends a run whose client does not return, and release stops reading for one that
	// is followed as a task, or waits for its client.
	expiry  *time.Timer
	release func()
}

// askTool is the tool whose task the client is shown.
const askTool = "agent_ask"

// start begins a call of a tool. streams says whether the client reads requests before the result.
func (s *Server) start(q *request, p callParams, streams bool) *run {
	r := &run{session: q.holder.session.ChildFor(q.thread, frame.RingOf(q.http.Context())), tool: p.Name, holder: q.holder, owner: true}
	r.session.Below(q.hops)
	r.session.InTrace(q.trace)
	if p.Name != askTool {
		if q.progress != nil {
			r.session.WatchProgress()
		}
		if q.elicits && (q.modern || streams) {
			r.key = core.NewID()
			r.holder.begun(r.key)
			r.session.WatchOwnQuestions()
		}
		r.session.CallTool(q.call, p.Name, p.Arguments)
		return r
	}
	if err := r.open(q, p.Arguments); err != nil {
		r.result = &outcome{fault: core.AsFault(err)}
	}
	return r
}

// open opens the task of agent_ask.
func (r *run) open(q *request, input json.RawMessage) error {
	watched := q.elicits || q.progress != nil // else only the end is of interest
	t, err := r.session.Ask(input, hub.OpenOptions{Keep: q.tasks, Unwatched: !watched, Attends: q.elicits})
	if err != nil {
		return err
	}
	r.task, r.key = t, string(t.ID())
	if q.elicits {
		r.watchQuestions(t.Thread())
	}
	if !watched {
		r.session.AwaitEnd(t)
	}
	return nil
}

// watchQuestions makes the session one that shows the questions of a conversation to people. Where the hub has no
// room for that, whoever asks is told that nobody is there.
func (r *run) watchQuestions(thread core.ThreadID) {
	_ = r.session.WatchQuestions(question.View{Thread: thread, For: r.session.Identity().Principal})
}

// take takes what is new in the session.
func (r *run) take(b hub.Batch) {
	switch {
	case b.Tool != nil:
		r.result = outcomeOf(r.tool, b.Tool)
	case b.Progress != nil:
		r.say(b.Progress.Detail)
	case b.Question != nil:
		r.changed = true
		if r.key != "" {
			r.holder.show(b.Question, r.key)
		}
	case b.Gap != nil:
		r.events = max(r.events, b.Gap.To)
	case b.Task != nil && len(b.Events) == 0:
		r.result = outcomeOfTask(r.task)
	case b.Task != nil:
		for _, e := range b.Events {
			r.note(e)
		}
	}
}

// note takes an event of the task.
func (r *run) note(e core.Event) {
	r.events = e.End()
	switch b := e.Body.(type) {
	case core.Text:
		if !r.isAnswer {
			r.text, r.isAnswer = r.text[:0], true
		}
		r.add(b.Text)
	case core.Thinking:
		r.say(b.Text)
	case core.ToolCall:
		r.say("calls " + b.Name)
	case core.Retrying:
		r.say(fmt.Sprintf("%s failed, another agent is asked", b.Agent))
	default:
		r.changed = r.changed || changesInputs(e)
	}
	if e.Body.Kind().Ends() {
		r.result = outcomeOfTask(r.task)
	}
}

// say replaces what was said last.
func (r *run) say(text string) {
	r.text, r.isAnswer = r.text[:0], false
	r.add(text)
}

// add adds to what was said last, of which only the end is kept.
func (r *run) add(text string) {
	r.said++
	text = text[max(0, len(text)-2*maxWords):]
	if len(r.text)+len(text) > 4*maxWords {
		r.text = append(r.text[:0], r.text[max(0, len(r.text)-2*maxWords):]...)
	}
	r.text = append(r.text, text...)
}

// words returns the latest words, "" before the first.
func (r *run) words() string { return strings.TrimSpace(ending(string(r.text), maxWords)) }

// changesInputs reports whether a task may wait for something else after the event.
func changesInputs(e core.Event) bool {
	switch e.Body.Kind() {
	case core.KindApprovalRequested, core.KindApprovalDecided, core.KindToolState, core.KindToolResult:
		return true
	}
	return false
}

// maxWords bounds the words of a progress notification, in bytes.
const maxWords = 300

// ending returns the end of a text of at most n bytes, from the beginning of a word if there
// is one.
func ending(text string, n int) string {
	if len(text) <= n {
		return text
	}
	text = text[len(text)-n:]
	for len(text) > 0 && !utf8.RuneStart(text[0]) {
		text = text[1:]
	}
	if i := strings.IndexAny(text, " \n\t"); i >= 0 && i < n/2 {
		text = text[i+1:]
	}
	return text
}

// close ends a run that has ended, or that somebody else continues.
func (r *run) close(why *core.Fault) {
	if r.key != "" && r.owner {
		r.holder.forgetRun(r.key)
	}
	r.session.Close(why)
}

// taskID returns the id of the task, or "".
func (r *run) taskID() core.TaskID {
	if r.task == nil {
		return ""
	}
	return r.task.ID()
}

// cancel ends a run for which nobody waits any more, and cancels what it asked.
func (r *run) cancel(why *core.Fault) {
	if r.task != nil && r.owner {
		_ = r.session.Cancel(r.task.ID(), why.Message) // it may have ended
	}
	r.close(why)
}

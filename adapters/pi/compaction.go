package pi

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/adapters/pi/sessionfile"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// compactionCancelled is the error of a compaction that was cancelled.
const compactionCancelled = "Compaction cancelled"

// compactionQuestion asks for a summary that replaces the conversation before it.
const compactionQuestion = "Sum up the conversation before this message. From now on the summary stands for it: whoever goes on, you or another agent, " +
	"will not have read what it leaves out. Keep everything that is needed to go on:\n\n" +
	"- the goal, and what is wanted or ruled out;\n" +
	"- what was decided, and why;\n" +
	"- what was done and found out, what is still open, and what comes next;\n" +
	"- names exactly as they stand: people, agents, files, commands, ids, addresses, numbers, errors.\n\n" +
	"Where the conversation begins with a summary, keep of that what still holds. Do not go on with the conversation and use no tools: answer with the summary alone."

// compaction is a compaction under way: the agent of the session is asked for a summary of
// the first part of the conversation. Nothing changes until the summary is there.
type compaction struct {
	*conversation.Cut
	x      *request          // in whose name
	reason render.Compaction // of an automatic one, else ""
}

// summaryBytes bounds the conversation that an agent is sent to summarize: most agents take
// messages of a megabyte, and JSON may double the size of a text.
const summaryBytes = 512 << 10

// start asks the agent of the session to summarize what the compaction removes, up to that
// many bytes. ended is called once, in a turn of the engine, with a summary that can replace
// it or the reason why there is none. The error is the Fault of an open circuit; then the
// agent is not asked.
func (c *compaction) start(bytes int, custom string, deadline time.Time, ended func(string, *core.Fault)) error {
	s := c.x.target.server
	ss := c.x.target
	prepare := func() ([]core.Turn, string) {
		question := compactionQuestion
		told, left := c.Removed(bytes)
		if left > 0 {
			question += fmt.Sprintf("\n\nThe first %d messages do not fit here: say in the summary that it lacks what was said in them.", left)
		}
		if custom != "" {
			question += "\n\n" + custom
		}
		return told, question
	}
	err := c.x.requestSummary(prepare, deadline, func(summary string, f *core.Fault) {
		ss.compacting = nil
		most := s.hub.Limits().HistoryBytes / 2
		switch {
		case ss.deleted:
			f = core.NewFault(core.CodeCancelled, compactionCancelled)
		case f != nil && f.Code == core.CodeCancelled:
			f = core.NewFault(core.CodeCancelled, compactionCancelled)
		case f != nil:
		case strings.TrimSpace(summary) == "":
			f = core.NewFault(core.CodeInternal, "the agent gave no summary")
		case len(summary) > most:
			f = core.NewFault(core.CodeTooLarge, "the summary has %d bytes, and agents are told at most %d: half of limits.history_bytes", len(summary), most)
		}
		ended(summary, f)
	})
	if err == nil {
		ss.compacting = c
	}
	return err
}

// cutFor divides the conversation that ends at leaf into what is removed and what is kept.
// It returns why the conversation cannot be compacted, or "".
func (s *Server) cutFor(leaf *conversation.Node, smaller bool) (*conversation.Cut, string) {
	told := s.hub.Limits().HistoryBytes
	if told <= 0 {
		return nil, "agents are told no earlier turns on this server, so that none could go on with a summary: its setting limits.history_bytes is 0"
	}
	return conversation.CutAt(leaf, told, smaller)
}

// apply replaces what is removed by the summary, and continues in a new thread. It returns the
// result for the client, which has the members of the entry (facts, section 5).
func (c *compaction) apply(summary string) json.RawMessage {
	result := sessionfile.Compaction{Summary: summary, FirstKeptEntryID: c.First().ID(), TokensBefore: c.Tokens}
	c.x.target.addEntry(result)
	c.x.target.newThread(core.ThreadID(core.NewID()), c.x.target.tree.Messages())
	c.x.target.pause = pause{}
	return strictjson.Encode(result)
}

// compact compacts the conversation on request.
func compact(s *Server, x *request) command.Outcome {
	if x.target.agent.IsZero() {
		return command.Failed("No model selected")
	}
	divided, problem := s.cutFor(x.target.tree.Leaf, false)
	if problem != "" {
		return command.Failed(problem)
	}
	custom, _ := x.Text("customInstructions")
	c := &compaction{Cut: divided, x: x}
	deadline := x.Admitted().Add(s.opts.Commands.PromptTimeout)
	err := c.start(x.target.summaryBudget(), custom, deadline, func(summary string, f *core.Fault) {
		switch {
		case f == nil:
			x.Finish(command.Outcome{Data: c.apply(summary)})
		case endedAtDeadline(deadline, f):
			x.Finish(command.Outcome{Err: command.TimedOut(x.Kind, s.opts.Commands.PromptTimeout), TimedOut: true})
		default:
			x.Finish(command.Failed(f.Message))
		}
	})
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	x.DisableTimeout() // the task has the deadline
	x.KeepOnly()
	return command.Outcome{Pending: true}
}

// endedAtDeadline reports whether the hub ended a task at its deadline, rather than an agent by
// a timeout of its own.
func endedAtDeadline(deadline time.Time, f *core.Fault) bool {
	return f.Code == core.CodeTimeout && !time.Now().Before(deadline)
}

// abortCompaction stops the compaction under way, if there is one.
func abortCompaction(s *Server, x *request) command.Outcome {
	if x.target.compacting != nil {
		x.stopSummary(x.target, "")
	}
	return command.Outcome{}
}

func setAutoCompaction(_ *Server, x *request) command.Outcome {
	x.target.noCompaction = x.Is("enabled", "false")
	return command.Outcome{}
}

// mayAutoCompact reports whether the conversation may be compacted automatically.
func (ss *session) mayAutoCompact() bool {
	s := ss.server
	return s.opts.CompactAt > 0 && !ss.noCompaction && !ss.shared && !ss.deleted && !s.engine.Draining()
}

// contextFull reports whether the conversation has reached Options.CompactAt percent of the
// agent's context window, by the usage that the agent reported or else by an estimate.
func (ss *session) contextFull() bool {
	s := ss.server
	limit := int64(ss.window()) * int64(s.opts.CompactAt) / 100
	return ss.tree.ReachesTokens(limit)
}

// compactAfter compacts a full conversation after a run, and reports whether it does. Then
// the prompt is answered at once, but its turn in the lane lasts until the compaction has
// ended, so that the next prompt uses the result.
func (r *run) compactAfter() bool {
	s := r.session.server
	ss := r.session
	if !ss.mayAutoCompact() || !ss.contextFull() || ss.pause.active(ss.agent.Agent(), time.Now()) {
		return false
	}
	divided, problem := s.cutFor(ss.tree.Leaf, true)
	if problem != "" {
		return false
	}
	c := &compaction{Cut: divided, x: r.prompt, reason: render.CompactionThreshold}
	ss.subscribers.sendAfter(r.last(), ss.envelope.CompactionStart(c.reason))
	end := func(result json.RawMessage, f *core.Fault) {
		ss.subscribers.send(ss.envelope.CompactionEnd(c.reason, result, f))
	}
	err := c.start(ss.summaryBudget(), "", time.Now().Add(s.opts.Commands.PromptTimeout), func(summary string, f *core.Fault) {
		var result json.RawMessage
		switch {
		case f == nil:
			result = c.apply(summary)
		case f.Code != core.CodeCancelled:
			ss.pause.extend(ss.agent.Agent(), time.Now())
		}
		end(result, f)
		r.prompt.Finish(command.Outcome{}) // it was answered already: this ends its turn
	})
	if err != nil {
		ss.pause.extend(ss.agent.Agent(), time.Now())
		end(nil, core.AsFault(err))
		return false
	}
	r.prompt.Settle(command.Outcome{})
	return true
}

// pause delays the next automatic compaction after one failed, so that a full conversation
// is not compacted again after each answer.
type pause struct {
	agent core.AgentID // that failed
	until time.Time
	last  time.Duration
}

// The bounds of a pause. Each is twice as long as the one before.
const (
	shortestPause = time.Minute
	longestPause  = time.Hour
)

// active reports whether the agent is not to be asked yet.
func (p pause) active(agent core.AgentID, now time.Time) bool {
	return p.agent == agent && now.Before(p.until)
}

// extend begins a pause after another failure of the agent.
func (p *pause) extend(agent core.AgentID, now time.Time) {
	if p.agent != agent {
		*p = pause{agent: agent}
	}
	p.last = min(max(2*p.last, shortestPause), longestPause)
	p.until = now.Add(p.last)
}

// compactAndRetry compacts a conversation that was too large for the agent and then makes
// another attempt of the step, once in a run. It reports whether it does: then the run goes
// on. If the agent has sent output or called a tool, it has accepted the conversation, and
// its answer was too large.
func (st *step) compactAndRetry(f *core.Fault) bool {
	s := st.run.session.server
	r := st.run
	ss := r.session
	if f == nil || f.Code != core.CodeTooLarge || r.retrying.compacted || r.aborted || !ss.mayAutoCompact() || hasOutput(st) {
		return false
	}
	divided, problem := s.cutFor(st.leaf, true)
	if problem != "" {
		return false
	}
	c := &compaction{Cut: divided, x: r.prompt, reason: render.CompactionOverflow}
	half := 0 // since all of it is too large
	for _, n := range c.Nodes {
		half += len(n.ContextMessage().JSON) / 2
	}
	deadline := st.task.Deadline()
	err := c.start(min(half, ss.summaryBudget()), "", deadline, func(summary string, f *core.Fault) {
		st.retryCompacted(c, deadline, summary, f)
	})
	if err != nil {
		return false
	}
	r.retrying.compacted = true
	r.sendBetween(ss.envelope.AgentEnd(r.messages[r.retrying.since:]), ss.envelope.CompactionStart(c.reason))
	return true
}

// hasOutput reports whether the agent has sent anything in the step.
func hasOutput(st *step) bool {
	return slices.ContainsFunc(st.task.Events(), func(e core.Event) bool {
		k := e.Body.Kind()
		return k == core.KindText || k == core.KindToolCall || k == core.KindFile
	})
}

// retryCompacted makes another attempt of the step after the compaction, or ends the run if
// that failed. The history of the new thread ends before the messages of the step.
func (st *step) retryCompacted(c *compaction, deadline time.Time, summary string, f *core.Fault) {
	s := st.run.session.server
	r := st.run
	ss := r.session
	var result json.RawMessage
	if f == nil {
		ss.tree.Move(st.leaf)
		result = c.apply(summary)
		st.leaf = ss.tree.Leaf
		before := ss.tree.Context
		for len(before) > 0 && before[len(before)-1].Role == conversation.RoleUser {
			before = before[:len(before)-1]
		}
		ss.newThread(ss.thread, conversation.Messages(before))
	}
	r.sendBetween(ss.envelope.CompactionEnd(c.reason, result, f))
	if f == nil {
		r.repeatStep(st, deadline)
		return
	}
	r.endRetries(f.Message)
	r.closeRun()
	o := command.Outcome{}
	if endedAtDeadline(deadline, f) {
		o = command.Outcome{Err: command.TimedOut(r.prompt.Kind, s.opts.Commands.PromptTimeout), TimedOut: true}
	}
	r.prompt.Finish(o)
}

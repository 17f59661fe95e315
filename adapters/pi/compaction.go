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
	"github.com/dragoman-hub/dragoman/adapters/pi/wire"
	"github.com/dragoman-hub/dragoman/core"
)

// compactionCancelled is what comes of a compaction that somebody does not want.
const compactionCancelled = "Compaction cancelled"

// compactionQuestion asks for the summary of a conversation that goes on with it.
const compactionQuestion = "Sum up the conversation before this message. From now on the summary stands for it: whoever goes on, you or another agent, " +
	"will not have read what it leaves out. Keep everything that is needed to go on:\n\n" +
	"- the goal, and what is wanted or ruled out;\n" +
	"- what was decided, and why;\n" +
	"- what was done and found out, what is still open, and what comes next;\n" +
	"- names exactly as they stand: people, agents, files, commands, ids, addresses, numbers, errors.\n\n" +
	"Where the conversation begins with a summary, keep of that what still holds. Do not go on with the conversation and use no tools: answer with the summary alone."

// compaction is one under way in a session: the bound agent is asked for a summary of
// what was said first. Nothing changes until that is there.
type compaction struct {
	*conversation.Cut
	x      *request          // in whose name
	reason render.Compaction // of an automatic one, else ""
}

// summaryBytes bounds what an agent is told for a summary of it: most agents take
// messages of a megabyte, of which JSON may need as much again.
const summaryBytes = 512 << 10

// start asks the agent of the session for a summary of what goes, as much as fits
// into so many bytes. ended is called once, in a turn of the engine, with a summary that is
// fit to stand for it, or with the reason why there is none; a session that is gone
// meanwhile has none. It returns the Fault of an open circuit, for which nobody is asked.
func (c *compaction) start(bytes int, custom string, deadline time.Time, ended func(string, *core.Fault)) error {
	s := c.x.on.server
	ss := c.x.on
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

// cutFor divides the conversation that ends at leaf. It returns why it cannot be
// compacted, or "".
func (s *Server) cutFor(leaf *conversation.Node, smaller bool) (*conversation.Cut, string) {
	told := s.hub.Limits().HistoryBytes
	if told <= 0 {
		return nil, "agents are told no earlier turns on this server, so that none could go on with a summary: its setting limits.history_bytes is 0"
	}
	return conversation.CutAt(leaf, told, smaller)
}

// compactionResult is what a compaction has come to (facts, section 5).
type compactionResult struct {
	Summary          string `json:"summary"`
	FirstKeptEntryID string `json:"firstKeptEntryId"`
	TokensBefore     int64  `json:"tokensBefore"`
}

// apply lets the summary stand for what goes: the conversation has a new thread,
// with the summary and what is kept.
func (c *compaction) apply(summary string) json.RawMessage {
	result := compactionResult{summary, c.First().ID(), c.Tokens}
	c.x.on.add(sessionfile.Compaction{
		Summary: result.Summary, FirstKeptEntryID: result.FirstKeptEntryID, TokensBefore: result.TokensBefore,
	})
	c.x.on.newThread(core.ThreadID(core.NewID()), c.x.on.tree.Messages())
	c.x.on.pause = pause{}
	return wire.Encode(result)
}

// compact has the conversation compacted because a client wants it.
func compact(s *Server, x *request) command.Outcome {
	if x.on.agent.IsZero() {
		return command.Failed("No model selected")
	}
	divided, problem := s.cutFor(x.on.tree.Leaf, false)
	if problem != "" {
		return command.Failed(problem)
	}
	custom, _ := x.Text("customInstructions")
	c := &compaction{Cut: divided, x: x}
	deadline := x.Admitted().Add(s.opts.Commands.PromptTimeout)
	err := c.start(x.on.summaryBudget(), custom, deadline, func(summary string, f *core.Fault) {
		switch {
		case f == nil:
			x.Finish(command.Outcome{Data: c.apply(summary)})
		case ranOutAt(deadline, f):
			x.Finish(command.Outcome{Err: command.TimedOut(x.Kind, s.opts.Commands.PromptTimeout), TimedOut: true})
		default:
			x.Finish(command.Failed(f.Message))
		}
	})
	if err != nil {
		return command.Failed(core.AsFault(err).Message)
	}
	x.DisableTimeout() // by the deadline of the question, which the hub keeps
	x.KeepOnly()
	return command.Outcome{Pending: true}
}

// ranOutAt tells the hub's end of a task at its deadline from an agent's own timeout.
func ranOutAt(deadline time.Time, f *core.Fault) bool {
	return f.Code == core.CodeTimeout && !time.Now().Before(deadline)
}

// abortCompaction stops the compaction under way, if there is one.
func abortCompaction(s *Server, x *request) command.Outcome {
	if x.on.compacting != nil {
		x.stopSummary(x.on, "")
	}
	return command.Outcome{}
}

func setAutoCompaction(_ *Server, x *request) command.Outcome {
	x.on.noCompaction = x.Is("enabled", "false")
	return command.Outcome{}
}

// mayAutoCompact reports whether the session's conversation may be compacted by itself.
func (ss *session) mayAutoCompact() bool {
	s := ss.server
	return s.opts.CompactAt > 0 && !ss.noCompaction && !ss.shared && !ss.deleted && !s.engine.Draining()
}

// contextFull reports whether the conversation has reached its share of the agent's context
// window: by what the agent said, else by what it takes about.
func (ss *session) contextFull() bool {
	s := ss.server
	limit := int64(ss.window()) * int64(s.opts.CompactAt) / 100
	return ss.tree.ReachesTokens(limit)
}

// compactAfter compacts the conversation behind a run that was done, when it is full.
// It reports whether it does: then the prompt is answered, and the lane of the session
// goes on once the compaction has ended, so that the next prompt goes on with it.
func (r *run) compactAfter() bool {
	s := r.session.server
	ss := r.session
	if !ss.mayAutoCompact() || !ss.contextFull() || ss.pause.holds(ss.agent.Agent(), time.Now()) {
		return false
	}
	divided, problem := s.cutFor(ss.tree.Leaf, true)
	if problem != "" {
		return false
	}
	c := &compaction{Cut: divided, x: r.prompt, reason: render.CompactionThreshold}
	ss.readers.tellBehind(r.last(), ss.envelope.CompactionStart(c.reason))
	end := func(result json.RawMessage, f *core.Fault) {
		ss.readers.tell(ss.envelope.CompactionEnd(c.reason, result, f))
	}
	err := c.start(ss.summaryBudget(), "", time.Now().Add(s.opts.Commands.PromptTimeout), func(summary string, f *core.Fault) {
		var result json.RawMessage
		switch {
		case f == nil:
			result = c.apply(summary)
		case f.Code != core.CodeCancelled:
			ss.pause.longer(ss.agent.Agent(), time.Now())
		}
		end(result, f)
		r.prompt.Finish(command.Outcome{}) // which was answered: its lane goes on
	})
	if err != nil {
		ss.pause.longer(ss.agent.Agent(), time.Now())
		end(nil, core.AsFault(err))
		return false
	}
	r.prompt.Settle(command.Outcome{})
	return true
}

// pause keeps a full conversation that its agent could not sum up from being tried again
// behind each answer.
type pause struct {
	agent core.AgentID // that failed
	until time.Time
	last  time.Duration
}

// The bounds of a pause: each is twice as long as the one before.
const (
	shortestPause = time.Minute
	longestPause  = time.Hour
)

// holds reports whether the agent is not asked for a summary yet.
func (p pause) holds(agent core.AgentID, now time.Time) bool {
	return p.agent == agent && now.Before(p.until)
}

// longer begins a pause behind one more failure of the agent.
func (p *pause) longer(agent core.AgentID, now time.Time) {
	if p.agent != agent {
		*p = pause{agent: agent}
	}
	p.last = min(max(2*p.last, shortestPause), longestPause)
	p.until = now.Add(p.last)
}

// compactAndRetry compacts the conversation when it was too large for the agent, and then
// has the step asked again, once in a run. It reports whether it does: then the run
// goes on. An agent that has said something, or used a tool, has taken the conversation;
// what was too large then is its answer.
func (st *step) compactAndRetry(f *core.Fault) bool {
	s := st.run.session.server
	r := st.run
	ss := r.session
	if f == nil || f.Code != core.CodeTooLarge || r.retrying.compacted || r.aborted || !ss.mayAutoCompact() || hasSaid(st) {
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
	deadline := st.task.Request().Deadline
	err := c.start(min(half, ss.summaryBudget()), "", deadline, func(summary string, f *core.Fault) {
		st.retryCompacted(c, deadline, summary, f)
	})
	if err != nil {
		return false
	}
	r.retrying.compacted = true
	r.tellBetween(ss.envelope.AgentEnd(r.messages[r.retrying.since:]), ss.envelope.CompactionStart(c.reason))
	return true
}

// hasSaid reports whether the agent has said or done anything in the step.
func hasSaid(st *step) bool {
	return slices.ContainsFunc(st.task.Events(), func(e core.Event) bool {
		k := e.Body.Kind()
		return k == core.KindText || k == core.KindToolCall || k == core.KindFile
	})
}

// retryCompacted asks the step again behind the compaction, or ends the run as it
// failed. What the agent is told ends before what it is asked.
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
	r.tellBetween(ss.envelope.CompactionEnd(c.reason, result, f))
	if f == nil {
		r.askAgain(st, deadline)
		return
	}
	r.endRetries(f.Message)
	r.closeRun()
	o := command.Outcome{}
	if ranOutAt(deadline, f) {
		o = command.Outcome{Err: command.TimedOut(r.prompt.Kind, s.opts.Commands.PromptTimeout), TimedOut: true}
	}
	r.prompt.Finish(o)
}

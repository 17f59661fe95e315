package pi

import (
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/core"
)

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
	err := c.start(ss.summaryBudget(), "", time.Now().Add(s.opts.PromptTimeout), func(summary string, f *core.Fault) {
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
		o = command.Outcome{Err: command.TimedOut(r.prompt.Kind, s.opts.PromptTimeout), TimedOut: true}
	}
	r.prompt.Finish(o)
}

package metrics

import (
	"time"

	"github.com/prometheus/client_golang/prometheus"
)

// What waits for people: how many, and for how long the first of them has waited. The time that
// they get is beside it, so that a rule can say "half of it is over".
var (
	approvals       = describe("dragoman_approvals_waiting", "Tool calls that wait for a decision.")
	approvalsOldest = describe("dragoman_approvals_oldest_seconds", "How long the tool call that waits longest has waited for a decision; 0 if none waits.")
	approvalsLimit  = describe("dragoman_approvals_timeout_seconds", "The time after which a tool call without a decision is denied.")
	questions       = describe("dragoman_questions_waiting", "Questions of agents that wait for an answer.")
	questionsOldest = describe("dragoman_questions_oldest_seconds", "How long the question that waits longest has waited for an answer; 0 if none waits.")
)

var waiting = []*prometheus.Desc{approvals, approvalsOldest, approvalsLimit, questions, questionsOldest}

// collectWaiting reports what waits for people.
func (c *collector) collectWaiting(gauge func(*prometheus.Desc, float64, ...string)) {
	now := time.Now()
	var first time.Time
	asked := c.hub.ApprovalsHere(component)
	for _, a := range asked {
		first = earlier(first, a.Since)
	}
	gauge(approvals, float64(len(asked)))
	gauge(approvalsOldest, age(now, first))
	gauge(approvalsLimit, c.hub.Limits().QuestionTimeout.Seconds())
	first = time.Time{}
	open := c.hub.Questions(component)
	for _, q := range open {
		first = earlier(first, q.Since)
	}
	gauge(questions, float64(len(open)))
	gauge(questionsOldest, age(now, first))
}

// earlier returns the earlier of two times, of which the first may be zero.
func earlier(first, t time.Time) time.Time {
	if first.IsZero() || t.Before(first) {
		return t
	}
	return first
}

// age returns the seconds since a time; 0 if the time is zero, or after now.
func age(now, since time.Time) float64 {
	if since.IsZero() {
		return 0
	}
	return max(0, now.Sub(since).Seconds())
}

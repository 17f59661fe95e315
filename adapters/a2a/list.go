package a2a

import (
	"cmp"
	"encoding/json"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// mostCounted bounds how many tasks are looked at for totalSize.
const mostCounted = 1000

// listTasks is ListTasks: the tasks of the sender, by whatever dialect they were opened, the
// latest first. Pages are in the order in which tasks were opened; within a page the order is
// that of the last change. totalSize is the number of matching tasks among the latest 1,000
// from the page on: where those have fewer than a page, it is not full and has a token.
func (c *call) listTasks(params strictjson.Value) (json.RawMessage, error) {
	r, err := wire.Read[wire.ListTasksRequest](params)
	if err != nil {
		return nil, err
	}
	agent, err := c.agent(r.Tenant)
	if err != nil {
		return nil, err
	}
	after, err := r.After()
	if err != nil {
		return nil, err
	}
	size := wire.DefaultPageSize
	if r.PageSize != nil {
		size = *r.PageSize
	}
	before := core.TaskID(r.PageToken)
	if _, isTask := before.Begun(); before != "" && !isTask {
		return nil, core.NewFault(core.CodeInvalid, "pageToken: send the nextPageToken of the page before")
	}
	l := lister{call: c, agent: agent, request: r, after: after, size: size}
	out := wire.ListTasksResponse{Tasks: []wire.Task{}, PageSize: size}
	filter := task.Filter{From: c.from.ID, Thread: core.ThreadID(r.ContextID), Before: before, Limit: task.MostListed}
	for seen := 0; ; {
		page, err := c.server.hub.Tasks(c.r.Context(), c.from, filter)
		if err != nil {
			return nil, err
		}
		for _, one := range page.Tasks {
			if err := l.add(&out, one); err != nil {
				return nil, err
			}
		}
		seen += len(page.Tasks)
		if filter.Before = page.Before; page.Before == "" || seen >= mostCounted {
			out.NextPageToken = cmp.Or(out.NextPageToken, string(page.Before)) // what was not looked at may match
			break
		}
	}
	slices.SortStableFunc(out.Tasks, func(a, b wire.Task) int { return b.Status.At.Compare(a.Status.At) })
	return strictjson.Marshal(out)
}

// lister collects a page.
type lister struct {
	call    *call
	agent   core.AgentID
	request wire.ListTasksRequest
	after   time.Time
	size    int
	last    core.TaskID // of the page
}

// mayMatch reports whether a task may match, by what its entry in the list of the hub tells.
func (l *lister) mayMatch(one task.Status) bool {
	return one.Request.Intent != core.IntentNotify && served(l.agent, one.Agent, one.Request.To) && l.mayBe(one.State)
}

// matches reports whether the status of a task is one of those that are wanted.
func (l *lister) matches(has wire.Status) bool {
	want := l.request.Status
	return (want == "" || want == unspecified || has.State == want) && !has.At.Before(l.after)
}

// add adds a task if it matches: to the page while that has room, and to the total.
func (l *lister) add(out *wire.ListTasksResponse, one task.Status) error {
	if !l.mayMatch(one) {
		return nil
	}
	full := len(out.Tasks) == l.size
	if full && l.after.IsZero() && !l.running(one.State) {
		l.count(out)
		return nil
	}
	t, err := l.call.server.hub.Task(l.call.r.Context(), l.call.from, one.ID)
	if f := core.AsFault(err); f != nil && (f.Code == core.CodeUnknownTask || f.Code == core.CodeNotAuthorized) {
		return nil // it has gone meanwhile
	} else if err != nil {
		return err
	}
	whole, _, _ := l.call.snapshot(t)
	if !l.matches(whole.Status) {
		return nil
	}
	l.count(out)
	if full {
		return nil
	}
	if !l.request.IncludeArtifacts {
		whole.Artifacts = nil
	}
	out.Tasks, l.last = append(out.Tasks, keep(whole, l.request.HistoryLength)), one.ID
	return nil
}

// count counts a matching task. One beyond the page makes another page.
func (l *lister) count(out *wire.ListTasksResponse) {
	if out.TotalSize++; out.TotalSize > l.size {
		out.NextPageToken = string(l.last)
	}
}

// unspecified is the zero value of a state, which selects nothing.
const unspecified wire.State = "TASK_STATE_UNSPECIFIED"

// states are those of the hub that a state of the protocol may be.
var states = map[wire.State][]string{
	wire.StateSubmitted: {"queued", "running"}, wire.StateWorking: {"running"}, wire.StateInputRequired: {"running"}, wire.StateAuthRequired: {},
	wire.StateCompleted: {"done"}, wire.StateFailed: {"failed"}, wire.StateRejected: {"failed"}, wire.StateCanceled: {"cancelled"},
}

// mayBe reports whether a task in a state of the hub may be in the wanted one.
func (l *lister) mayBe(state string) bool {
	wanted := cmp.Or(l.request.Status, unspecified)
	return wanted == unspecified || slices.Contains(states[wanted], state)
}

// running reports whether only the events of a task say whether it is in the wanted state.
func (l *lister) running(state string) bool {
	wanted := cmp.Or(l.request.Status, unspecified)
	return wanted != unspecified && (state == "running" || state == "failed")
}

package rest

import (
	"net/http"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

// getThreads lists the conversations that the sender may read, the one with the newest task first.
func (a *api) getThreads(c call) error {
	q := c.r.URL.Query()
	f := hub.ThreadFilter{State: q.Get("state"), Agent: core.AgentID(q.Get("agent")), Before: core.TaskID(q.Get("before"))}
	var err error
	if f.Limit, err = number(c.r, "limit", task.DefaultListed, task.MostListed); err == nil {
		err = checkList(f.State, f.Agent, f.Before)
	}
	if err != nil {
		return err
	}
	found, err := a.hub.Threads(c.r.Context(), c.from, f)
	if err != nil {
		return err
	}
	return a.reply(c.w, http.StatusOK, found)
}

// checkList returns an invalid Fault for parameters of a list that cannot be those.
func checkList(state string, agent core.AgentID, before core.TaskID) error {
	_, isTask := before.Begun()
	switch {
	case state != "" && !slices.Contains(task.States, state):
		return core.NewFault(core.CodeInvalid, "?state=%s: send one of %s", state, strings.Join(task.States, ", "))
	case agent != "" && core.CheckAgentID(agent) != nil:
		return core.NewFault(core.CodeInvalid, "?agent=: %s", core.AsFault(core.CheckAgentID(agent)).Message)
	case before != "" && !isTask:
		return core.NewFault(core.CodeInvalid, "?before=%s: send the before of the previous page", before)
	}
	return nil
}

// getThread returns the turns of a thread that the hub remembers. Any name may be a thread,
// so a thread without turns is an empty list, not an error.
func (a *api) getThread(c call) error {
	id := c.id()
	turns := append([]core.Turn{}, a.hub.Turns(c.r.Context(), c.from, core.ThreadID(id))...)
	return a.reply(c.w, http.StatusOK, struct {
		ID    string      `json:"id"`
		Turns []core.Turn `json:"turns"`
	}{id, turns})
}

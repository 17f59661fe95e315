package command

import (
	"cmp"
	"context"
	"encoding/json"
	"fmt"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/cluster"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// What completions are found among on a hub.

// completedTasks is how many of the newest tasks are offered.
const completedTasks = 50

// agentIDs are the agents on the hub.
func agentIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	list, err := hub.Agents(ctx)
	return asChoices(list), err
}

// asChoices offers agents by their ids.
func asChoices(list []hub.AgentStatus) (all []choiceOf) {
	for _, a := range list {
		all = append(all, choiceOf{string(a.ID), strings.Join(slices.DeleteFunc([]string{a.Name, a.Dialect, a.Load.State.String()}, func(s string) bool { return s == "" || s == string(a.ID) }), ", ")})
	}
	return all
}

// addressees are the agents on the hub, and the capabilities and domains that they can be addressed by.
func addressees(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	list, err := hub.Agents(ctx)
	all = asChoices(list)
	for _, a := range list {
		for _, name := range a.Capabilities {
			all = append(all, choiceOf{"capability:" + name, "such as " + string(a.ID)})
		}
		for _, name := range a.Domains {
			all = append(all, choiceOf{"domain:" + name, "such as " + string(a.ID)})
		}
	}
	return all, err
}

// childIDs are the agents and packs of the settings.
func childIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	agents, err := hub.Agents(ctx)
	if err != nil {
		return nil, err
	}
	for _, a := range agents {
		if a.Child != nil {
			all = append(all, choiceOf{string(a.ID), "agent, " + a.Child.State.String()})
		}
	}
	var list packList
	err = hub.Get(ctx, "/v1/packs", &list)
	for _, p := range list.Packs {
		if p.Child != nil {
			all = append(all, choiceOf{p.ID, "pack, " + p.Child.State.String()})
		}
	}
	return all, err
}

// packIDs are the packs on the hub.
func packIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	var list packList
	err = hub.Get(ctx, "/v1/packs", &list)
	for _, p := range list.Packs {
		all = append(all, choiceOf{p.ID, fmt.Sprintf("%s, %d tools", p.Dialect, len(p.Tools))})
	}
	return all, err
}

// toolNames are the tools that the caller may call.
func toolNames(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	list, err := hub.Tools(ctx)
	for _, t := range list {
		all = append(all, choiceOf{t.Name, t.Description})
	}
	return all, err
}

// packList is the response of GET /v1/packs.
type packList struct {
	Packs []hub.PackStatus `json:"packs"`
}

// newestTasks returns the newest tasks.
func newestTasks(ctx context.Context, hub *client.Client) (rows []taskRow, err error) {
	list, err := hub.Tasks(ctx, client.TaskQuery{Limit: completedTasks})
	for _, raw := range list.Tasks {
		var row taskRow
		if json.Unmarshal(raw, &row) == nil {
			rows = append(rows, row)
		}
	}
	return rows, err
}

// taskIDs are the newest tasks, with the beginning of what was asked.
func taskIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	rows, err := newestTasks(ctx, hub)
	for _, row := range rows {
		all = append(all, choiceOf{string(row.ID), row.State + ": " + row.asked()})
	}
	return all, err
}

// runningIDs are the newest tasks that have not ended.
func runningIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	rows, err := newestTasks(ctx, hub)
	for _, row := range rows {
		if row.State == task.Queued.String() || row.State == task.Running.String() {
			all = append(all, choiceOf{string(row.ID), row.State + ": " + row.asked()})
		}
	}
	return all, err
}

// threadIDs are the conversations of the newest tasks, with what was asked in them last.
func threadIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	rows, err := newestTasks(ctx, hub)
	for _, row := range rows {
		all = append(all, choiceOf{string(row.Thread), row.asked()})
	}
	return all, err
}

// requesterIDs are those who asked the newest tasks.
func requesterIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	rows, err := newestTasks(ctx, hub)
	for _, row := range rows {
		all = append(all, choiceOf{row.From.ID, row.From.Dialect})
	}
	return all, err
}

// pendingTasks are the tasks of which a tool call waits for approval.
func pendingTasks(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	list, err := hub.Approvals(ctx)
	for _, a := range list.Approvals {
		all = append(all, choiceOf{string(a.Task), a.Name + " of " + string(a.Agent) + ": " + a.Input})
	}
	return all, err
}

// pendingCalls are the tool calls of the task of the first argument that wait for approval.
func pendingCalls(ctx context.Context, hub *client.Client, args []string) (all []choiceOf, err error) {
	list, err := hub.Approvals(ctx)
	for _, a := range list.Approvals {
		if string(a.Task) == args[0] {
			all = append(all, choiceOf{a.ID, a.Name + ": " + a.Input})
		}
	}
	return all, err
}

// questionList is the response of GET /v1/questions.
type questionList struct {
	Questions []question.Question `json:"questions"`
	Missing   []string            `json:"missing,omitempty"`
}

// questionIDs are the open questions; after one, its options.
func questionIDs(ctx context.Context, hub *client.Client, args []string) (all []choiceOf, err error) {
	var list questionList
	err = hub.Get(ctx, "/v1/questions", &list)
	for _, q := range list.Questions {
		if len(args) == 0 {
			all = append(all, choiceOf{q.ID, string(q.Agent) + ": " + q.Text})
		} else if q.ID == args[0] && (q.Several || len(args) == 1) {
			for _, o := range q.Options {
				if !slices.Contains(args[1:], o.Label) {
					all = append(all, choiceOf{o.Label, o.Description})
				}
			}
		}
	}
	return all, err
}

// hubStatus is a part of the response of GET /v1/hub.
type hubStatus struct {
	Principal string    `json:"principal,omitempty"` // who the hub takes the caller for
	Draining  string    `json:"draining,omitempty"`  // why the hub takes nothing new
	Cluster   *struct { // nil for a hub alone
		Hubs  []cluster.Hub `json:"hubs"`
		Stale bool          `json:"stale,omitempty"`
	} `json:"cluster"`
}

// hubNames are the hubs of the cluster.
func hubNames(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	var v hubStatus
	if err = hub.Get(ctx, "/v1/hub", &v); err != nil || v.Cluster == nil {
		return nil, err
	}
	for _, h := range v.Cluster.Hubs {
		all = append(all, choiceOf{h.Name, strings.TrimSpace(h.State.String() + " " + h.Address)})
	}
	return all, nil
}

// principalList is the response of GET /v1/principals.
type principalList struct {
	Principals []core.KnownPrincipal `json:"principals"`
}

// principalIDs are those who may connect.
func principalIDs(ctx context.Context, hub *client.Client, _ []string) (all []choiceOf, err error) {
	var list principalList
	err = hub.Get(ctx, "/v1/principals", &list)
	for _, p := range list.Principals {
		all = append(all, choiceOf{p.Principal, p.Status.String() + ", " + cmp.Or(p.Fingerprint, p.Credential)})
	}
	return all, err
}

package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/http"
	"net/url"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func agentsCommand(streams Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "agents [ID]", Short: "List the agents on the hub", Args: cobra.MaximumNArgs(1),
		Long: `List the agents on the hub, or one of them: their names, dialects, load and
capabilities, and why those of the settings that are not ready are not. With -o wide also
their health, where they run, and how often the hub started them again. With an ID the
whole last error is shown, and what an agent of the editor's protocol can be set to, as it
has announced that in its first conversation: its modes, models and options, with what a
new conversation begins with. 'dragoman ask --option' sets it for one question, the
settings for all.`,
		Example: `  dragoman agents
  dragoman agents gemini -o wide`,
	}
	c.AddCommand(restartCommand(streams))
	to := addHubFlags(c.Flags(), streams, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, agentIDs))
	addOutputFlag(c, to)
	c.RunE = func(c *cobra.Command, args []string) error {
		if len(args) == 1 {
			return showAgent(c.Context(), to, args[0], to.wide)
		}
		list, err := to.client().Agents(c.Context())
		if err != nil {
			return err
		}
		return printAgents(c.Context(), to, map[string]any{"agents": list}, list, to.wide)
	}
	return c
}

// showAgent prints one agent.
func showAgent(ctx context.Context, to *hubFlags, id string, wide bool) error {
	var raw json.RawMessage
	var agent hub.AgentStatus
	err := to.client().Get(ctx, "/v1/agents/"+url.PathEscape(id), &raw)
	if err == nil && !to.json {
		err = json.Unmarshal(raw, &agent)
	}
	if err != nil {
		return err
	}
	if err := printAgents(ctx, to, raw, []hub.AgentStatus{agent}, wide); err != nil || to.json {
		return err
	}
	if err := printOptions(to, agent.Metadata); err != nil {
		return err
	}
	for _, c := range []*core.Child{agent.Child, agent.Refused} {
		if c != nil && c.LastError != "" {
			fmt.Fprintf(to.Out, "\nlast error: %s%s\n", oneLine(c.LastError), again(id, c))
		}
	}
	return nil
}

// printOptions prints what an agent can be set to, as its card has it.
func printOptions(to *hubFlags, metadata map[string]json.RawMessage) error {
	text, err := json.Marshal(metadata)
	if err != nil {
		return err
	}
	var offer wire.Offer
	if err := json.Unmarshal(text, &offer); err != nil || offer.IsSilent() {
		return nil // what another agent says by these names is its own
	}
	fmt.Fprintln(to.Out)
	return printList(to, nil, offer.Names(), "", []string{"OPTION", "IS", "MAY BE"}, func(name string) []string {
		is, _ := offer.Current(name)
		return []string{name, orDash(is), orDash(strings.Join(offer.Values(name), ", "))}
	})
}

// printAgents prints a table of agents, with more columns if wide; or v if --json is given.
func printAgents(ctx context.Context, to *hubFlags, v any, list []hub.AgentStatus, wide bool) error {
	heads := []string{"ID", "NAME", "DIALECT", "STATE", "TASKS", "CAPABILITIES"}
	rows := withRefused(list)
	many := wide && slices.ContainsFunc(rows, func(a hub.AgentStatus) bool { return a.Hub != "" })
	troubled := slices.ContainsFunc(rows, func(a hub.AgentStatus) bool { return trouble(string(a.ID), a.Child) != "" })
	switch {
	case wide:
		heads = append(heads, "QUEUED", "DOMAINS", "MODEL", "FEATURES", "SINCE", "HEALTH", "RESTARTS", "PID", "LAST ERROR", "BACKEND", "WORKSPACES", "DIRECTORY", "GIT")
	case troubled:
		heads = append(heads, "LAST ERROR")
	}
	if many { // "-" is the hub that was asked
		heads = append(heads, "HUB")
	}
	none := ""
	if len(rows) == 0 && !to.json {
		none = noAgents(ctx, to)
	}
	return printList(to, v, rows, none, heads, func(a hub.AgentStatus) []string {
		row := []string{string(a.ID), orDash(a.Name), orDash(a.Dialect), stateOf(a), fmt.Sprintf("%d/%d", a.Load.Active, a.MaxConcurrent), orDash(strings.Join(a.Capabilities, ","))}
		if wide {
			row = append(row, fmt.Sprint(a.Load.Queued), orDash(strings.Join(a.Domains, ",")), orDash(a.Model),
				orDash(strings.Join(a.Features.Names(), ",")), since(a.Since), health(a.Vitals))
			row = append(row, childCells(string(a.ID), a.Child)...)
			row = append(row, workplace(a.Card)...)
		} else if troubled {
			row = append(row, orDash(trouble(string(a.ID), a.Child)))
		}
		if many {
			row = append(row, orDash(a.Hub))
		}
		return row
	})
}

// noAgents says why there are no agents, and what to do.
func noAgents(ctx context.Context, to *hubFlags) string {
	var v hubStatus
	err := to.client().Get(ctx, "/v1/hub", &v) // without an answer it is not known to be drained
	switch {
	case err == nil && v.Draining != "":
		return fmt.Sprintf("no agents are connected: the hub takes none until it is started again (%s)", visible(v.Draining))
	case to.address().Token != "":
		return "you see no agents here: none is connected (start one, such as 'dragoman agent --name shout -- tr a-z A-Z'), or the rules of the hub do not let you see them"
	}
	return "no agents are connected: start one, such as 'dragoman agent --name shout -- tr a-z A-Z'"
}

// withRefused adds the agents of the settings that could not join, each after the one that has
// its id.
func withRefused(list []hub.AgentStatus) (all []hub.AgentStatus) {
	for _, a := range list {
		all = append(all, a)
		if a.Refused != nil {
			all = append(all, hub.AgentStatus{Card: core.Card{ID: a.ID, Name: "(of the settings)"}, Child: a.Refused})
		}
	}
	return all
}

// since formats the time since when an agent is connected as a cell.
func since(t time.Time) string {
	if t.IsZero() {
		return "-"
	}
	return t.Format("2006-01-02 15:04:05")
}

// health formats the health of an agent as a cell: its status, its missed heartbeats and
// its metrics.
func health(v *core.Vitals) string {
	if v == nil {
		return "-"
	}
	parts := []string{orDash(v.Status)}
	if v.Missed > 0 {
		parts = append(parts, fmt.Sprintf("missed:%d", v.Missed))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Metrics)) {
		parts = append(parts, fmt.Sprintf("%s:%g", name, v.Metrics[name]))
	}
	return strings.Join(parts, " ")
}

// childCells formats how the hub runs an agent or a pack itself, as cells.
func childCells(id string, c *core.Child) []string {
	if c == nil {
		return []string{"-", "-", "-"}
	}
	pid := "-"
	if c.PID != 0 {
		pid = fmt.Sprint(c.PID)
	}
	return []string{fmt.Sprint(c.Restarts), pid, orDash(gist(c.LastError) + again(id, c))}
}

// again says how an agent or a pack that has failed is started again, after its last error; "" for any other.
func again(id string, c *core.Child) string {
	switch {
	case c.State != core.ChildFailed || c.LastError == "":
		return ""
	case c.RetryMS > 0:
		return fmt.Sprintf(" (tried again every %s)", config.FormatTime(c.Retry()))
	}
	return fmt.Sprintf(" (tried again after 'dragoman agents restart %s' or SIGHUP)", quoted(id))
}

// trouble returns why an agent or a pack of the settings is not ready, as a cell; "" if it is.
func trouble(id string, c *core.Child) string {
	if c == nil || c.State == core.ChildReady {
		return ""
	}
	return gist(c.LastError) + again(id, c)
}

// gist returns the part of an error that fits into a cell: its beginning, which says what
// happened, and its end, which says why.
func gist(text string) string {
	const begin, end = 30, 60
	r := []rune(oneLine(text))
	if len(r) <= begin+end {
		return string(r)
	}
	head, tail := string(r[:begin]), string(r[len(r)-end:])
	if cut := strings.LastIndexByte(head, ' '); cut > 0 {
		head = head[:cut]
	}
	if _, after, found := strings.Cut(tail, " "); found {
		tail = after
	}
	return head + " … " + tail
}

func restartCommand(streams Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "restart ID", Short: "Start an agent or a pack of the hub's settings again", Args: usageArgs(cobra.ExactArgs(1)),
		Long: `Start an agent or a pack of the hub's settings again. If its process runs, it is ended
first. Tasks wait for it meanwhile; those that it works on fail as unreachable.

  dragoman agents restart gemini`,
	}
	to := addHubFlags(c.Flags(), streams, "print JSON")
	c.ValidArgsFunction = inOrder(fromHub(to, childIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		var answer struct {
			ID string `json:"id"`
		}
		if err := to.client().Send(c.Context(), http.MethodPost, "/v1/agents/"+url.PathEscape(args[0])+"/restart", struct{}{}, &answer); err != nil {
			return err
		}
		return to.print(answer, args[0]+" is started again: 'dragoman agents' or 'dragoman packs' shows its state")
	}
	return c
}

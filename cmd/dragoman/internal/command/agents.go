package command

import (
	"context"
	"encoding/json"
	"fmt"
	"maps"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func agentsCommand(io Streams) *cobra.Command {
	var output string
	c := &cobra.Command{
		Use: "agents [ID]", Short: "List the agents on the hub", Args: cobra.MaximumNArgs(1),
		Long: `List the agents on the hub, or one of them: their names, dialects, load and
capabilities; with -o wide also their health and where they run.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.Flags().StringVarP(&output, "output", "o", "", "`format`: wide, or json")
	c.RunE = func(c *cobra.Command, args []string) error {
		if output != "" && output != "wide" && output != "json" {
			return usagef("--output %q: use wide or json", output)
		}
		to.json = to.json || output == "json"
		if len(args) == 1 {
			return showAgent(c.Context(), to, args[0], output == "wide")
		}
		list, err := to.client().Agents(c.Context())
		if err != nil {
			return err
		}
		return printAgents(to, map[string]any{"agents": list}, list, output == "wide")
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
	return printAgents(to, raw, []hub.AgentStatus{agent}, wide)
}

// printAgents prints a table of agents, with more columns if wide; or v if --json is given.
func printAgents(to *hubFlags, v any, list []hub.AgentStatus, wide bool) error {
	heads := []string{"ID", "NAME", "DIALECT", "STATE", "TASKS", "CAPABILITIES"}
	if wide {
		heads = append(heads, "QUEUED", "DOMAINS", "MODEL", "FEATURES", "SINCE", "HEALTH", "BACKEND", "WORKSPACES", "DIRECTORY", "GIT")
	}
	const none = "no agents are connected: start one, such as 'dragoman agent --dialect parallax --name shout -- tr a-z A-Z'"
	return printList(to, v, list, none, heads, func(a hub.AgentStatus) []string {
		row := []string{string(a.ID), orDash(a.Name), a.Dialect, a.Load.State.String(), fmt.Sprintf("%d/%d", a.Load.Active, a.MaxConcurrent), orDash(strings.Join(a.Capabilities, ","))}
		if wide {
			row = append(row, fmt.Sprint(a.Load.Queued), orDash(strings.Join(a.Domains, ",")), orDash(a.Model),
				orDash(strings.Join(a.Features.Names(), ",")), a.Since.Format("2006-01-02 15:04:05"), health(a.Vitals))
			row = append(row, workplace(a.Card)...)
		}
		return row
	})
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

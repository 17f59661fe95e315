package command

import (
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
	var asJSON bool
	c := &cobra.Command{
		Use: "agents [ID]", Short: "List the agents on the hub", Args: cobra.MaximumNArgs(1),
		Long: `List the agents on the hub, or one of them: who they are, what they speak, and
whether they are free.`,
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVarP(&output, "output", "o", "", "`format`: wide, or json")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		asJSON = asJSON || output == "json"
		if output != "" && output != "wide" && output != "json" {
			return &exit{ExitUsage, fmt.Errorf("--output %q: use wide or json", output)}
		}
		client := to.client()
		if len(args) == 1 {
			path := "/v1/agents/" + url.PathEscape(args[0])
			if asJSON {
				var one json.RawMessage
				if err := client.Get(c.Context(), path, &one); err != nil {
					return err
				}
				return printJSON(io.Out, one)
			}
			var one hub.AgentStatus
			if err := client.Get(c.Context(), path, &one); err != nil {
				return err
			}
			return printAgents(io, []hub.AgentStatus{one}, output == "wide")
		}
		list, err := client.Agents(c.Context())
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(io.Out, map[string]any{"agents": list})
		case len(list) == 0:
			fmt.Fprintln(io.Err, "no agents are connected: start one, such as 'dragoman agent --dialect parallax --name shout -- tr a-z A-Z'")
			return nil
		}
		return printAgents(io, list, output == "wide")
	}
	return c
}

// printAgents prints a table of agents, with more columns if wide.
func printAgents(io Streams, list []hub.AgentStatus, wide bool) error {
	heads := []string{"ID", "NAME", "DIALECT", "STATE", "TASKS", "CAPABILITIES"}
	if wide {
		heads = append(heads, "QUEUED", "DOMAINS", "MODEL", "FEATURES", "SINCE", "HEALTH", "BACKEND", "WORKSPACES", "DIRECTORY", "GIT")
	}
	t := newTable(io.Out, heads...)
	for _, a := range list {
		row := []string{string(a.ID), orDash(a.Name), a.Dialect, a.Load.State.String(), fmt.Sprintf("%d/%d", a.Load.Active, a.MaxConcurrent), orDash(strings.Join(a.Capabilities, ","))}
		if wide {
			row = append(row, fmt.Sprint(a.Load.Queued), orDash(strings.Join(a.Domains, ",")), orDash(a.Model),
				orDash(strings.Join(a.Features.Names(), ",")), a.Since.Format("2006-01-02 15:04:05"), health(a.Vitals))
			row = append(row, workplace(a.Card)...)
		}
		t.row(row...)
	}
	return t.flush()
}

// health formats the health of an agent as a cell: its status, its missed heartbeats and
// its metrics.
func health(v *core.Vitals) string {
	if v == nil {
		return "-"
	}
	words := []string{orDash(v.Status)}
	if v.Missed > 0 {
		words = append(words, fmt.Sprintf("missed:%d", v.Missed))
	}
	for _, name := range slices.Sorted(maps.Keys(v.Metrics)) {
		words = append(words, fmt.Sprintf("%s:%g", name, v.Metrics[name]))
	}
	return strings.Join(words, " ")
}

package main

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

func agentsCommand(io streams) *cobra.Command {
	var output string
	var asJSON bool
	c := &cobra.Command{
		Use: "agents [ID]", Short: "List the agents on the hub", Args: cobra.MaximumNArgs(1),
		Long: "List the agents on the hub: who they are, what they speak, and whether they are free.",
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVarP(&output, "output", "o", "", "`format`: wide, or json")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		asJSON = asJSON || output == "json"
		if output != "" && output != "wide" && output != "json" {
			return &exit{exitUsage, fmt.Errorf("--output %q: use wide or json", output)}
		}
		var list struct {
			Agents []hub.AgentStatus `json:"agents"`
		}
		if len(args) == 1 {
			var one json.RawMessage
			if err := to.client().get(c.Context(), "/v1/agents/"+url.PathEscape(args[0]), &one); err != nil {
				return err
			}
			return printJSON(io.out, one)
		}
		if err := to.client().get(c.Context(), "/v1/agents", &list); err != nil {
			return err
		}
		if asJSON {
			return printJSON(io.out, list)
		}
		if len(list.Agents) == 0 {
			fmt.Fprintln(io.err, "no agent is here: join one, such as 'dragoman agent --dialect parallax --name shout -- tr a-z A-Z'")
			return nil
		}
		heads := []string{"ID", "NAME", "DIALECT", "STATE", "TASKS", "CAPABILITIES"}
		if output == "wide" {
			heads = append(heads, "QUEUED", "DOMAINS", "MODEL", "FEATURES", "SINCE", "HEALTH", "BACKEND", "WORKSPACES", "DIRECTORY", "GIT")
		}
		t := newTable(io.out, heads...)
		for _, a := range list.Agents {
			row := []string{string(a.ID), orDash(a.Name), a.Dialect, a.Load.State.String(), fmt.Sprintf("%d/%d", a.Load.Active, a.MaxConcurrent), orDash(strings.Join(a.Capabilities, ","))}
			if output == "wide" {
				row = append(row, fmt.Sprint(a.Load.Queued), orDash(strings.Join(a.Domains, ",")), orDash(a.Model),
					orDash(strings.Join(a.Features.Names(), ",")), a.Since.Format("2006-01-02 15:04:05"), health(a.Vitals))
				row = append(row, surroundings(a.Card)...)
			}
			t.row(row...)
		}
		return t.flush()
	}
	return c
}

// health is how an agent says it is, in a cell: its status, the heartbeats that it
// missed since, and its metrics by name.
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

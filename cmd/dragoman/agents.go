package main

import (
	"encoding/json"
	"fmt"
	"net/url"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/usage"
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
		heads := []string{"ID", "DIALECT", "STATE", "TASKS", "CAPABILITIES"}
		if output == "wide" {
			heads = append(heads, "QUEUED", "DOMAINS", "MODEL", "FEATURES", "SINCE")
		}
		t := newTable(io.out, heads...)
		for _, a := range list.Agents {
			row := []string{string(a.ID), a.Dialect, a.Load.State.String(), fmt.Sprintf("%d/%d", a.Load.Active, a.MaxConcurrent), orDash(strings.Join(a.Capabilities, ","))}
			if output == "wide" {
				row = append(row, fmt.Sprint(a.Load.Queued), orDash(strings.Join(a.Domains, ",")), orDash(a.Model),
					orDash(strings.Join(a.Features.Names(), ",")), a.Since.Format("2006-01-02 15:04:05"))
			}
			t.row(row...)
		}
		return t.flush()
	}
	return c
}

func usageCommand(io streams) *cobra.Command {
	var by string
	var asJSON bool
	c := &cobra.Command{
		Use: "usage", Short: "Show the tokens that were used", Args: cobra.NoArgs,
		Long: "Show the tokens that were used since the hub started, added up by agent, thread, requester or day.",
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&by, "by", "agent", "`line` to add up along: agent, thread, requester or day")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var u struct {
			By     string        `json:"by"`
			Totals []usage.Total `json:"totals"`
		}
		if err := to.client().get(c.Context(), "/v1/usage?by="+url.QueryEscape(by), &u); err != nil {
			return err
		}
		if asJSON {
			return printJSON(io.out, u)
		}
		if len(u.Totals) == 0 {
			fmt.Fprintln(io.err, "no agent has told of any tokens since the hub started")
			return nil
		}
		t := newTable(io.out, strings.ToUpper(by), "INPUT", "OUTPUT", "THINKING", "CACHE READ", "CACHE WRITE", "TOTAL")
		for _, x := range u.Totals {
			n := x.Tokens
			t.row(orDash(x.Key), fmt.Sprint(n.Input), fmt.Sprint(n.Output), fmt.Sprint(n.Thinking), fmt.Sprint(n.CacheRead), fmt.Sprint(n.CacheWrite), fmt.Sprint(n.Total()))
		}
		return t.flush()
	}
	return c
}

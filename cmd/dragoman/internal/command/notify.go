package command

import (
	"encoding/json"
	"fmt"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core"
)

// What dragoman notify sends unless a flag says otherwise.
const (
	noticeTopic = "note"
	noticeTime  = 30 * time.Second
)

var importances = []string{"low", "medium", "high"}

func notifyCommand(io Streams) *cobra.Command {
	var topic, data, importance string
	c := &cobra.Command{
		Use: "notify AGENT [WORD...]", Short: "Send an agent a notice, which it does not answer",
		Long: `Send an agent a notice, which it does not answer, and wait until it was delivered.
Without words, or with "-" or @-, the text is read from stdin; @FILE, as the only word, reads a
file; @@ stands for an @ at the beginning. The agent gets it as the data of the notice. An agent that takes no notices gets nothing, and the command fails.`,
		Example: `  dragoman notify bell "somebody is at the door" --topic door.open
  dragoman notify bell --topic door.open --data '{"who":"me"}'`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	f.StringVar(&topic, "topic", noticeTopic, "dotted `topic` of the notice")
	f.StringVar(&data, "data", "", "send this `JSON` value instead of words, or that of @file")
	f.StringVar(&importance, "importance", "low", "`hint` for the agent: "+strings.Join(importances, ", "))
	timeout := timeFlag(f, "timeout", noticeTime, "`time` that the delivery may take")
	c.ValidArgsFunction = withContent(fromHub(to, addressees))
	completeFlag(c, "importance", fixed(importances...))
	completeFlag(c, "data", completeAtFile)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := refuseEmpty(c, "topic", "data"); err != nil {
			return err
		}
		switch {
		case !slices.Contains(importances, importance):
			return usagef("--importance %q: use %s", importance, strings.Join(importances, ", "))
		case data != "" && len(args) > 1:
			return usagef("--data: leave the words out")
		case *timeout < time.Millisecond:
			return usagef("--timeout %s: want at least 1ms, such as 20s", *timeout)
		}
		body := map[string]any{"to": args[0], "topic": topic, "importance": importance, "deadline_ms": timeout.Milliseconds()}
		var err error
		if data != "" {
			body["data"], err = jsonOf(data, "--data", io.In)
		} else {
			body["data"], err = contentOf(args[1:], io.In)
		}
		if err != nil {
			return err
		}
		var raw json.RawMessage
		if err := to.client().Post(c.Context(), "/v1/notices?wait=true", body, &raw); err != nil {
			return err
		}
		var v struct {
			State  string
			Answer struct{ Fault *core.Fault }
		}
		if err := json.Unmarshal(raw, &v); err != nil {
			return err
		}
		var failure error
		switch fault := v.Answer.Fault; {
		case fault != nil:
			failure = &exit{codeOf(fault), fmt.Errorf("it was not delivered (%s): %s", fault.Code, fault.Message)}
		case v.State != core.KindDone.String():
			failure = fmt.Errorf("it was not delivered: the notice is %s", v.State)
		}
		if failure != nil {
			if to.json {
				_ = printJSON(io.Out, raw)
			}
			return failure
		}
		return to.print(raw, "delivered")
	}
	return c
}

package command

import (
	"context"
	"net/url"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/editor"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func editorCommand(io Streams) *cobra.Command {
	var agent string
	c := &cobra.Command{
		Use: "editor --agent ADDRESS", Short: "Be an agent of an editor (Zed, JetBrains, Neovim)", Args: cobra.NoArgs,
		Long: `Speak the Agent Client Protocol of editors (agentclientprotocol.com) on stdin and stdout,
for an agent of a running hub, whatever it speaks. The editor starts the command; its
settings name it. In Zed:

  "agent_servers": {
    "Coder": {"type": "custom", "command": "dragoman", "args": ["editor", "--agent", "coder"]}
  }

An ADDRESS is the id of an agent, capability:NAME, domain:NAME or * for any. A session of
the editor is a thread of the hub. While there is no hub, requests are answered with an
error that says what to do. Only the log is printed on stderr.`,
	}
	f := c.Flags()
	f.StringVar(&agent, "agent", "", "`address` of the agent that answers")
	to := addHubFlags(f, io, "")
	completeFlag(c, "agent", fromHub(to, addressees))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if agent == "" {
			return usagef("--agent is missing: name the agent that answers, such as --agent coder; 'dragoman agents' lists who is here")
		}
		if _, err := core.ParseAddress(agent); err != nil {
			return usagef("--agent: %s", core.AsFault(err).Message)
		}
		if err := to.address().CheckURL(); err != nil { // before an editor that says nothing can end the command
			return err
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		local, err := openStdio(io, stdio.Options{Limit: bridge.MaxLine})
		if err != nil {
			return err
		}
		e := bridge.Editor{
			Log: newLog(io.Err, "info", "auto"),
			Dial: func(ctx context.Context) (bridge.Conn, error) {
				return client.DialWebSocket(ctx, to.address(), editor.Path+"?agent="+url.QueryEscape(agent), nil, bridge.MaxLine)
			},
		}
		return e.Carry(ctx, local)
	}
	return c
}

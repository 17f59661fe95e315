package command

import (
	"errors"
	"net/http"
	"os"
	"os/signal"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/native"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/render"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/transports/stdio"
)

func stdioCommand(io Streams) *cobra.Command {
	var dialect, snapshots, id string
	c := &cobra.Command{
		Use: "stdio", Short: "Speak pi-server, ACP or the native dialect with a running hub over stdin and stdout", Args: cobra.NoArgs,
		Long: `Connect stdin and stdout to a running hub, one JSON object per line. At the end of
stdin the command waits for outstanding answers and exits.

  echo '{"id":"1","type":"list_sessions"}' | dragoman stdio
  echo '{"v":1,"id":"1","kind":"discover"}' | dragoman stdio --dialect acp --id me
  echo '{"call":{"id":"1","act":"list","command":{"what":"agents"}}}' | dragoman stdio --dialect native`,
	}
	f := c.Flags()
	f.StringVar(&dialect, "dialect", pi.Name, "`dialect`: pi, acp or native")
	f.StringVar(&snapshots, "snapshots", "", "`amount` of a growing message that each update repeats, with --dialect pi: all or none; default: the hub's setting")
	f.StringVar(&id, "id", "", "`id` to speak as, with --dialect acp or native; default: the principal of the token, else with acp from of the first envelope")
	to := addHubFlags(f, io, "")
	completeFlag(c, "dialect", fixed(pi.Name, acp.Dialect, native.Dialect))
	completeFlag(c, "snapshots", fixed("all", "none"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		bridges := map[string]bridge.Bridge{pi.Name: bridge.Pi(), acp.Dialect: bridge.ACP(), native.Dialect: bridge.Native()}
		b, ok := bridges[dialect]
		if !ok {
			return usagef("--dialect %q: use pi, acp or native", dialect)
		}
		if snapshots != "" {
			if dialect != pi.Name {
				return usagef("--snapshots is for --dialect pi alone")
			}
			if _, err := render.ParseSnapshots(snapshots); err != nil {
				return usagef("--snapshots %q: use all or none", snapshots)
			}
			b.Path += "?snapshots=" + snapshots
		}
		var as http.Header
		if id != "" {
			if dialect == pi.Name {
				return usagef("--id is for --dialect acp and native alone")
			}
			if err := core.CheckAgentID(core.AgentID(id)); err != nil {
				return usagef("--id: %s", core.AsFault(err).Message)
			}
			as = http.Header{"X-Agent-Id": {id}}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		conn, err := client.DialWebSocket(ctx, to.address(), b.Path, as, bridge.MaxLine)
		var refused *core.Fault
		if errors.As(err, &refused) {
			return errors.New(refused.Message)
		}
		if err != nil {
			return err
		}
		local, err := openStdio(io, stdio.Options{Limit: bridge.MaxLine})
		if err != nil {
			return err
		}
		return b.Carry(ctx, local, conn)
	}
	return c
}

// openStdio returns a connection over the streams of a command. Those of the process are
// reopened, so that a blocked read can be interrupted.
func openStdio(io Streams, opts stdio.Options) (*stdio.Conn, error) {
	if io.In == os.Stdin && io.Out == os.Stdout {
		return stdio.Std(opts)
	}
	return stdio.New(io.In, io.Out, opts), nil
}

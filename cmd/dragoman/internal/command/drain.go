package command

import (
	"context"
	"errors"
	"fmt"
	"net/http"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// errNotEmpty means that a hub was not empty within --timeout.
var errNotEmpty = errors.New("the hub was not empty")

func drainCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "drain", Short: "Empty a hub before it is stopped or upgraded", Args: cobra.NoArgs,
		Long: `Empty a hub: it takes nothing new, and its agents and clients are told, as at its end. What
runs may finish; then their connections are closed, and the command returns. The process stays,
and /readyz is 503, until the hub is started again. Whoever comes meanwhile is refused and, in a
cluster, told which other hubs to go to. Interrupting the command undoes nothing, and neither does
--timeout: the exit code is 3 then.

  dragoman drain --timeout 5m                          # wait 5 minutes at most`,
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print JSON")
	timeout := timeFlag(f, "timeout", 0, "`time` to wait until the hub is empty, such as 5m; default: no limit")
	c.RunE = func(c *cobra.Command, _ []string) error {
		ctx := c.Context()
		if c.Flags().Changed("timeout") {
			if *timeout < time.Millisecond {
				return usagef("--timeout %s: want at least 1ms, such as 5m; leave it out for no limit", config.FormatTime(*timeout))
			}
			var cancel context.CancelFunc
			ctx, cancel = context.WithTimeoutCause(ctx, *timeout, errNotEmpty)
			defer cancel()
		}
		var answer struct {
			ID string `json:"id"`
		}
		p := startProgress(io.Err, "the hub finishes what runs, and closes its connections")
		defer p.end()
		err := to.client().Send(ctx, http.MethodPost, "/v1/hub/drain", struct{}{}, &answer)
		p.end()
		switch {
		case err != nil && errors.Is(context.Cause(ctx), errNotEmpty):
			return &exit{ExitTimeout, fmt.Errorf("%w within %s: run 'dragoman drain' again to wait longer", errNotEmpty, config.FormatTime(*timeout))}
		case err != nil:
			return err
		}
		return to.print(answer, "the hub is empty: it takes nothing new until it is started again")
	}
	return c
}

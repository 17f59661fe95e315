package command

import (
	"cmp"
	"fmt"
	"os"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// hubPlace has the flags with the address of a hub.
type hubPlace struct {
	hub, token, grpc string

	named func() string // where the address of the hub stands
}

// hubFlags declares the flags of every command that talks to a hub.
func hubFlags(fs *pflag.FlagSet) *hubPlace {
	p := &hubPlace{}
	const variable, flag = "DRAGOMAN_HUB", "hub"
	fromEnviron := os.Getenv(variable)
	fs.StringVar(&p.hub, flag, cmp.Or(fromEnviron, "http://127.0.0.1:8080"), "`address` of the hub (DRAGOMAN_HUB)")
	p.named = func() string {
		if fromEnviron != "" && !fs.Changed(flag) {
			return variable
		}
		return "--" + flag
	}
	fs.StringVar(&p.token, "token", os.Getenv("DRAGOMAN_TOKEN"), "`token` to authenticate with (DRAGOMAN_TOKEN)")
	fs.Lookup("token").DefValue = "" // a help text shows no secret
	return p
}

func (p *hubPlace) place() client.Hub {
	return client.Hub{URL: p.hub, Named: p.named(), GRPC: p.grpc, Token: p.token}
}

func (p *hubPlace) client() *client.Client { return p.place().Client() }

// waitFlag declares --wait.
func waitFlag(fs *pflag.FlagSet, what string) *time.Duration {
	d := timeFlag(fs, "wait", 0, "wait for "+what+" that is not there yet, for at most so much `time` (--wait=30s)")
	fs.Lookup("wait").NoOptDefVal = waitUsual
	return d
}

// checkWait makes a usage error of "--wait 30s", where 30s would be an argument.
func checkWait(c *cobra.Command, args []string, what string) error {
	if _, isTime := config.ParseTime(args[0]); isTime && c.Flags().Changed("wait") {
		return &exit{ExitUsage, fmt.Errorf("%s would be %s: write --wait=%[1]s", args[0], what)}
	}
	return nil
}

// waitUsual is the value of --wait without a time.
const waitUsual = "5m"

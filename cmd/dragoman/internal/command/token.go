package command

import (
	"errors"
	"fmt"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/auth"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/credentials"
)

func tokenCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "token", Short: "Make tokens", Args: subcommand, Run: printHelp,
		Long: `Make tokens for those who connect to a hub. The hub has only their hashes, in the file
of the setting auth.tokens.`,
	}
	c.AddCommand(newTokenCommand(io))
	return c
}

func newTokenCommand(io Streams) *cobra.Command {
	var t auth.Token
	var kind, expires, file string
	c := &cobra.Command{
		Use: "new --principal NAME [flags]", Short: "Make a token", Args: usageArgs(cobra.NoArgs),
		Long: `Make a random token and print it, alone, on standard output. It is printed once: the
hub keeps only its hash. With --file the entry is added to the end of that token file,
which stays as it is otherwise; without it the entry is printed on standard error, to be
added by hand. A running hub reads the file again on SIGHUP.

  dragoman token new --principal alice --kind person --file tokens.yaml
  dragoman token new --principal ci --agents 'build-*' --role builder --expires 30d --file tokens.yaml`,
	}
	f := c.Flags()
	f.StringVar(&t.Principal, "principal", "", "`name` of its owner")
	f.StringArrayVar(&t.Roles, "role", nil, "`name` that rules refer to as role:NAME; may be repeated")
	f.StringArrayVar(&t.Agents, "agents", nil, "`id` of agents that its owner may register, with * for any characters; may be repeated. Without it, the principal's name alone")
	f.BoolVar(&t.Operator, "operator", false, "its owner may do everything")
	f.StringVar(&kind, "kind", "", "`kind` of its owner: person, agent or service")
	f.StringVar(&expires, "expires", "", "`time` after which it is invalid, such as 30d, or the moment, such as 2030-01-31T12:00:00Z")
	f.StringVar(&file, "file", "", "token `file` that the entry is added to (auth.tokens)")
	completeFlag(c, "kind", fixed("person", "agent", "service"))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if err := refuseEmpty(c, "principal", "role", "agents", "kind", "expires", "file"); err != nil {
			return err
		}
		if err := completeToken(&t, kind, expires); err != nil {
			return err
		}
		token := credentials.NewToken()
		t.Hash = auth.HashOf(token)
		if file == "" {
			fmt.Fprintf(io.Err, "Add this below tokens: in the file of auth.tokens, then reload the hub with SIGHUP (kill -HUP PID, or systemctl reload):\n\n%s\n", credentials.TokenEntry(t))
		} else {
			path, err := config.ExpandHome(file)
			if err == nil {
				err = credentials.AppendToken(path, t)
			}
			if err != nil {
				return fmt.Errorf("no token was made: %w", err)
			}
			fmt.Fprintf(io.Err, "The hash is in %s. Reload the hub with SIGHUP (kill -HUP PID, or systemctl reload), or name the file in auth.tokens and start it.\n", file)
		}
		fmt.Fprintln(io.Err, "Whoever connects with it sets DRAGOMAN_TOKEN. It is shown only now:")
		_, err := fmt.Fprintln(io.Out, token)
		return err
	}
	return c
}

// completeToken checks what was given for a token, and adds what is read from texts.
func completeToken(t *auth.Token, kind, expires string) (err error) {
	if t.Principal == "" {
		return usagef("whose token is it? Give --principal NAME")
	}
	if auth.CheckPrincipal(t.Principal) != nil {
		return usagef("--%w", auth.CheckPrincipal(t.Principal))
	}
	if t.Roles, err = auth.CheckRoles(t.Roles); err != nil {
		return usagef("--role: %w", err)
	}
	if t.Agents, err = auth.CheckAgents(t.Agents); err != nil {
		return usagef("--agents: %w", err)
	}
	if kind != "" {
		if err := t.Kind.UnmarshalText([]byte(kind)); err != nil || t.Kind == 0 {
			return usagef("--kind %q: use person, agent or service", kind)
		}
	}
	if expires == "" {
		return nil
	}
	if t.Expires, err = expiry(expires); err != nil {
		return usagef("--expires %q: %w", expires, err)
	}
	return nil
}

// expiry reads a time from now, or a moment, that is in the future.
func expiry(text string) (time.Time, error) {
	at, err := time.Parse(time.RFC3339, text)
	if d, is := config.ParseTime(text); is {
		at, err = time.Now().Add(d), nil
	}
	switch {
	case err != nil:
		return at, errors.New("write a time such as 30d or 12h, or a moment such as 2030-01-31T12:00:00Z")
	case !time.Now().Before(at):
		return at, errors.New("that is in the past")
	}
	return at.UTC().Truncate(time.Second), nil
}

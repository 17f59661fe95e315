package command

import (
	"errors"
	"fmt"
	"io"
	"os"
	"slices"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/adapters/nats"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

func checkCommand(io Streams) *cobra.Command {
	var asJSON, all, envelope bool
	var may mayQuestion
	c := &cobra.Command{
		Use: "check [KIND...]", Short: "Check and explain the settings, the rules, or the envelopes of ACP",
		Long: `Read the settings and the files that they name as 'dragoman serve' would, and report
everything that is wrong at once, each with its file, line and setting; else say in one line
that all is well. Wrong is also what lets the hub start but an agent or a pack fail, such as
a missing program. What may be wrong, such as a variable that is not set here, is a warning.

With --all print each setting with its value, its default if that differs, its variable and
its description.

With --may answer whether a principal has a right, and by which line of auth.rules: give
the principal, the right, and an agent, pack:ID or nothing for the hub itself. It ends
with 0 for yes and 1 for no. Roles are those of the principal's tokens and keys in the
settings. What an agent declares is known for agents of the settings; for others name it
with --capability, or ask a running hub with --hub.

With --envelope print instead an annotated example of each kind of ACP envelope, or of
the given kinds: enough for a language model to write them.`,
		Example: `  dragoman check
  dragoman check --all --config dragoman.yaml
  dragoman check --config dragoman.yaml --may alice ask shout
  dragoman check --envelope query response error`,
		Args: func(c *cobra.Command, args []string) error {
			if envelope || may.asked {
				return nil
			}
			return cobra.NoArgs(c, args)
		},
	}
	config.AddFlags(c.Flags())
	c.Flags().BoolVar(&all, "all", false, "print all settings, if nothing is wrong with them")
	c.Flags().BoolVar(&asJSON, "json", false, "print all settings as JSON; with --envelope the examples without comments")
	c.Flags().BoolVar(&envelope, "envelope", false, "print annotated examples of ACP envelopes")
	may.addFlags(c, io)
	c.ValidArgsFunction = func(c *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case envelope:
			return fixed(envelopeKinds()...)(c, args, given)
		case may.asked:
			return may.complete(c, args, given)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
	c.RunE = func(c *cobra.Command, args []string) error {
		if envelope {
			if err := refuseFlags(c, "with --envelope", settingFlags(c)...); err != nil {
				return err
			}
			return printEnvelopes(io.Out, args, asJSON)
		}
		wrong := refuseFlags(c, "without --may", questionFlags...)
		if may.asked {
			wrong = refuseFlags(c, "with --may", "all")
		}
		if wrong != nil {
			return wrong
		}
		settings, err := config.Load(c.Flags(), os.Environ())
		if !may.asked {
			return checkSettings(io, settings, err, all, asJSON)
		}
		switch {
		case len(args) < 2 || len(args) > 3:
			return usagef("--may wants a principal, a right and a receiver, such as 'dragoman check --may alice ask shout'; without a receiver it is about the hub itself")
		case err != nil:
			return wrongSettings(err)
		}
		return may.answer(c, settings, io, args, asJSON)
	}
	return c
}

// checkSettings prints what is wrong with settings, of which err was found when they were read; else the settings if
// they are asked for, else that all is well unless there is a warning.
func checkSettings(io Streams, settings config.Config, err error, all, asJSON bool) error {
	err = errors.Join(err, service.CheckListeners(settings), service.CheckFiles(settings))
	warnings := service.Warnings(settings)
	for _, warning := range warnings {
		fmt.Fprintf(io.Err, "dragoman: warning: %s\n", warning)
	}
	if err != nil {
		return wrongSettings(err)
	}
	settings.Journal.NATSURL = nats.Redacted(settings.Journal.NATSURL)
	switch {
	case asJSON:
		return printJSON(io.Out, settings.Plain())
	case all:
		return explain(io.Out, settings)
	}
	if len(warnings) > 0 {
		return nil
	}
	line := "all is well"
	for _, part := range [][2]string{{" with ", settings.File}, {"; agents: ", settings.Agents.String()}, {"; packs: ", settings.Packs.String()}} {
		if part[1] != "" {
			line += part[0] + visible(part[1])
		}
	}
	_, err = fmt.Fprintln(io.Out, line)
	return err
}

// settingFlags returns the flags that settings are read from.
func settingFlags(c *cobra.Command) (names []string) {
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if !slices.Contains([]string{"json", "envelope", "help"}, f.Name) {
			names = append(names, f.Name)
		}
	})
	return names
}

// explain prints a table of all settings.
func explain(out io.Writer, c config.Config) error {
	usual := config.Default()
	usual.Journal.Bytes = c.DefaultJournalBytes()
	values, standard := c.Values(), usual.Values()
	t := newTable(out, "SETTING", "VALUE", "DEFAULT", "VARIABLE", "DESCRIPTION")
	for _, s := range config.All() {
		other := ""
		if standard[s.Key] != values[s.Key] {
			other = orDash(standard[s.Key])
		}
		t.row(s.Key, orDash(values[s.Key]), other, config.Variable(s.Key), s.Description)
	}
	return t.flush()
}

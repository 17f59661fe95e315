package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// The exit codes of the program.
const (
	ExitDone        = 0
	ExitFailed      = 1
	ExitUsage       = 2
	ExitTimeout     = 3
	ExitInterrupted = 130
)

// exit is an error with an exit code.
type exit struct {
	code int
	err  error
}

// Error implements error.
func (e *exit) Error() string { return e.err.Error() }

// Unwrap returns the cause.
func (e *exit) Unwrap() error { return e.err }

// usagef returns an error that ends the program with ExitUsage.
func usagef(format string, args ...any) error {
	return &exit{ExitUsage, fmt.Errorf(format, args...)}
}

// settingErrors is an error of which each line is one of its own, about one setting.
type settingErrors struct{ error }

// wrongSettings returns a usage error that is reported line by line.
func wrongSettings(err error) error { return &exit{ExitUsage, settingErrors{err}} }

// inLine returns an error as one line. Agents and libraries write several, with empty ones.
func inLine(err error) string {
	var b strings.Builder
	for line := range strings.Lines(err.Error()) {
		line = strings.TrimSpace(line)
		switch s := b.String(); {
		case line == "" || s == "":
		case strings.ContainsAny(s[len(s)-1:], ".:;,"):
			b.WriteString(" ")
		default:
			b.WriteString("; ")
		}
		b.WriteString(line)
	}
	return visible(b.String())
}

// errQuiet ends the program without another message.
var errQuiet = errors.New("already reported")

// Streams are what a command reads and writes.
type Streams struct {
	In  io.ReadCloser
	Out io.WriteCloser
	Err io.Writer
}

// Run runs one command line of the program and returns its exit code.
func Run(ctx context.Context, args []string, io Streams) int {
	root := NewRoot(io)
	root.SetArgs(args)
	root.SetIn(io.In)
	root.SetOut(io.Out)
	root.SetErr(io.Err)
	c, err := root.ExecuteContextC(ctx)
	if err == nil {
		return ExitDone
	}
	var several settingErrors
	switch {
	case errors.Is(err, errQuiet):
	case errors.As(err, &several):
		for line := range strings.SplitSeq(err.Error(), "\n") {
			if !strings.HasPrefix(line, " ") { // what is indented is to be copied
				line = "dragoman: " + line
			}
			fmt.Fprintln(io.Err, visible(line))
		}
	default:
		fmt.Fprintf(io.Err, "dragoman: %s%s\n", refusedFlag(c, err), inLine(err))
	}
	return exitCode(err)
}

// exitCode returns the exit code of an error.
func exitCode(err error) int {
	var e *exit
	var refused client.Refusal
	var malformed client.AddressError
	switch {
	case errors.As(err, &e):
		return e.code
	case errors.As(err, &malformed):
		return ExitUsage
	case errors.As(err, &refused):
		return codeOf(refused.Fault)
	}
	return ExitFailed
}

// codeOf returns the exit code of a fault.
func codeOf(f *core.Fault) int {
	switch f.Code {
	case core.CodeTimeout:
		return ExitTimeout
	case core.CodeInvalid:
		return ExitUsage
	}
	return ExitFailed
}

// NewRoot returns the command dragoman with its subcommands.
func NewRoot(io Streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "dragoman",
		Short: "A hub that interprets between AI agents",
		Long: `Dragoman is a hub that interprets between AI agents. An agent joins in the dialect that
it speaks (Coven, Parallax, ACP or native), or the hub runs it: Gemini CLI, Claude Code,
pi, any command. Each can be asked by all others and by clients, whatever dialect it
speaks.

  dragoman serve                                       # a hub
  dragoman agent --name shout -- tr a-z A-Z            # a command as an agent
  dragoman ask shout "hello"                           # HELLO`,
		SilenceErrors: true, SilenceUsage: true, Version: service.Version,
		Args: subcommand, Run: printHelp,
		PersistentPreRunE: func(c *cobra.Command, _ []string) error {
			if c.Name() == cobra.ShellCompRequestCmd || c.Name() == cobra.ShellCompNoDescRequestCmd {
				describeFlags(c.Root())
				return nil // completions say nothing
			}
			for _, line := range config.UnknownVariables(os.Environ()) {
				fmt.Fprintf(io.Err, "dragoman: warning: %s\n", visible(line))
			}
			return nil
		},
	}
	root.SetFlagErrorFunc(flagError)
	root.SetHelpCommand(helpCommand())
	addGroups(root, io)
	root.InitDefaultCompletionCmd()
	for _, c := range root.Commands() {
		if c.Args != nil && c.RunE != nil { // others only have subcommands
			c.Args = usageArgs(c.Args)
		}
		if c.Name() == "completion" { // which is cobra's own
			c.Args, c.Run = subcommand, printHelp
			for _, shell := range c.Commands() {
				shell.Args = usageArgs(shell.Args)
			}
		}
	}
	completeFlags(root)
	groupFlags(root)
	return root
}

// subcommand checks the arguments of a command that only has subcommands.
func subcommand(c *cobra.Command, args []string) error {
	if len(args) == 0 {
		return nil
	}
	return unknownCommand(c, args[0])
}

func printHelp(c *cobra.Command, _ []string) { _ = c.Help() }

// unknownCommand returns a usage error that suggests the closest subcommand.
func unknownCommand(above *cobra.Command, given string) error {
	help := "'" + above.CommandPath() + " --help'"
	if near := nearCommand(above, given); near != "" {
		return usagef("unknown command %q: did you mean '%s %s'? See %s", given, above.CommandPath(), near, help)
	}
	return usagef("unknown command %q: see %s", given, help)
}

// nearCommand returns the name of the subcommand that was probably meant, or that begins so, or "".
func nearCommand(above *cobra.Command, given string) string {
	var names []string
	for _, c := range above.Commands() {
		if c.IsAvailableCommand() {
			names = append(names, c.Name())
		}
	}
	if near := suggest.Nearest(given, names); near != "" {
		return near
	}
	for _, name := range names {
		if strings.HasPrefix(name, strings.ToLower(given)) {
			return name
		}
	}
	return ""
}

// helpCommand prints the help of a command. Unlike cobra's own it fails for an unknown one.
func helpCommand() *cobra.Command {
	return &cobra.Command{
		Use: "help [COMMAND...]", Short: "Print the help of a command",
		RunE: func(c *cobra.Command, args []string) error {
			about := c.Root()
			for _, name := range args {
				below, rest, err := about.Find([]string{name})
				if err != nil || len(rest) > 0 {
					return unknownCommand(about, name)
				}
				about = below
			}
			about.InitDefaultHelpFlag()
			return about.Help()
		},
	}
}

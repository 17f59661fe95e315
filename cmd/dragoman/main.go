package main

import (
	"context"
	"errors"
	"fmt"
	"io"
	"os"
	"runtime"
	"runtime/debug"
	"strings"

	"github.com/spf13/cobra"
)

// The exit codes of the program.
const (
	exitDone        = 0
	exitFailed      = 1
	exitUsage       = 2
	exitTimeout     = 3
	exitInterrupted = 130
)

// exit is an error with the code that the program ends with.
type exit struct {
	code int
	err  error
}

// Error implements error.
func (e *exit) Error() string { return e.err.Error() }

// Unwrap returns what went wrong.
func (e *exit) Unwrap() error { return e.err }

// errQuiet says that what went wrong has been told already.
var errQuiet = errors.New("told already")

// streams are what a command reads and writes.
type streams struct {
	in  io.ReadCloser
	out io.WriteCloser
	err io.Writer
}

func main() {
	os.Exit(run(context.Background(), os.Args[1:], streams{os.Stdin, os.Stdout, os.Stderr}))
}

// run is the program: it runs one command line and returns its exit code.
func run(ctx context.Context, args []string, io streams) int {
	root := newRoot(io)
	root.SetArgs(args)
	root.SetIn(io.in)
	root.SetOut(io.out)
	root.SetErr(io.err)
	err := root.ExecuteContext(ctx)
	var e *exit
	switch {
	case err == nil:
		return exitDone
	case !errors.As(err, &e):
		e = &exit{exitFailed, err}
	}
	if !errors.Is(err, errQuiet) {
		fmt.Fprintf(io.err, "dragoman: %s\n", strings.ReplaceAll(err.Error(), "\n", "; "))
	}
	return e.code
}

func newRoot(io streams) *cobra.Command {
	root := &cobra.Command{
		Use:   "dragoman",
		Short: "A hub that interprets between AI agents",
		Long: `Dragoman is a hub that interprets between AI agents. An agent joins in the dialect
it speaks (Coven, Parallax, pi-server or ACP) and can then ask, and be asked by, all
the others.

  dragoman serve                                       # a hub
  dragoman agent --dialect parallax --name shout -- tr a-z A-Z
  dragoman ask shout "hello"                           # HELLO`,
		SilenceErrors: true, SilenceUsage: true, Version: version,
		Args: func(c *cobra.Command, args []string) error {
			if len(args) == 0 {
				return nil
			}
			hint := "see 'dragoman --help'"
			if near := c.SuggestionsFor(args[0]); len(near) > 0 {
				hint = "did you mean 'dragoman " + near[0] + "'?"
			}
			return &exit{exitUsage, fmt.Errorf("unknown command %q: %s", args[0], hint)}
		},
		Run:                        func(c *cobra.Command, _ []string) { _ = c.Help() },
		SuggestionsMinimumDistance: 2,
		PersistentPreRunE: func(*cobra.Command, []string) error {
			if err := checkVariables(environ()); err != nil {
				return &exit{exitUsage, err}
			}
			return nil
		},
		CompletionOptions: cobra.CompletionOptions{HiddenDefaultCmd: true},
	}
	root.SetVersionTemplate("dragoman {{.Version}}\n")
	root.SetFlagErrorFunc(func(c *cobra.Command, err error) error {
		return &exit{exitUsage, fmt.Errorf("%w; see '%s --help'", err, c.CommandPath())}
	})
	root.AddCommand(
		serveCommand(io), demoCommand(io), agentsCommand(io), askCommand(io), delegateCommand(io), cancelCommand(io),
		injectCommand(io), approvalsCommand(io), approveCommand(io), denyCommand(io), agentCommand(io),
		stdioCommand(io), tailCommand(io), usageCommand(io), benchCommand(io), checkCommand(io), versionCommand(io),
	)
	for _, c := range root.Commands() {
		if c.Args != nil {
			c.Args = usageArgs(c.Args)
		}
	}
	return root
}

// usageArgs makes a wrong number of arguments a usage error that says what to write.
func usageArgs(check cobra.PositionalArgs) cobra.PositionalArgs {
	return func(c *cobra.Command, args []string) error {
		if check(c, args) == nil {
			return nil
		}
		wrong := "something is missing"
		for n := range args {
			if check(c, args[:n]) == nil {
				wrong = fmt.Sprintf("%q is too much", strings.Join(args[n:], " "))
			}
		}
		return &exit{exitUsage, fmt.Errorf("%s: write '%s'; see '%s --help'", wrong, c.UseLine(), c.CommandPath())}
	}
}

// version is the version of the program, from the module that it was built of.
var version = func() string {
	if b, ok := debug.ReadBuildInfo(); ok && b.Main.Version != "" && b.Main.Version != "(devel)" {
		return b.Main.Version
	}
	return "dev"
}()

func versionCommand(io streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{Use: "version", Short: "Print the version", Args: cobra.NoArgs}
	c.Flags().BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(*cobra.Command, []string) error {
		if asJSON {
			return printJSON(io.out, map[string]string{"version": version, "go": runtime.Version()})
		}
		_, err := fmt.Fprintf(io.out, "dragoman %s\n", version)
		return err
	}
	return c
}

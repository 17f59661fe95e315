package command

import (
	"context"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// completeTime is how long a completion may take: somebody waits for it at a prompt.
const completeTime = time.Second

// completeFlags makes the completions of every flag of a command and of those below it that have none. The
// placeholder in the help of a flag says what its value is: a file, a directory, or something that no shell knows.
func completeFlags(c *cobra.Command) {
	for _, below := range c.Commands() {
		completeFlags(below)
	}
	if c.ValidArgsFunction == nil && !takesCommand(c) {
		c.ValidArgsFunction = cobra.NoFileCompletions
	}
	settings := map[string][]string{}
	if c.Flags().Lookup("config") != nil {
		for _, s := range config.All() {
			settings[s.Flag] = s.Choices()
		}
	}
	c.LocalNonPersistentFlags().VisitAll(func(f *pflag.Flag) {
		if _, has := c.GetFlagCompletionFunc(f.Name); !has {
			_ = c.RegisterFlagCompletionFunc(f.Name, completionOf(f, settings[f.Name])) // the flag exists and has none
		}
	})
}

// describeFlags takes the marks of placeholders out of the usages of all flags, which a shell shows beside them. Help
// needs the marks.
func describeFlags(c *cobra.Command) {
	for _, below := range c.Commands() {
		describeFlags(below)
	}
	c.LocalFlags().VisitAll(func(f *pflag.Flag) { _, f.Usage = pflag.UnquoteUsage(f) })
}

// takesCommand reports whether the arguments of a command are a command line.
func takesCommand(c *cobra.Command) bool { return strings.Contains(c.Use, " COMMAND ") }

// completionOf returns the completion of a flag by its choices or its placeholder.
func completionOf(f *pflag.Flag, choices []string) cobra.CompletionFunc {
	what, _ := pflag.UnquoteUsage(f)
	switch {
	case f.Value.Type() == "bool":
		choices = []string{"true", "false"}
	case f.Name == "config":
		return cobra.FixedCompletions([]string{"yaml", "yml"}, cobra.ShellCompDirectiveFilterFileExt)
	case what == "directory":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveFilterDirs)
	case what == "file", what == "path":
		return cobra.FixedCompletions(nil, cobra.ShellCompDirectiveDefault)
	}
	return cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
}

// completeFlag sets the completion of a flag that exists.
func completeFlag(c *cobra.Command, name string, of cobra.CompletionFunc) {
	if err := c.RegisterFlagCompletionFunc(name, of); err != nil {
		panic(err) // every test makes the commands
	}
}

// fixed completes with choices.
func fixed(choices ...string) cobra.CompletionFunc {
	return cobra.FixedCompletions(choices, cobra.ShellCompDirectiveNoFileComp)
}

// inOrder completes the arguments one after the other, and none after the last.
func inOrder(of ...cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
		if len(args) >= len(of) {
			return nil, cobra.ShellCompDirectiveNoFileComp
		}
		return of[len(args)](c, args, given)
	}
}

// choiceOf is something that completes a word, and what a shell shows beside it.
type choiceOf struct{ word, about string }

// fromHub completes with what list finds on the hub, in its order; with nothing, and without a word, if the hub does
// not answer soon. A shell does not show what is invisible in a word, so such words are left out.
func fromHub(to *hubFlags, list func(ctx context.Context, hub *client.Client, args []string) ([]choiceOf, error)) cobra.CompletionFunc {
	return func(_ *cobra.Command, args []string, given string) (all []cobra.Completion, _ cobra.ShellCompDirective) {
		ctx, cancel := context.WithTimeout(context.Background(), completeTime) // completions have no context
		defer cancel()
		found, _ := list(ctx, to.client(), args)
		seen := map[string]bool{}
		for _, one := range found {
			if one.word == "" || seen[one.word] || visible(one.word) != one.word || !strings.HasPrefix(one.word, given) {
				continue
			}
			seen[one.word] = true
			all = append(all, cobra.CompletionWithDesc(one.word, brief(one.about)))
		}
		return all, cobra.ShellCompDirectiveNoFileComp | cobra.ShellCompDirectiveKeepOrder
	}
}

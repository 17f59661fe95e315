package command

import (
	"os"
	"path/filepath"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// withContent completes the first argument as first does, and the word after it as a file behind an @.
func withContent(first cobra.CompletionFunc) cobra.CompletionFunc {
	return func(c *cobra.Command, args []string, given string) ([]cobra.Completion, cobra.ShellCompDirective) {
		switch {
		case len(args) == 0:
			return first(c, args, given)
		case len(args) == 2 && args[1] == "@": // bash takes the @ for a word of its own
			return nil, cobra.ShellCompDirectiveDefault
		case len(args) == 1 && strings.HasPrefix(given, "@"):
			return completeAtFile(c, args, given)
		}
		return nil, cobra.ShellCompDirectiveNoFileComp
	}
}

// completeAtFile completes @FILE. A directory ends with a slash, and no blank follows it.
func completeAtFile(_ *cobra.Command, _ []string, given string) (all []cobra.Completion, how cobra.ShellCompDirective) {
	how = cobra.ShellCompDirectiveNoFileComp
	name, at := strings.CutPrefix(given, "@")
	if !at {
		return nil, how
	}
	before, begin := filepath.Split(name)
	dir, err := config.ExpandHome(before)
	if err != nil {
		return nil, how
	}
	if dir == "" {
		dir = "."
	}
	entries, _ := os.ReadDir(dir) // nothing completes a directory that cannot be read
	for _, e := range entries {
		word := e.Name()
		if !strings.HasPrefix(word, begin) || strings.HasPrefix(word, ".") && begin == "" || visible(word) != word {
			continue
		}
		if info, err := os.Stat(filepath.Join(dir, word)); err == nil && info.IsDir() {
			word += "/"
			how |= cobra.ShellCompDirectiveNoSpace
		}
		all = append(all, "@"+before+word)
	}
	return all, how
}

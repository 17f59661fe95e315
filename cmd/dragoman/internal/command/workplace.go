package command

import (
	"encoding/json"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
)

// workplace formats where an agent works, from its metadata: backend, workspaces, directory
// and the state of git. Missing or malformed values are a dash.
func workplace(c core.Card) []string {
	var backend, directory string
	var workspaces []string
	var git struct {
		Branch, Commit string
		Dirty          bool
		Ahead, Behind  int
	}
	for name, into := range map[string]any{"backend": &backend, "workspaces": &workspaces, "working_directory": &directory, "git": &git} {
		_ = json.Unmarshal(c.Metadata[name], into) // --json shows malformed values
	}
	state := git.Branch
	if git.Commit != "" {
		state += "@" + git.Commit[:min(len(git.Commit), 7)]
	}
	if git.Dirty {
		state += "*"
	}
	if git.Ahead > 0 {
		state += fmt.Sprintf(" +%d", git.Ahead)
	}
	if git.Behind > 0 {
		state += fmt.Sprintf(" -%d", git.Behind)
	}
	return []string{orDash(backend), orDash(strings.Join(workspaces, ",")), orDash(directory), orDash(state)}
}

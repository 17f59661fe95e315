package supervisor

import (
	"os"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/preset"
)

// CheckAgent is [Check] for an agent, and what is known of its program beside.
func CheckAgent(a config.Agent) []Finding {
	all := Check(a.Process, a.Remote)
	known, is := preset.Of(a.Command)
	if !is || a.Dialect != config.SpeaksEditor {
		return all
	}
	if toolsOff := a.Tools != nil && !*a.Tools; known.Name == "gemini" && !toolsOff && !trusts(a.Env) {
		all = append(all, Finding{"env", "Gemini CLI leaves out the tools of the hub, without a word, in a folder that it does not trust: add " + preset.TrustWorkspace + "=true, unless the folder is trusted", true})
	}
	if mode := known.Mode(); mode != "" && a.Mode == "" {
		all = append(all, Finding{"mode", known.Program() + " starts in a mode in which it may change files without asking: add mode: " + mode + ", unless its own settings say otherwise", true})
	}
	return all
}

// trusts reports whether the variables of a process let Gemini CLI trust its directory.
func trusts(env []string) bool {
	for _, v := range env {
		name, value, sets := strings.Cut(v, "=")
		if !sets {
			value = os.Getenv(name)
		}
		if name == preset.TrustWorkspace {
			return value == "true"
		}
	}
	return false
}

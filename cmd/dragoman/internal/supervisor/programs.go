package supervisor

import (
	"os"
	"path"
	"path/filepath"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// trustWorkspace is the variable by which Gemini CLI trusts its working directory.
const trustWorkspace = "GEMINI_CLI_TRUST_WORKSPACE"

// unasked are the editor agents that start in a mode in which they change files without asking, by the
// names of their programs and packages, each with a mode in which it asks.
var unasked = map[string]string{"claude-agent-acp": "default", "codex-acp": "read-only", "qwen": "default"}

// CheckAgent is [Check] for an agent, and what is known of its program beside.
func CheckAgent(a config.Agent) []Finding {
	all := Check(a.Process, a.Remote)
	if a.Dialect != config.SpeaksEditor {
		return all
	}
	if toolsOff := a.Tools != nil && !*a.Tools; runs(a.Command, "gemini", "gemini-cli") && !toolsOff && !trusts(a.Env) {
		all = append(all, Finding{"env", "Gemini CLI leaves out the tools of the hub, without a word, in a folder that it does not trust: add " + trustWorkspace + "=true, unless the folder is trusted", true})
	}
	for name, mode := range unasked {
		if runs(a.Command, name, name+"-code") && !slices.ContainsFunc(a.Options, func(o string) bool { return strings.HasPrefix(o, "mode=") }) {
			all = append(all, Finding{"options", name + " starts in a mode in which it may change files without asking: add mode=" + mode + ", unless its own settings say otherwise", true})
		}
	}
	return all
}

// runs reports whether a command is one of these programs: by its name, or by that of the package in
// which npm has put it.
func runs(command []string, names ...string) bool {
	for _, word := range command {
		for part := range strings.SplitSeq(filepath.ToSlash(word), "/") {
			if slices.Contains(names, strings.TrimSuffix(part, path.Ext(part))) {
				return true
			}
		}
	}
	return false
}

// trusts reports whether the variables of a process let Gemini CLI trust its directory.
func trusts(env []string) bool {
	for _, v := range env {
		name, value, sets := strings.Cut(v, "=")
		if !sets {
			value = os.Getenv(name)
		}
		if name == trustWorkspace {
			return value == "true"
		}
	}
	return false
}

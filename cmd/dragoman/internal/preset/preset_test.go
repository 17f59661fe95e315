package preset_test

import (
	"regexp"
	"slices"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/preset"
)

func TestEachAgentCanBeAddedAndIsPinned(t *testing.T) {
	pinned := regexp.MustCompile(`^(@[a-z-]+/)?[a-z-]+@[0-9]+\.[0-9]+\.[0-9]+$`)
	for _, a := range preset.Agents {
		if err := a.Entry(nil).Check(); err != nil {
			t.Errorf("%s: got %v, want valid settings", a.Name, err)
		}
		if a.Package == "" == (a.Home == "") || a.Package != "" && !pinned.MatchString(a.Package) {
			t.Errorf("%s: got the package %q and %q, want a version, or where else it is from", a.Name, a.Package, a.Home)
		}
		if got, is := preset.Of(a.Entry(nil).Command); !is || got.Name != a.Name {
			t.Errorf("%s: got its command for %q", a.Name, got.Name)
		}
	}
}

func TestAnAgentIsKnownByItsProgramOrItsPackage(t *testing.T) {
	for want, commands := range map[string][][]string{
		"gemini": {{"/usr/bin/gemini", "--acp"}, {"node", "/x/node_modules/@google/gemini-cli/bundle/gemini.js"}, {"npx", "-y", "@google/gemini-cli@latest", "--acp"}},
		"claude": {{"/home/pi/node_modules/.bin/claude-agent-acp"}, {`claude-agent-acp.cmd`}},
		"":       {{"sh", "-c", "true"}, {"gemini2"}, {"/home/pi/bin/other"}},
	} {
		for _, command := range commands {
			if got, is := preset.Of(command); got.Name != want || is != (want != "") {
				t.Errorf("%q: got %q, want %q", command, got.Name, want)
			}
		}
	}
}

func TestOnlyTheKeysThatAreSetArePassedOn(t *testing.T) {
	codex, _ := preset.Named("codex")
	for _, c := range []struct{ environ, want []string }{
		{nil, []string{"NO_BROWSER=1"}},
		{[]string{"OPENAI_API_KEY=x", "OTHER=y"}, []string{"NO_BROWSER=1", "OPENAI_API_KEY"}},
		{[]string{"OPENAI_API_KEY=", "CODEX_HOME=/x"}, []string{"NO_BROWSER=1", "CODEX_HOME"}},
	} {
		got := codex.Entry(c.environ)
		if d := cmp.Diff(c.want, got.Env); d != "" || !slices.Equal(got.Capabilities, []string{"code"}) || got.Dialect != config.SpeaksEditor {
			t.Errorf("%q: got %+v (-want +got)\n%s", c.environ, got, d)
		}
	}
}

package config_test

import (
	"fmt"
	"os"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
)

// The errors of all settings are reported together, in the order of the file.
func TestEverythingThatIsWrongIsReportedAtOnce(t *testing.T) {
	_, err := configOf(t, `log_level: loud
stop_timeout: 90
agents:
  - name: shout
    dialect: text
    command: [tr, a-z, A-Z]
  - name: gemini
    dialect: editer
    comand: [gemini]
  - {name: shout, dialect: native, command: "./agent.py -v",
     env: [OK, "a b"]}
packs:
  files: {command: [npx]}
limits:
  hops: many
`, []string{"DRAGOMAN_PI_BASH=perhaps"}, "--grpc-addr=x", "--log-level=quiet")
	if err == nil {
		t.Fatal("got no error, want one")
	}
	var got []string
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, after, found := strings.Cut(line, "/dragoman.yaml")
		if !found {
			after = line
		}
		got = append(got, after)
	}
	want := []string{
		`:1: log_level: want debug, info, warn or error, got "loud"`,
		":2: stop_timeout: want a time such as 30s, 1h30m, 7d or 2w of at least 0s, got 90: write it with its unit, such as 90s",
		`:8: agents[1].dialect: want text, editor, pi-rpc, native or a2a, got "editer": did you mean editor?`,
		":9: agents[1].comand: unknown: did you mean command?",
		`:10: agents[2].command: want a list of texts, got "./agent.py -v": write [./agent.py, -v]`,
		`:10: agents[2].name: "shout" is the name of agents[0] too: choose another`,
		`:11: agents[2].env[1]: want NAME or NAME=value, got "a b"`,
		":12: packs: want a list of objects, got an object: write - name: files instead of files:, and its members below name",
		`:15: limits.hops: want a whole number of at least 1, got "many"`,
		`DRAGOMAN_PI_BASH: want true or false, got "perhaps"`,
		`--log-level: want debug, info, warn or error, got "quiet"`,
	}
	if diff := cmp.Diff(want, got); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

// Kubernetes sets variables for each Service beside a pod, whatever their names are taken for.
func TestUnknownVariablesAreNamedAndNoProblem(t *testing.T) {
	environ := []string{
		"PATH=/bin", "DRAGOMAN_HUB=x", "DRAGOMAN_LIMITS_HOPS=3", "DRAGOMAN_LIMIT_HOPS=3", "DRAGOMAN_FOO=1",
		"DRAGOMAN_SERVICE_HOST=10.0.0.1", "DRAGOMAN_SERVICE_PORT=8080", "DRAGOMAN_SERVICE_PORT_HTTP=8080", "DRAGOMAN_PORT=tcp://10.0.0.1:8080", "DRAGOMAN_PORT_8080_TCP=tcp://10.0.0.1:8080",
		"DRAGOMAN_PORT_8080_TCP_ADDR=10.0.0.1", "DRAGOMAN_PORT_8080_TCP_PORT=8080", "DRAGOMAN_PORT_8080_TCP_PROTO=tcp", "DRAGOMAN_HUBS_SERVICE_HOST=None",
	}
	if _, err := configOf(t, "", environ); err != nil {
		t.Errorf("got %v, want the settings loaded", err)
	}
	want := []string{
		"unknown variable DRAGOMAN_LIMIT_HOPS: did you mean DRAGOMAN_LIMITS_HOPS?",
		"unknown variable DRAGOMAN_FOO: 'dragoman check --all' lists all there are",
		"DRAGOMAN_SERVICE_HOST and its kin are of Kubernetes, for a Service whose name begins with dragoman, and not read: enableServiceLinks: false in the pod does without them",
	}
	if diff := cmp.Diff(want, config.UnknownVariables(environ)); diff != "" {
		t.Errorf("(-want +got):\n%s", diff)
	}
}

func TestOnlySoManyProblemsAreReported(t *testing.T) {
	var yaml strings.Builder
	for i := range 60 {
		fmt.Fprintf(&yaml, "nonsense%d: 1\n", i)
	}
	_, err := configOf(t, yaml.String(), nil)
	if err == nil {
		t.Fatal("got no error, want one")
	}
	lines := strings.Split(err.Error(), "\n")
	if last := lines[len(lines)-1]; len(lines) != 51 || !strings.Contains(last, "and 10 more problems like these") {
		t.Errorf("got %d lines, the last %q, want 51 and how many more there are", len(lines), last)
	}
}

// The errors that the documentation shows are those of this file.
func TestTheDocumentedErrorsAreThoseOfTheProgram(t *testing.T) {
	page, err := os.ReadFile("../../../../docs/operations.md")
	if err != nil {
		t.Fatal(err)
	}
	_, err = configOf(t, `
agents:
  - {name: gemini, dialect: editro, command: [gemini, --acp]}
packs:
  - name: files
    command: [npx, -y, "@modelcontextprotocol/server-filesystem", .]
    cwd: .
    concurrent: 4
    timeout: 90
`, nil)
	if err == nil {
		t.Fatal("got no error, want two")
	}
	for line := range strings.SplitSeq(err.Error(), "\n") {
		_, after, _ := strings.Cut(line, "/dragoman.yaml")
		if want := "\ndragoman: dragoman.yaml" + after + "\n"; !strings.Contains(string(page), want) {
			t.Errorf("docs/operations.md: got no line%swant it as the program writes it", want)
		}
	}
}

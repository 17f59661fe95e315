package command_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestTheHelpIsInGroups(t *testing.T) {
	_, help, _ := run(t, "--help")
	at := 0
	for _, head := range []string{"Talk:", "  ask ", "Decide:", "  approve ", "Watch:", "  tail ", "Agents:", "  agent ", "Run a hub:", "  serve ", "Develop:", "  demo "} {
		n := strings.Index(help[at:], "\n"+head)
		if n < 0 {
			t.Fatalf("got\n%s\nwant %q after the ones before", help, head)
		}
		at += n
	}
	for _, c := range command.NewRoot(command.Streams{}).Commands() {
		if c.IsAvailableCommand() && c.GroupID == "" && c.Name() != "completion" && c.Name() != "help" {
			t.Errorf("dragoman %s: got no group, want one", c.Name())
		}
	}
}

func TestTheHelpOfACommandHasTheConnectionFlagsApart(t *testing.T) {
	for _, args := range [][]string{{"ask", "--help"}, {"help", "agents", "restart"}} {
		_, help, _ := run(t, args...)
		own, connection, found := strings.Cut(help, "\nConnection:\n")
		for _, flag := range []string{"hub", "context", "token", "ca", "cert", "key", "insecure"} {
			if line := "\n      --" + flag; !found || strings.Contains(own, line) || !strings.Contains("\n"+connection, line) {
				t.Errorf("%q: got\n%s\nwant --%s with the connection alone", args, help, flag)
			}
		}
		if !strings.Contains(own, "--json") || strings.Contains(connection, "--json") {
			t.Errorf("%q: got\n%s\nwant --json with its own flags", args, help)
		}
	}
	if _, help, _ := run(t, "token", "new", "--help"); strings.Contains(help, "Connection:") {
		t.Errorf("got\n%s\nwant no connection of a command without", help)
	}
}

func TestTheNearestCommandIsSuggested(t *testing.T) {
	if _, _, stderr := run(t, "tsks"); !strings.Contains(stderr, "did you mean 'dragoman tasks'?") {
		t.Errorf("tsks: got %q, want tasks", stderr)
	}
}

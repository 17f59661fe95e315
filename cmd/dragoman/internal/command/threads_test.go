package command_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestTheNextPageOfASearchIsACommand(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/tasks":   `{"tasks":[{"id":"c","found":"x"}],"before":"c"}`,
		"GET /v1/threads": `{"threads":[{"id":"t","title":"x","state":"done","task":"c","agents":[]}],"before":"c"}`,
	})
	again := strings.Replace(hub, "=", " ", 1)
	for want, args := range map[string][]string{
		`'dragoman search "a  b" c ` + again + ` --limit 1 --before c' lists them`:      {"search", "a  b", "c"},
		`'dragoman threads ` + again + ` --limit 1 --state done --before c' lists them`: {"threads", "--state=done"},
	} {
		if code, _, stderr := run(t, append(args, hub, "--limit=1")...); code != command.ExitDone || !strings.Contains(stderr, want) {
			t.Errorf("%q: got %d and %q, want %q", args, code, stderr, want)
		}
	}
	for want, args := range map[string][]string{
		"use one of queued": {"threads", "--state=over"}, "want 0 (all) or more": {"search", "x", "--limit=-1"}, "TEXT is empty": {"search", " "},
	} {
		if code, _, stderr := run(t, append(args, hub)...); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%q: got %d and %q, want %d and %q", args, code, stderr, command.ExitUsage, want)
		}
	}
}

package command_test

import (
	"strings"
	"testing"
)

func TestTheHintForMoreTasksKeepsTheFlags(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks": `{"tasks":[{"id":"c"},{"id":"b"}],"before":"b"}`})
	_, _, stderr := run(t, "tasks", hub, "--state", "failed", "--agent", "a b", "--limit", "2", "--before", "d", "--token", "secret")
	want := `'dragoman tasks --agent "a b" ` + strings.Replace(hub, "=", " ", 1) + ` --limit 2 --state failed --before b' lists them`
	if !strings.Contains(stderr, want) || strings.Contains(stderr, "secret") {
		t.Errorf("got %q, want %q and no token", stderr, want)
	}
}

func TestTheReadersOfATaskAreAnObjectInJSON(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/tasks/t/readers": `{"readers":[{"seq":3}]}`})
	if _, out, stderr := run(t, "tasks", "t", "--readers", "--json", hub); !strings.HasPrefix(out, "{\n  \"readers\": [\n") {
		t.Errorf("got %q and %q, want an object with the readers", out, stderr)
	}
}

package command_test

import (
	"strings"
	"testing"
)

func TestAnIDIsQuotedAsAShellNeedsIt(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/questions": `{"questions":[{"id":"q","agent":"a","text":"?","options":[{"label":"shout"},{"label":"family.calendar"},{"label":"größe"},{"label":"a b"},{"label":"a\"b"}]}]}`,
	})
	if _, out, stderr := run(t, "questions", hub); !strings.Contains(out, `  shout, family.calendar, größe, "a b", "a\"b"`) {
		t.Errorf("got %s and %q, want the labels quoted where a shell needs it", out, stderr)
	}
}

func TestJSONOutputDoesNotEscapeHTML(t *testing.T) {
	hub := fakeHub(t, map[string]string{"GET /v1/agents/a": `{"input":"<a> & \"b\""}`})
	_, got, _ := run(t, "agents", "a", "--json", hub)
	if want := "{\n  \"input\": \"<a> & \\\"b\\\"\"\n}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

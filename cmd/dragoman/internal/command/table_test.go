package command_test

import (
	"strings"
	"testing"
)

func TestAnIDIsQuotedAsAShellNeedsIt(t *testing.T) {
	hub := fakeHub(t, map[string]string{
		"GET /v1/questions": `{"questions":[{"id":"q","agent":"a","text":"?","options":[{"label":"shout"},{"label":"family.calendar"},{"label":"größe"},{"label":"a b"},{"label":"a\"b"}]},
			{"id":"long","agent":"a","question":"Which?\nOf two.","options":[{"label":"red","description":"like a rose"},{"label":"\u202eblue"}]}]}`,
	})
	if code, out, stderr := run(t, "questions", "none", hub); code != 1 || !strings.Contains(stderr, "dragoman questions") {
		t.Errorf("a question that is not there: got %d, %s and %s, want it said", code, out, stderr)
	}
	if _, out, stderr := run(t, "questions", "long", hub); out != "a asks:\n\nWhich?\nOf two.\n- red: like a rose\n- \\u202eblue\n\nTo answer within 0s: dragoman answer "+strings.Replace(hub, "=", " ", 1)+" long OPTION\n" {
		t.Errorf("one question: got %q and %s, want it whole", out, stderr)
	}
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

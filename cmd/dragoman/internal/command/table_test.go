package command

import (
	"strings"
	"testing"
)

func TestAnIDIsShownAsAShellTakesIt(t *testing.T) {
	for id, want := range map[string]string{"shout": "shout", "family.calendar": "family.calendar", "größe": "größe", "a b": `"a b"`, `a"b`: `"a\"b"`} {
		if got := quoted(id); got != want {
			t.Errorf("got %s of %s, want %s", got, id, want)
		}
	}
}

func TestJSONForAPersonHasItsCharactersAsTheyAre(t *testing.T) {
	var out strings.Builder
	if err := printJSON(&out, map[string]string{"input": `<a> & "b"`}); err != nil {
		t.Fatal(err)
	}
	if got, want := out.String(), "{\n  \"input\": \"<a> & \\\"b\\\"\"\n}\n"; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
}

package conversation_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
)

func TestTheInputOfAToolIsAnObject(t *testing.T) {
	for input, want := range map[string]string{
		"":                     "{}",
		" \f\u00a0":            "{}",
		` {"path": "x"} `:      `{"path": "x"}`,
		"{\n\"path\":\r\n1\n}": `{"path":1}`,
		"[1]":                  `{"input":[1]}`,
		"7\f":                  `{"input":"7\u000c"}`, // a form feed is not JSON
		"\u00a0{}":             "{\"input\":\"\u00a0{}\"}",
		`{"a":1,"a":2}`:        `{"input":"{\"a\":1,\"a\":2}"}`,
	} {
		if got := string(conversation.ToolArguments(input)); got != want {
			t.Errorf("%q: got %s, want %s", input, got, want)
		}
	}
}

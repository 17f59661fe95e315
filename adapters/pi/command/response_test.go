package command_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

func TestResponsesEchoTheIDAndTheType(t *testing.T) {
	tests := []struct{ frame, want string }{
		{`{"type":5,"id":"q"}`, `{"id":"q","type":"response","command":5,"success":false,"error":"Server is shutting down"}`},
		{`{"type":"get_state","id":{"a":1}}`, `{"id":{"a":1},"type":"response","command":"get_state","success":false,"error":"Server is shutting down"}`},
		{`{}`, `{"type":"response","command":"unknown","success":false,"error":"Server is shutting down"}`},
		{`"text"`, `{"type":"response","command":"unknown","success":false,"error":"Server is shutting down"}`},
	}
	for _, tt := range tests {
		e, c := newEngine(t, &host{}, command.Options{})
		e.Drain()
		if got := submit(t, e, c, tt.frame); got != tt.want {
			t.Errorf("response to %s:\n got %s\nwant %s", tt.frame, got, tt.want)
		}
	}
}

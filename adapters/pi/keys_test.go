package pi_test

import (
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/pi"
)

func TestAKeyInAnotherCaseIsRefusedBeforeAdmission(t *testing.T) {
	_, s := newServer(t, pi.Options{})
	for _, tt := range []struct {
		transport   pi.Transport
		frame, want string
	}{
		{
			pi.WebSocket, `{"id":"x","type":"create_session","SessionId":"s"}`,
			`{"id":"x","type":"response","command":"create_session","success":false,"error":"Validation failed: SessionId: Unknown key, did you mean 'sessionId'?"}`,
		},
		{
			pi.Stdio, `{"id":"x","Type":"list_sessions"}`,
			`{"type":"response","command":"unknown","success":false,"error":"Invalid JSON: Type: Unknown key, did you mean 'type'?"}`,
		},
	} {
		c := dial(t, s, pi.ConnOptions{Transport: tt.transport})
		c.send(tt.frame)
		if f := c.until(`"type":"response"`); string(f.Raw) != tt.want {
			t.Errorf("%s:\n got %s\nwant %s", tt.frame, f.Raw, tt.want)
		}
		if got := c.ok(`{"type":"list_sessions"}`); string(got.Data) != `{"sessions":[]}` {
			t.Errorf("%s: got sessions %s, want none", tt.frame, got.Data)
		}
		if got := c.count(`"type":"command_accepted"`); got != 1 {
			t.Errorf("%s: got %d admitted commands, want only the list", tt.frame, got)
		}
		c.Close()
	}
}

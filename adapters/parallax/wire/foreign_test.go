package wire_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/parallax/wire"
)

func TestUnknownMembersAreKeptVerbatim(t *testing.T) {
	m, err := wire.Decode([]byte(`{"type":"heartbeat","kind":"x","big":12345678901234567890,"payload":{}}`))
	if err != nil {
		t.Fatal(err)
	}
	if got, want := string(m.Foreign(json.RawMessage(`{"n":1}`)).JSON), `{"big":12345678901234567890,"kind":"x","payload":{"n":1}}`; got != want {
		t.Errorf("got %s, want %s", got, want)
	}
	if got := m.Foreign(nil).JSON; string(got) != `{"big":12345678901234567890,"kind":"x"}` {
		t.Errorf("got %s, want the members around the payload", got)
	}
}

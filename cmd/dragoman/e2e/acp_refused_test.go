package e2e

import (
	"strings"
	"testing"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
)

func TestATooLargeACPAnswerEndsItsTask(t *testing.T) {
	h := newTestHub(t, nil)
	fam, err := openWebSocket(t, h.service.Addresses().HTTP, "/ws/acp?agent_id=fam", nil)
	if err != nil {
		t.Fatal(err)
	}
	fam.roundTrip(`{"v":1,"id":"c","kind":"capabilities","payload":{}}`, `"discover"`)
	fam.roundTrip(`{"v":1,"id":"p","kind":"ping","payload":{}}`, `"pong"`)
	kit, err := openWebSocket(t, h.service.Addresses().HTTP, "/ws/acp?agent_id=kit", nil)
	if err != nil {
		t.Fatal(err)
	}
	kit.roundTrip(`{"v":1,"id":"h","kind":"hello","payload":{"protocol_versions":[1]}}`, `"selected_version"`)
	if err := kit.conn.Send(t.Context(), []byte(`{"v":1,"id":"q1","to":"fam","kind":"query","payload":{"question":"?"}}`)); err != nil {
		t.Fatal(err)
	}
	big := `{"v":1,"id":"r1","from":"fam","kind":"response","ref":"q1","payload":{"summary":"` + strings.Repeat("x", acpwire.DefaultMaxEnvelopeBytes) + `"}}`
	if _, err := fam.conn.Receive(t.Context()); err != nil {
		t.Fatal(err)
	}
	if got := fam.roundTrip(big, `"error"`); !strings.Contains(got, `"too_large"`) || !strings.Contains(got, `"ref":"r1"`) {
		t.Errorf("the agent: got %s, want too_large about r1", got)
	}
	got := kit.roundTrip(`{"v":1,"id":"p1","kind":"ping","payload":{}}`, `"q1"`)
	if !strings.Contains(got, `"too_large"`) || !strings.Contains(got, "the answer of agent fam was refused") {
		t.Errorf("the requester: got %s, want that the answer was refused as too large", got)
	}
}

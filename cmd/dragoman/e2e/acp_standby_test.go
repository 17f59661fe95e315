package e2e

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/google/uuid"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/roster"
)

// quietPeer is an ACP peer on a WebSocket that never sends its capabilities. Its id is quiet.
type quietPeer struct {
	t    *testing.T
	conn link.Conn[[]byte, []byte]
}

func connectQuietPeer(t *testing.T, h *testHub) quietPeer {
	t.Helper()
	p := quietPeer{t, dialFrames(t, h.service.Addresses().HTTP, "/ws/acp", client.MaxACPBytes)}
	t.Cleanup(func() { p.conn.Close(link.Reason{Cause: link.Normal}) })
	p.say(acpwire.Envelope{Kind: acpwire.KindPing})
	p.hear(acpwire.KindPong)
	return p
}

func (p quietPeer) say(e acpwire.Envelope) {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), watchdog)
	defer cancel()
	e.ID, e.From = uuid.NewString(), "quiet"
	if err := p.conn.Send(ctx, e.Encode()); err != nil {
		p.t.Fatal(err)
	}
}

// hear skips other frames, such as the hub's discover.
func (p quietPeer) hear(kind acpwire.Kind) acpwire.Envelope {
	p.t.Helper()
	ctx, cancel := context.WithTimeout(p.t.Context(), watchdog)
	defer cancel()
	for {
		raw, err := p.conn.Receive(ctx)
		if err != nil {
			p.t.Fatal(err)
		}
		e, err := acpwire.Decode(raw, client.MaxACPBytes)
		if err != nil {
			p.t.Fatal(err)
		}
		if e.Kind == kind {
			return e
		}
	}
}

// answer answers the next query.
func (p quietPeer) answer(summary string) {
	p.t.Helper()
	query := p.hear(acpwire.KindQuery)
	p.say(acpwire.Envelope{Kind: acpwire.KindResponse, Ref: query.ID, Payload: plainJSON(acpwire.Response{Data: plainJSON(nil), Summary: summary})})
}

// A peer on a WebSocket that never sends its capabilities can be asked through REST, by its id and
// its hex alias, and is listed as an agent from then on.
func TestAnACPPeerWithoutCapabilitiesIsAskedByItsID(t *testing.T) {
	h := newTestHub(t, nil)
	peer := connectQuietPeer(t, h)
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()

	asker := connectREST(t, h)
	defer asker.leave()
	get := func(path string) string {
		t.Helper()
		resp, err := asker.do(ctx, http.MethodGet, path, "application/json", nil)
		if err != nil {
			t.Fatal(err)
		}
		defer resp.Body.Close()
		body, err := io.ReadAll(resp.Body)
		if err != nil {
			t.Fatal(err)
		}
		return string(body)
	}
	if got := get("/v1/agents"); strings.Contains(got, "quiet") {
		t.Errorf("before it is asked: got the list %s, want it without quiet", got)
	}
	for _, to := range []string{"quiet", string(roster.Alias("quiet"))} {
		x := asker.open(query{to: to, content: "are you there?"}, true)
		peer.answer("yes")
		if got := x.wait(t); got.End != "done" {
			t.Errorf("to %s: got %+v, want it done", to, got)
		}
		if got := get(x.id); !strings.Contains(got, `"text":"yes"`) || !strings.Contains(got, `"agent":"quiet"`) {
			t.Errorf("to %s: got %s, want yes from quiet", to, got)
		}
	}
	if got := asker.open(query{to: "*", content: "anybody?"}, true).wait(t); got.Code != "unknown_agent" {
		t.Errorf("to any agent: got %+v, want none", got)
	}
	if got := get("/v1/agents"); !strings.Contains(got, `"id":"quiet"`) {
		t.Errorf("once it was asked: got the list %s, want quiet in it", got)
	}
}

package bridge_test

import (
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/bridge"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// nowhere is an output without a close of its own.
type nowhere struct{ io.Writer }

func (nowhere) Close() error { return nil }

// carriedTo passes lines, which may have at most 200 bytes, to a hub, and returns what was printed once the bridge has
// ended. The hub gets every line, and says what hub returns.
func carriedTo(t *testing.T, b bridge.Bridge, lines string, hub func(line string) (answers []string)) (printed string, err error) {
	t.Helper()
	server := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		conn, err := ws.Accept(w, r, ws.AcceptOptions{})
		if err != nil {
			t.Error(err)
			return
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		for {
			line, err := conn.Receive(r.Context())
			if err != nil {
				return
			}
			for _, answer := range hub(string(line)) {
				if answer == "" { // the hub fails
					_ = conn.Close(link.Reason{Cause: link.Internal, Text: "no more"})
					return
				}
				if conn.Send(r.Context(), []byte(answer)) != nil {
					return
				}
			}
		}
	}))
	defer server.Close()
	remote, err := ws.Dial(t.Context(), "ws"+strings.TrimPrefix(server.URL, "http"), ws.DialOptions{})
	if err != nil {
		t.Fatal(err)
	}
	var out strings.Builder
	local := stdio.New(io.NopCloser(strings.NewReader(lines)), nowhere{&out}, stdio.Options{Limit: 200})
	err = b.Carry(t.Context(), local, remote)
	return out.String(), err
}

func TestANativeClientWaitsForAllOfItsAnswers(t *testing.T) {
	const opened = `{"call":{"id":"open","act":"open","command":{"request":{"to":"a","content":"?"}}}}`
	printed, err := carriedTo(t, bridge.Native(), strings.Join([]string{
		`{"load":{"id":"load","state":"idle"}}`, `{"vitals":{"id":"vitals"}}`, `{"tools":{"id":"tools"}}`,
		`{"event":{"id":"event","task":"t","kind":"done","body":{}}}`, `{"answer":{"execution":"e","output":1}}`,
		``, "\xff", strings.Repeat("x", 201), opened,
	}, "\n")+"\n", func(line string) []string {
		for _, id := range []string{"load", "vitals", "tools", "event"} {
			if strings.Contains(line, `"id":"`+id+`"`) {
				return []string{`{"result":{"id":"` + id + `"}}`}
			}
		}
		if line != opened {
			return nil
		}
		return []string{
			`{"result":{"id":"open","task":"t"}}`, `no frame`,
			`{"event":{"task":"t","call":"open","kind":"text","body":{"text":"so"}}}`, `{"event":{"task":"t","call":"open","kind":"done","body":{}}}`,
		}
	})
	if err != nil {
		t.Error(err)
	}
	for _, want := range []string{
		`"load"`, `"vitals"`, `"tools"`, `"id":"event"`, `"kind":"done"`, "no frame",
		`{"error":{"fault":{"code":"invalid","message":"the line is not UTF-8"}}}`, `"code":"too_large"`,
	} {
		if !strings.Contains(printed, want) {
			t.Errorf("got %s, want %s in it", printed, want)
		}
	}
}

func TestEveryClientIsToldInItsDialectOfALineThatCannotBeSent(t *testing.T) {
	for dialect, tt := range map[string]struct {
		bridge  bridge.Bridge
		line    string
		hub     func(string) []string
		invalid string
		long    string
	}{
		"pi": {
			bridge.Pi(), `{"type":"get_state"}`,
			func(string) []string { return []string{`{"type":"event"}`, `{"type":"response","success":true}`} },
			`{"type":"response","command":"unknown","success":false,"error":"Invalid JSON: the line is not UTF-8"}`, `"error":"Message size 201 exceeds limit 200"`,
		},
		"acp": {
			bridge.ACP(), `no envelope`,
			func(line string) []string {
				if ping, err := acpwire.Decode([]byte(line), bridge.MaxLine); err == nil { // behind the last line
					return []string{string(acpwire.Envelope{ID: "p", From: "hub", TS: 1, Kind: acpwire.KindPong, Ref: ping.ID, Payload: []byte("{}")}.Encode())}
				}
				return nil
			},
			`"payload":{"code":"invalid_envelope","message":"the line is not UTF-8"`, `"message":"line of 201 bytes is over the limit of 200"`,
		},
		"native": {
			bridge.Native(), `{"tools":{"id":"1"}}`,
			func(string) []string { return []string{`{"result":{"id":"1"}}`} },
			`"message":"the line is not UTF-8"`, `"code":"too_large"`,
		},
	} {
		printed, err := carriedTo(t, tt.bridge, "\xff\n"+strings.Repeat("x", 201)+"\n"+tt.line+"\n", tt.hub)
		if err != nil || !strings.Contains(printed, tt.invalid) || !strings.Contains(printed, tt.long) {
			t.Errorf("%s: got %s and %v, want %s and %s in it", dialect, printed, err, tt.invalid, tt.long)
		}
	}
}

func TestAClientSaysHowTheConnectionToItsHubEnded(t *testing.T) {
	_, err := carriedTo(t, bridge.Native(), `{"tools":{"id":"1"}}`+"\n", func(string) []string { return []string{""} })
	if err == nil || !strings.Contains(err.Error(), "the connection to the hub ended: ") || !strings.Contains(err.Error(), "no more") {
		t.Errorf("got %v, want why the hub ended it", err)
	}
}

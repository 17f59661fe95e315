package acp_test

import (
	"errors"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp/wire"
)

func TestTheErrorOfAKeyInAnotherCaseNamesTheRightKey(t *testing.T) {
	for _, c := range []struct{ kind, payload, written, meant string }{
		{"query", `{"Question":"x"}`, "Question", "question"},
		{"query", `{"Question":"x","question":"y"}`, "Question", "question"},
		{"query", `{"question":"x","Deadline_MS":5}`, "Deadline_MS", "deadline_ms"},
		{"delegate", `{"Task":"x"}`, "Task", "task"},
		{"delegate", `{"task":"x","Report_Back":false}`, "Report_Back", "report_back"},
		{"response", `{"Summary":"x"}`, "Summary", "summary"},
		{"result", `{"Status":"completed","outcome":"x"}`, "Status", "status"},
		{"result", `{"status":"completed","OUTCOME":"x"}`, "OUTCOME", "outcome"},
		{"ack", `{"Accepted":true}`, "Accepted", "accepted"},
		{"notify", `{"Topic":"x"}`, "Topic", "topic"},
		{"cancel", `{"Reason":"x"}`, "Reason", "reason"},
		{"error", `{"Code":"x","message":"y"}`, "Code", "code"},
		{"pong", `{"Status":"idle"}`, "Status", "status"},
		{"capabilities", `{"Domains":["x"]}`, "Domains", "domains"},
		{"discover", `{"Extensions":[]}`, "Extensions", "extensions"},
		{"hello", `{"Protocol_Versions":[1]}`, "Protocol_Versions", "protocol_versions"},
		{"progress", `{"Seq":1,"text":"x"}`, "Seq", "seq"},
		{"progress", `{"seq":1,"Text":"x"}`, "Text", "text"},
		{"progress", `{"seq":1,"text":"x","SEQ":2}`, "SEQ", "seq"},
		{"progress", `{"seq":1,"tool_call":{"ID":"t","name":"n"}}`, "ID", "id"},
		{"progress", `{"seq":1,"tool_call":{"id":"t","name":"n","Input":{}}}`, "Input", "input"},
	} {
		raw := `{"id":"1","ref":"r","kind":"` + c.kind + `","payload":` + c.payload + `}`
		e, err := wire.Decode([]byte(raw), wire.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		if err == nil {
			err = readAny(e)
		}
		var refusal *wire.Error
		if !errors.As(err, &refusal) || refusal.Code != wire.CodeInvalidEnvelope {
			t.Errorf("%s: got %v, want invalid_envelope", raw, err)
			continue
		}
		if want := `unknown key "` + c.written + `": did you mean "` + c.meant + `"?`; !strings.Contains(refusal.Message, want) || !strings.Contains(refusal.Message, c.kind) {
			t.Errorf("%s: got %q, want it to say of %s: %s", raw, refusal.Message, c.kind, want)
		}
	}
}

// readAny reads the payload as the session does.
func readAny(e wire.Envelope) error {
	switch e.Kind {
	case wire.KindQuery:
		return e.Read(new(wire.Query))
	case wire.KindDelegate:
		return e.Read(new(wire.Delegate))
	case wire.KindResponse:
		return e.Read(new(wire.Response))
	case wire.KindResult:
		return e.Read(new(wire.Result))
	case wire.KindAck:
		return e.Read(new(wire.Ack))
	case wire.KindNotify:
		return e.Read(new(wire.Notify))
	case wire.KindCancel:
		return e.Read(new(wire.Cancel))
	case wire.KindError:
		return e.Read(new(wire.Error))
	case wire.KindPong:
		return e.Read(new(wire.Pong))
	case wire.KindCapabilities:
		return e.Read(new(wire.Capabilities))
	case wire.KindDiscover:
		return e.Read(new(wire.Discover))
	case wire.KindHello:
		return e.Read(new(wire.Hello))
	case wire.KindProgress:
		_, _, err := e.Progress()
		return err
	}
	return nil
}

func TestTheErrorOfAMissingKeySaysThatItIsMissing(t *testing.T) {
	for raw, about := range map[string]string{
		`{"id":"1","kind":"query","payload":{}}`:                                              "payload.question: missing",
		`{"id":"1","kind":"query","payload":{"Questions":"x"}}`:                               "payload.question: missing",
		`{"id":"1","kind":"query","payload":{"question":7}}`:                                  "payload.question: want",
		`{"id":"1","kind":"capabilities","payload":{"domains":[7]}}`:                          "payload.domains[0]: want",
		`{"id":"1","kind":"response","payload":{"summary":"x"}}`:                              "ref: missing",
		`{"id":"1","kind":"progress","ref":"r","payload":{"seq":1,"tool_call":{"name":"n"}}}`: "payload.tool_call.id: missing",
	} {
		e, err := wire.Decode([]byte(raw), wire.DefaultMaxEnvelopeBytes)
		if err == nil {
			err = e.Check()
		}
		if err == nil || !strings.Contains(err.Error(), about) {
			t.Errorf("%s: got %v, want it to say %q", raw, err, about)
		}
	}
}

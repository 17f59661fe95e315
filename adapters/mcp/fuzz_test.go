package mcp

import (
	"bytes"
	"context"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

func FuzzAMessageIsReadOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"name":"agents_list","arguments":{}}}`,
		`{"jsonrpc":"2.0","id":"\ud800","method":"ping"}`, `{"jsonrpc":"2.0","method":"notifications/cancelled","params":{"requestId":1}}`,
		`{"jsonrpc":"2.0","id":1e400,"result":null}`, `[{}]`, `{"jsonrpc":"2.0","id":-0.5,"method":"\u0000","params":null}`, ` `,
		`{"jsonrpc":"2.0","id":1,"method":"tools/call","params":{"_meta":{"progressToken":"p","io.modelcontextprotocol/protocolVersion":"2026-07-28",` +
			`"io.modelcontextprotocol/clientCapabilities":{"elicitation":{"form":{}},"extensions":{"io.modelcontextprotocol/tasks":{}}}}}}`,
	} {
		f.Add([]byte(seed))
	}
	f.Fuzz(func(t *testing.T, body []byte) {
		m, bad := readMessage(body, 1<<16)
		if bad != nil {
			if answer := jsonrpc.AppendError(nil, m.ID, bad); !json.Valid(answer) || bad.Message == "" {
				t.Fatalf("got %q, want a refusal in JSON with a reason", answer)
			}
			return
		}
		if m.ID == nil {
			return
		}
		if answer := jsonrpc.AppendError(nil, m.ID, invalid("no")); strictjson.Check(answer, strictjson.Limits{}) != nil || !bytes.Contains(answer, m.ID) {
			t.Fatalf("got %q, want an answer to %s", answer, m.ID)
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set(wire.HeaderVersion, wire.Modern)
		r.Header.Set(wire.HeaderMethod, m.Method)
		if _, bad := readRequest(r, nil, m); bad != nil && !json.Valid(jsonrpc.AppendError(nil, m.ID, bad)) {
			t.Fatalf("got %q, want a refusal in JSON", jsonrpc.AppendError(nil, m.ID, bad))
		}
	})
}

func FuzzAnAnswerOfTheUserIsTakenOrRefused(f *testing.F) {
	for _, seed := range []string{
		`{"action":"accept","content":{"allow":true,"all":true}}`, `{"action":"decline"}`, `{"action":"cancel","content":null}`, `{"action":"accept","content":{"allow":"yes"}}`,
		`{"action":"accept","content":{"choice":["a","b"],"answer":"c"}}`, `{"action":"accept","content":{"choice":"a\nb"}}`, `{"action":"accept","content":{"choice":[1]}}`, `[]`, `{"action":"Accept"}`,
	} {
		f.Add([]byte(seed))
	}
	inputs := []input{{key: "a", approval: &task.PendingApproval{ID: "a"}}, {key: "q", question: &question.Question{ID: "q"}}, {key: "s", question: &question.Question{ID: "s", Several: true}}}
	f.Fuzz(func(t *testing.T, text []byte) {
		v, err := strictjson.Parse(text, strictjson.Limits{})
		if err != nil {
			return
		}
		for _, in := range inputs {
			c, err := in.command("task", v)
			fault := core.AsFault(err)
			if (c == nil) == (fault == nil) || fault != nil && (fault.Code != core.CodeInvalid || !strings.HasPrefix(fault.Message, in.key)) {
				t.Fatalf("%s: got %+v and %v, want a command or what is wrong", text, c, err)
			}
			action, _ := v.Get("action").Text()
			if d, ok := c.(core.Decide); ok && d.Decision.Approved && (action != "accept" || string(v.Get("content", "allow").Raw()) != "true") {
				t.Fatalf("%s: got an approval, want none", text)
			}
		}
	})
}

func FuzzAStateIsTheOneThatWasSealed(f *testing.F) {
	s := &Server{hub: hub.New(hub.Options{}), seal: newSealer()}
	f.Cleanup(func() { _ = s.hub.Close(context.Background(), "the end") })
	session := s.hub.Connect(hub.Identity{Principal: core.Principal{ID: "ann"}})
	q := &request{holder: newHolder(session, Options{})}
	p := callParams{Name: "agent_ask", Arguments: json.RawMessage(`{"to":"bob"}`)}
	good := s.sealState(q, p, "task", 1, time.Now().Add(time.Hour))
	for _, seed := range []string{good, good + "\n", good[1:], good + ".", ".", "", "e30.e30"} {
		f.Add(seed)
	}
	f.Fuzz(func(t *testing.T, state string) {
		p := p
		p.State = state
		in, bad := s.unseal(q, p)
		if (bad == nil) != (state == good) || in != nil && in.Run != "task" {
			t.Fatalf("%q: got %+v and %v, want only what was sealed", state, in, bad)
		}
	})
}

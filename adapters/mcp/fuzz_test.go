package mcp

import (
	"bytes"
	"encoding/json"
	"net/http"
	"net/http/httptest"
	"testing"

	"github.com/dragoman-hub/dragoman/core/strictjson"
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
			if answer := failure(m.ID, bad); !json.Valid(answer) || bad.Message == "" {
				t.Fatalf("got %q, want a refusal in JSON with a reason", answer)
			}
			return
		}
		if m.ID == nil {
			return
		}
		if answer := failure(m.ID, invalid("no")); strictjson.Check(answer, strictjson.Limits{}) != nil || !bytes.Contains(answer, m.ID) {
			t.Fatalf("got %q, want an answer to %s", answer, m.ID)
		}
		r := httptest.NewRequest(http.MethodPost, "/mcp", nil)
		r.Header.Set(versionHeader, sessionless)
		r.Header.Set(methodHeader, m.Method)
		if _, bad := readRequest(r, nil, m); bad != nil && !json.Valid(failure(m.ID, bad)) {
			t.Fatalf("got %q, want a refusal in JSON", failure(m.ID, bad))
		}
	})
}

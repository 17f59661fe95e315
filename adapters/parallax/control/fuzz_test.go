package control

import (
	"net/url"
	"testing"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// FuzzExecution checks that every body of POST /api/executions is a request with an
// address or refused with a reason, and that no webhook has a forbidden target.
func FuzzExecution(f *testing.F) {
	f.Add([]byte(`{"capability":"a","input":{"content":"b","attachments":[]},"webhook":{"url":"https://example.com","secret":"s","events":["completed"]}}`))
	f.Add([]byte(`{"patternName":"a,b","patternVersion":"1","options":{"timeout":1,"stream":true}}`))
	f.Add([]byte(`{"agentId":"x","input":"text","webhook":{"url":"https://[::ffff:127.0.0.1]/"}}`))
	f.Fuzz(func(t *testing.T, body []byte) {
		var b executionRequest
		if strictjson.Decode(body, strictjson.Limits{Bytes: DefaultMaxBodyBytes}, &b) != nil {
			return
		}
		if r, err := b.request(); err != nil && core.AsFault(err).Code == core.CodeInternal || err == nil && r.To.IsZero() {
			t.Fatalf("got %+v and %v, want an address or a reason", r, err)
		}
		if b.Webhook == nil {
			return
		}
		w, err := b.Webhook.endpoint(webhook.TargetsPublic)
		if err != nil {
			return
		}
		if u, err := url.Parse(w.url); err != nil || u.Scheme != "https" || u.Hostname() == "" || u.User != nil {
			t.Fatalf("got %q, want https to a host", w.url)
		}
	})
}

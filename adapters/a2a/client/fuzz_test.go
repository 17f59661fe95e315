package client_test

import (
	"context"
	"io"
	"net/http"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// answersAll answers every request for a card, and all others with a body.
type answersAll struct{ media, body string }

func (a answersAll) RoundTrip(r *http.Request) (*http.Response, error) {
	body, media := a.body, a.media
	if strings.HasSuffix(r.URL.Path, ".json") {
		body, media = strings.ReplaceAll(streamingCard, "%s", "http://far"), "application/json"
	}
	return &http.Response{StatusCode: 200, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// FuzzStream has a remote answer everything with the same: a task ends once, and nothing is
// reported after its end.
func FuzzStream(f *testing.F) {
	around := func(items ...string) (s string) {
		for _, it := range items {
			s += "data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" + it + "}\n\n"
		}
		return s
	}
	f.Add("text/event-stream", around(task("WORKING"), chunk("a"), statusSaying("WORKING", "m", "hm"), status("COMPLETED")))
	f.Add("text/event-stream", around(`{"task":`+snapshot("INPUT_REQUIRED", "a")+`}`))
	f.Add("text/event-stream", around(`{"message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"raw":"YQ=="},{"data":null},{"url":"x"}]}}`))
	f.Add("application/json", `{"jsonrpc":"2.0","id":1,"result":{"task":`+snapshot("WORKING", "a")+`}}`)
	f.Add("application/json", `{"jsonrpc":"2.0","id":1,"error":{"code":-32001,"message":"x"}}`)
	f.Fuzz(func(t *testing.T, media, body string) {
		c := client.New(client.Options{URL: "http://far", HTTP: &http.Client{Transport: answersAll{media, body}}, Backoff: 1, Grace: time.Millisecond})
		ctx, stop := context.WithTimeout(t.Context(), 100*time.Millisecond) // it may be polled for ever
		ready, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			_ = c.Run(ctx, func(agent.Profile) { close(ready) })
		}()
		<-ready
		w := newTurn(t, "x")
		err := c.Work(ctx, w)
		if w.ended && err != nil {
			t.Errorf("Work: got %v after an end, want no error", err)
		}
		if !w.ended && err == nil {
			t.Errorf("Work: got no error and no end, want one; it reported:\n%s", w.story())
		}
		stop()
		<-over
	})
}

package client_test

import (
	"context"
	"fmt"
	"net/http"
	"net/http/httptest"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core/agent"
)

// inProcess has a fake answer without sockets, for a fake clock.
type inProcess struct{ *fake }

func (p inProcess) RoundTrip(r *http.Request) (*http.Response, error) {
	w := httptest.NewRecorder()
	p.handle(w, r)
	return w.Result(), nil
}

// A remote whose answers make the client ask again must not keep it busy, whatever it says each time.
func TestARemoteThatCutsEveryStreamAfterSomethingNewIsAskedMoreAndMoreSeldom(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		const cuts = 60
		n, began := 0, time.Now()
		f := &fake{TB: t, card: streamingCard, Server: &httptest.Server{URL: "http://far"}}
		f.on = map[string]func(*exchange){
			"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING"), chunk("0 ")) },
			"SubscribeToTask": func(x *exchange) {
				if n++; n == cuts {
					x.say(status("COMPLETED"))
					return
				}
				x.say(chunk(fmt.Sprint(n, " ")))
			},
		}
		c := client.New(client.Options{URL: f.URL, HTTP: &http.Client{Transport: inProcess{f}}})
		ctx, stop := context.WithCancel(t.Context())
		ready, over := make(chan struct{}), make(chan struct{})
		go func() {
			defer close(over)
			_ = c.Run(ctx, func(agent.Profile) { close(ready) })
		}()
		<-ready
		if err := c.Work(ctx, newTurn(t, "x")); err != nil {
			t.Errorf("got %v, want the task done", err)
		}
		if took, least := time.Since(began), cuts*time.Second; took < least {
			t.Errorf("got %d subscriptions in %v, want at most one a second", n, took)
		}
		stop()
		<-over
	})
}

package client_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
)

// rest makes a fake speak HTTP+JSON. Its paths answer with items, or with a task.
func rest(t *testing.T, card string, answer func(w http.ResponseWriter, call string)) *fake {
	f := remote(t, nil)
	f.setCard(strings.Replace(strings.Replace(card, `"JSONRPC"`, `"HTTP+JSON"`, 1), "/rpc", "/rest", 1))
	f.serve = func(w http.ResponseWriter, r *http.Request) {
		body, _ := io.ReadAll(r.Body)
		if len(body) > 0 && r.Header.Get("Content-Type") != "application/a2a+json" {
			t.Errorf("%s: got the Content-Type %q, want application/a2a+json", r.URL, r.Header.Get("Content-Type"))
		}
		f.note(strings.TrimSpace(r.Method + " " + r.URL.RequestURI() + " " + string(body)))
		answer(w, r.Method+" "+r.URL.Path)
	}
	return f
}

func items(w http.ResponseWriter, all ...string) {
	w.Header().Set("Content-Type", "text/event-stream")
	for _, it := range all {
		_, _ = fmt.Fprintf(w, "data: %s\n\n", it)
	}
	_ = http.NewResponseController(w).Flush()
}

func TestHTTPAndJSONIsSpokenWithItsPathsAndTenant(t *testing.T) {
	f := rest(t, streamingCard, func(w http.ResponseWriter, call string) {
		switch call {
		case "POST /rest/t 1/message:stream":
			items(w, task("WORKING"), chunk("one "))
			panic(http.ErrAbortHandler)
		case "POST /rest/t 1/tasks/T:subscribe":
			w.WriteHeader(400)
			_, _ = io.WriteString(w, `{"error":{"code":400,"status":"FAILED_PRECONDITION","message":"it has ended","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"UNSUPPORTED_OPERATION","domain":"a2a-protocol.org"}]}}`)
		case "GET /rest/t 1/tasks/T":
			_, _ = io.WriteString(w, snapshot("COMPLETED", "one two"))
		default:
			t.Errorf("got the call %s", call)
		}
	})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext one two\ndone")
	want := []string{
		`POST /rest/t%201/message:stream {"tenant":"t 1","message":{"messageId":"task-1","role":"ROLE_USER","parts":[{"text":"x"}]},"configuration":{}}`,
		`POST /rest/t%201/tasks/T:subscribe {"tenant":"t 1","id":"T"}`,
		`GET /rest/t%201/tasks/T?historyLength=1`,
	}
	if got := f.called(); strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("the client sent:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestHTTPAndJSONIsPolledAndCancelled(t *testing.T) {
	cancelled := false
	f := rest(t, strings.Replace(streamingCard, `"streaming":true`, "", 1), func(w http.ResponseWriter, call string) {
		state := "WORKING"
		switch call {
		case "POST /rest/t 1/message:send":
			_, _ = io.WriteString(w, `{"task":`+snapshot(state, "one")+`}`)
			return
		case "POST /rest/t 1/tasks/T:cancel":
			cancelled = true
		}
		if cancelled {
			state = "CANCELED"
		}
		_, _ = io.WriteString(w, snapshot(state, "one"))
	})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x").cancelsAt(core.KindText), "accepted\nsession_started C\ntext one\ncancelled enough")
}

func TestAnErrorOfHTTPAndJSONIsUnderstood(t *testing.T) {
	f := rest(t, streamingCard, func(w http.ResponseWriter, _ string) {
		w.WriteHeader(400)
		_, _ = io.WriteString(w, `{"error":{"code":400,"status":"INVALID_ARGUMENT","message":"no pictures","details":[{"@type":"type.googleapis.com/google.rpc.ErrorInfo","reason":"CONTENT_TYPE_NOT_SUPPORTED","domain":"a2a-protocol.org"}]}}`)
	})
	run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), core.CodeUnsupported, "no pictures")
	g := rest(t, streamingCard, func(w http.ResponseWriter, _ string) {
		items(w, task("WORKING"), `{"error":{"code":429,"message":"slow down"}}`)
	})
	run(t, client.Options{URL: g.URL}).fails(newTurn(t, "x"), core.CodeRateLimited, "slow down")
}

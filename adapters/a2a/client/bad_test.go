package client_test

import (
	"io"
	"net/http"
	"strconv"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
)

func TestEventsThatCannotBeReadAreCountedAndSkipped(t *testing.T) {
	for name, bad := range map[string]string{
		"no JSON":           "data: {\"jsonrpc\":\n\n",
		"another version":   `data: {"jsonrpc":"1.0","id":1,"result":{}}` + "\n\n",
		"a request":         `data: {"jsonrpc":"2.0","id":1,"method":"x"}` + "\n\n",
		"a list":            `data: {"jsonrpc":"2.0","id":1,"result":[]}` + "\n\n",
		"no kind":           `data: {"jsonrpc":"2.0","id":1,"result":{}}` + "\n\n",
		"two kinds":         `data: {"jsonrpc":"2.0","id":1,"result":` + strings.TrimSuffix(task("COMPLETED"), "}") + "," + status("FAILED")[1:] + "}\n\n",
		"a part of nothing": `data: {"jsonrpc":"2.0","id":1,"result":{"artifactUpdate":{"taskId":"T","artifact":{"artifactId":"answer","parts":[{"text":5}]}}}}` + "\n\n",
		"a key twice":       `data: {"jsonrpc":"2.0","id":1,"result":{"statusUpdate":{"taskId":"T","taskId":"U"}}}` + "\n\n",
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){
				"SendStreamingMessage": func(x *exchange) {
					x.say(task("WORKING"), chunk("one "))
					x.raw(bad)
					x.say(chunk("two"), status("COMPLETED"))
				},
				"GetTask": func(x *exchange) { x.result(snapshot("COMPLETED", "one two three")) },
			})
			a := run(t, client.Options{URL: f.URL})
			// What could not be read may have been a part of the answer: it is asked for.
			a.does(newTurn(t, "x"), "accepted\nsession_started C\ntext one two three\ndone")
			if n := a.counted.of("a2a.agent.unreadable"); n != 1 {
				t.Errorf("got %d counted, want 1", n)
			}
		})
	}
}

func TestAnEndThatLacksSomethingIsAnEnd(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(`{"task":{"id":"T","status":{"state":"TASK_STATE_WORKING"}}}`, chunk("one"),
			`{"statusUpdate":{"taskId":"T","status":{"state":"TASK_STATE_COMPLETED","message":{"messageId":"","parts":[]}}}}`)
	}})
	run(t, client.Options{URL: f.URL}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext one\ndone")
}

func TestEventsOfAnotherTaskAreCountedAndSkipped(t *testing.T) {
	other := func(item string) string { return strings.ReplaceAll(item, `"T"`, `"U"`) }
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"), chunk("one"), other(chunk("no")), other(status("FAILED")), other(task("COMPLETED")), status("COMPLETED"))
	}})
	a := run(t, client.Options{URL: f.URL})
	a.does(newTurn(t, "x"), "accepted\nsession_started C\ntext one\ndone")
	if n := a.counted.of("a2a.agent.wrong_task"); n != 3 {
		t.Errorf("got %d counted, want 3", n)
	}
}

func TestKindsAndStatesThatNobodyKnowsAreKept(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"), `{"bidStarted":{"amount":5}}`, statusSaying("PONDERING", "m", "hm"), status("COMPLETED"))
	}})
	c := newTurn(t, "x")
	a := run(t, client.Options{URL: f.URL})
	a.does(c, "accepted\nsession_started C\n"+`foreign {"dialect":"a2a","name":"bidStarted"}`+"\nthinking hm\ndone")
	if e := c.events[2]; e.Foreign == nil || string(e.Foreign.JSON) != `{"bidStarted":{"amount":5}}` {
		t.Errorf("the unknown kind has the foreign %+v, want the item", e.Foreign)
	}
}

func TestWhatIsSaidBesideAnEventIsKept(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"),
			`{"artifactUpdate":{"taskId":"T","contextId":"C","artifact":{"artifactId":"report","name":"Report","metadata":{"k":1},"parts":[{"text":"a","mediaType":"text/markdown","x":2},{"text":"b"}]},"metadata":{"m":3},"y":4}}`,
			`{"artifactUpdate":{"taskId":"T","contextId":"C","append":true,"artifact":{"artifactId":"report","parts":[{"text":"c"}]}}}`,
			`{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING","message":{"messageId":"m","role":"ROLE_AGENT","parts":[{"text":"hm"}],"metadata":{"z":5}}}}}`,
			`{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"},"metadata":{"percent":50}}}`,
			`{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_COMPLETED"},"metadata":{"usage":{"input":1},"cost":6}}}`)
	}})
	c := newTurn(t, "x")
	if err := run(t, client.Options{URL: f.URL}).work(c); err != nil {
		t.Fatal(err)
	}
	var got []string
	for _, e := range c.events {
		if e.Foreign != nil {
			got = append(got, e.Body.Kind().String()+" "+string(e.Foreign.JSON))
		}
	}
	want := []string{
		`text {"artifactUpdate":{"artifact":{"artifactId":"report","name":"Report","parts":[{"mediaType":"text/markdown","x":2}],"metadata":{"k":1}},"metadata":{"m":3},"y":4}}`,
		`thinking {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING","message":{"parts":[{}],"metadata":{"z":5}}}}}`,
		`foreign {"statusUpdate":{"status":{"state":"TASK_STATE_WORKING"},"metadata":{"percent":50}}}`,
		`done {"statusUpdate":{"status":{"state":"TASK_STATE_COMPLETED"},"metadata":{"cost":6}}}`,
	}
	if strings.Join(got, "\n") != strings.Join(want, "\n") {
		t.Errorf("kept:\n%s\nwant:\n%s", strings.Join(got, "\n"), strings.Join(want, "\n"))
	}
}

func TestAGiantEventEndsItsTaskAlone(t *testing.T) {
	for name, giant := range map[string]string{
		"of one line":    "data: " + strings.Repeat("x", 11<<20) + "\n\n",
		"of many lines":  strings.Repeat("data: "+strings.Repeat("x", 1<<20)+"\n", 11) + "\n",
		"of a comment":   ": " + strings.Repeat("x", 11<<20) + "\n\n",
		"without an end": strings.Repeat("x", 11<<20),
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) { x.say(task("WORKING")); x.raw(giant); x.wait() }})
			a := run(t, client.Options{URL: f.URL})
			a.fails(newTurn(t, "x"), core.CodeTooLarge, "an event of more than 10485760 bytes")
			f.on["SendStreamingMessage"] = func(x *exchange) { x.say(task("WORKING"), chunk("ok"), status("COMPLETED")) }
			a.does(newTurn(t, "x"), "accepted\ntext ok\ndone")
		})
	}
}

func TestAnEndlessStreamOfGarbageEnds(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"))
		for x.r.Context().Err() == nil {
			x.raw(strings.Repeat("data: garbage\n\n", 100))
		}
	}})
	run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), core.CodeInternal, "1000 events in a row that cannot be read")
}

func TestAnswersOfAnotherProtocolAreNamed(t *testing.T) {
	html := func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, "<html>") }
	for name, tt := range map[string]struct {
		answer func(*exchange)
		serve  http.HandlerFunc
		code   core.Code
		about  string
	}{
		"0.3 event":   {answer: func(x *exchange) { x.say(`{"kind":"task","id":"T","contextId":"C","status":{"state":"working"}}`) }, code: core.CodeUnsupported, about: "A2A 0.3"},
		"0.3 result":  {answer: func(x *exchange) { x.result(`{"kind":"message","messageId":"m","role":"agent","parts":[]}`) }, code: core.CodeUnsupported, about: "A2A 0.3"},
		"0.3 methods": {answer: func(x *exchange) { x.fails(-32601, "Method not found") }, code: core.CodeUnsupported, about: "maybe it speaks 0.3"},
		"no streams":  {answer: func(x *exchange) { x.fails(-32004, "no streams") }, code: core.CodeUnsupported, about: "capabilities.streaming"},
		"a version":   {answer: func(x *exchange) { x.fails(-32009, "only 2.0") }, code: core.CodeUnsupported, about: "only 2.0"},
		"another id":  {answer: func(x *exchange) { _, _ = io.WriteString(x.w, `{"jsonrpc":"2.0","id":7,"result":{}}`) }, code: core.CodeInternal, about: `the id "7"`},
		"an error event": {answer: func(x *exchange) {
			x.raw(`data: {"jsonrpc":"2.0","id":1,"error":{"code":-32603,"message":"it broke"}}` + "\n\n")
		}, code: core.CodeInternal, about: "it broke"},
		"a page": {serve: html, code: core.CodeInternal, about: "not JSON"},
		"503":    {serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(503) }, code: core.CodeUnreachable, about: "Service Unavailable"},
		"429":    {serve: func(w http.ResponseWriter, _ *http.Request) { w.WriteHeader(429) }, code: core.CodeRateLimited, about: "Too Many Requests"},
		"a redirect": {serve: func(w http.ResponseWriter, r *http.Request) {
			http.Redirect(w, r, "http://127.0.0.1:1/", http.StatusTemporaryRedirect)
		}, code: core.CodeInternal, about: "Temporary Redirect"},
		"a giant answer": {serve: func(w http.ResponseWriter, _ *http.Request) { _, _ = io.WriteString(w, strings.Repeat(" ", 16<<20+1)) }, code: core.CodeTooLarge, about: "16777216 bytes"},
	} {
		t.Run(name, func(t *testing.T) {
			f := remote(t, map[string]func(*exchange){"SendStreamingMessage": tt.answer})
			f.serve = tt.serve
			run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), tt.code, tt.about)
		})
	}
}

func TestARemoteAgentSaysWhenToComeAgain(t *testing.T) {
	for said, want := range map[string]time.Duration{"30": 30 * time.Second, "9999999": 24 * time.Hour, "-5": 0, "soon": 0, "": 0} {
		f := remote(t, nil)
		f.serve = func(w http.ResponseWriter, _ *http.Request) {
			w.Header().Set("Retry-After", said)
			w.WriteHeader(http.StatusTooManyRequests)
		}
		err := run(t, client.Options{URL: f.URL}).work(newTurn(t, "x"))
		if got := core.AsFault(err); got.Code != core.CodeRateLimited || time.Duration(got.RetryAfter) != want {
			t.Errorf("Retry-After %q: got %v after %s, want %s after %s", said, err, time.Duration(got.RetryAfter), core.CodeRateLimited, want)
		}
	}
}

func TestTooManyArtifactsEndTheTask(t *testing.T) {
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"))
		all := make([]string, 10_001)
		for i := range all {
			all[i] = `{"artifactUpdate":{"taskId":"T","artifact":{"artifactId":"` + strconv.Itoa(i) + `","parts":[]}}}`
		}
		x.say(all...)
		x.wait()
	}})
	run(t, client.Options{URL: f.URL}).fails(newTurn(t, "x"), core.CodeTooLarge, "more than 10000 artifacts")
}

package a2a_test

import (
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"slices"
	"strings"
	"testing"
	"testing/synctest"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAMessageIsAnsweredWithTheEndedTask(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			f.agent("shout").shouts()
			got := f.send(b, "shout", message("m1", "hello <b> you", `,"contextId":"c1"`))
			if got.Status.State != wire.StateCompleted || answerOf(got) != "HELLO <B> YOU" || got.ContextID != "c1" {
				t.Errorf("got %s with %q in %s, want it completed in c1", got.Status.State, answerOf(got), got.ContextID)
			}
			if n := len(got.Artifacts[0].Parts); n > 3 {
				t.Errorf("got %d parts, want one per chunk or fewer", n)
			}
			if len(got.History) != 1 || got.History[0].ID != "m1" || wire.Text(got.History[0].Parts) != "hello <b> you" {
				t.Errorf("got the history %+v, want the message", got.History)
			}
			var metadata struct{ Usage core.Usage }
			if err := json.Unmarshal(got.Metadata, &metadata); err != nil || metadata.Usage != (core.Usage{Input: 3, Output: 4}) {
				t.Errorf("got the metadata %s and %v, want the usage", got.Metadata, err)
			}
			if again := f.get(b, "shout", got.ID); answerOf(again) != answerOf(got) || again.Status.State != got.Status.State {
				t.Errorf("got %+v, want the same task", again)
			}
		})
	}
}

func TestATaskThatHasEndedIsNotKeptForItsQuestions(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		h := coretest.NewHub(t, hub.Options{})
		f := &fixture{t: t, hub: h, server: a2a.New(h, a2a.Options{Principal: func(*http.Request) (core.Principal, error) {
			return core.Principal{ID: "local"}, nil
		}})}
		t.Cleanup(f.server.Close)
		a := f.agent("shout")
		for n := range 3 {
			body := fmt.Sprintf(`{"jsonrpc":"2.0","id":7,"method":%q,"params":%s}`, wire.MethodSend, message(fmt.Sprint("m", n), "hello", ""))
			r := httptest.NewRequestWithContext(t.Context(), http.MethodPost, "/a2a/shout", strings.NewReader(body))
			r.Header.Set(wire.VersionHeader, wire.Version)
			r.Header.Set("Content-Type", "application/json")
			answer := httptest.NewRecorder()
			go f.server.ServeHTTP(answer, r)
			asked, _ := a.next(core.KindAssigned)
			synctest.Wait()
			if got := f.server.Views(); got != 1 {
				t.Errorf("task %d runs: got %d views of questions, want one", n, got)
			}
			a.say(asked, core.Done{})
			synctest.Wait()
			if got := f.server.Views(); got != 0 || !strings.Contains(answer.Body.String(), string(wire.StateCompleted)) {
				t.Errorf("task %d has ended: got %d views of questions and %s, want none, and it completed", n, got, answer.Body)
			}
		}
	})
}

func TestAStreamHasTheTaskItsChunksAndItsEnd(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{})
			a := f.agent("shout")
			s := f.stream(b, "shout", wire.MethodStream, message("m1", "hello", ""))
			first, _ := s.next()
			if first.Task == nil || first.Task.Status.State.Terminal() || first.Task.History[0].ID != "m1" {
				t.Fatalf("got %+v, want the task first", first)
			}
			task, _ := a.next(core.KindAssigned)
			a.say(task, core.Thinking{Text: "hm"}, core.Text{Text: "HEL"}, core.ToolCall{ID: "1", Name: "look", Input: `{"a":1}`}, core.Text{Text: "LO"}, core.ToolResult{ID: "1"}, core.File{Name: "a.txt", MediaType: "text/plain", Data: []byte("hi")},
				core.Done{Data: json.RawMessage(`{"n":1}`)})
			items := s.rest()
			if got := textOf(items); got != "HELLO" || lastState(items) != wire.StateCompleted {
				t.Errorf("got %q and %s, want HELLO, completed", got, lastState(items))
			}
			var told []string
			for _, i := range items {
				if u := i.ArtifactUpdate; u != nil {
					told = append(told, fmt.Sprintf("%s %t", u.Artifact.ID, u.Append))
				}
				if u := i.StatusUpdate; u != nil && u.Status.Message != nil {
					var m struct{ Event struct{ Kind, Input string } }
					if err := json.Unmarshal(u.Status.Message.Metadata, &m); err != nil {
						t.Fatal(err)
					}
					told = append(told, m.Event.Kind+" "+wire.Text(u.Status.Message.Parts))
				}
			}
			want := []string{"thinking hm", "answer false", `tool_call calls look {"a":1}`, "answer true", "tool_result tool_result", "file-1 false", "data false"}
			if !slices.Equal(told, want) {
				t.Errorf("got %q, want %q", told, want)
			}
			whole := f.get(b, "shout", first.Task.ID)
			if len(whole.Artifacts) != 3 || answerOf(whole) != "HELLO" || string(whole.Artifacts[1].Parts[0].Raw) != "hi" || string(whole.Artifacts[2].Parts[0].Data) != `{"n":1}` {
				t.Errorf("got the artifacts %+v, want the answer, the file and the data", whole.Artifacts)
			}
		})
	}
}

func TestARequestOfAnotherVersionIsRefused(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	for _, b := range bindings {
		for _, version := range []string{"A2A-Version: ", "A2A-Version: 0.3", "A2A-Version: 2.0"} {
			status, _, got := f.call(b, "shout", wire.MethodSend, message("m", "hi", ""), version)
			if got == nil || got.reason() != wire.ReasonVersionNotSupported || !strings.Contains(got.Message, "Supported versions: 1.0") {
				t.Errorf("%s, %q: got %d %+v, want VERSION_NOT_SUPPORTED", b, version, status, got)
			} else if want := map[binding]int{rpc: -32009, rest: 400}[b]; got.Code != want {
				t.Errorf("%s: got the code %d, want %d", b, got.Code, want)
			}
		}
	}
	resp := f.request(t.Context(), http.MethodPost, "/a2a/shout?A2A-Version=1.0", `{"jsonrpc":"2.0","id":1,"method":"ListTasks"}`, "A2A-Version: ")
	defer resp.Body.Close()
	var got struct{ Error *failure }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || got.Error != nil {
		t.Errorf("got %+v and %v, want the version in the query accepted", got.Error, err)
	}
}

func TestCardsNameBothInterfacesOfAnAgent(t *testing.T) {
	f := start(t, a2a.Options{Bearer: true})
	f.agent("shout")
	f.agent("a/b c")
	card := func(path string) (wire.Card, *http.Response) {
		resp := f.request(t.Context(), http.MethodGet, path, "")
		defer resp.Body.Close()
		text, _ := io.ReadAll(resp.Body) // checked below
		conforms(t, wire.MethodExtendedCard, text)
		var c wire.Card
		if err := json.Unmarshal(text, &c); err != nil || resp.StatusCode != http.StatusOK {
			t.Fatalf("%s: got %d and %v, want a card", path, resp.StatusCode, err)
		}
		return c, resp
	}
	for path, at := range map[string]string{
		"/a2a/shout/.well-known/agent-card.json": "/a2a/shout", "/a2a/shout//.well-known/agent-card.json": "/a2a/shout", "/a2a/a%2Fb%20c/.well-known/agent-card.json": "/a2a/a%2Fb%20c",
	} {
		c, resp := card(path)
		if len(c.Interfaces) != 2 || c.Interfaces[0] != (wire.Interface{URL: f.url + at, Binding: "JSONRPC", ProtocolVersion: "1.0"}) || c.Interfaces[1].URL != f.url+at+"/rest" {
			t.Errorf("%s: got the interfaces %+v, want both at %s", path, c.Interfaces, at)
		}
		if c.Version != "1.2.3" || !c.Capabilities.Streaming || !c.Capabilities.Has(wire.CursorExtension) || c.SecuritySchemes["bearer"].HTTP == nil || len(c.Skills) != 1 {
			t.Errorf("%s: got %+v, want version, streaming, the extension, the scheme and a skill", path, c)
		}
		again := f.request(t.Context(), http.MethodGet, path, "", "If-None-Match: "+resp.Header.Get("ETag"))
		again.Body.Close()
		if again.StatusCode != http.StatusNotModified || !strings.Contains(resp.Header.Get("Cache-Control"), "max-age=") {
			t.Errorf("%s: got %d for the same ETag and %q, want 304", path, again.StatusCode, resp.Header.Get("Cache-Control"))
		}
	}
	c, _ := card("/.well-known/agent-card.json")
	if len(c.Interfaces) != 4 || c.Interfaces[0].Tenant != "a/b c" || c.Interfaces[2].Tenant != "shout" || c.Interfaces[2].URL != f.url+"/a2a" {
		t.Errorf("got %+v, want both agents as tenants", c.Interfaces)
	}
	resp := f.request(t.Context(), http.MethodGet, "/a2a/shuot/.well-known/agent-card.json", "")
	defer resp.Body.Close()
	var got struct{ Error failure }
	if err := json.NewDecoder(resp.Body).Decode(&got); err != nil || resp.StatusCode != http.StatusNotFound || !strings.Contains(got.Error.Message, "the nearest: shout") {
		t.Errorf("got %d %+v, want 404 that names the nearest", resp.StatusCode, got)
	}
}

func TestATenantNamesTheAgentAtTheHubsOwnInterface(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	for _, b := range bindings {
		params := `{"tenant":"shout",` + message("m-"+string(b), "hi", "")[1:]
		done := f.send(b, "", params)
		if answerOf(done) != "HI" {
			t.Errorf("%s: got %+v, want the answer", b, done)
		}
		if _, result, failed := f.call(b, "", wire.MethodGetTask, fmt.Sprintf(`{"tenant":"shout","id":%q}`, done.ID)); failed != nil || answerOf(readTask(t, result)) != "HI" {
			t.Errorf("%s: got %v, want the task", b, failed)
		}
		if _, _, failed := f.call(b, "", wire.MethodGetTask, fmt.Sprintf(`{"tenant":"other","id":%q}`, done.ID)); failed.reason() != wire.ReasonTaskNotFound {
			t.Errorf("%s: got %v, want the task of another agent not found", b, failed)
		}
	}
	if _, _, failed := f.call(rpc, "", wire.MethodSend, message("x", "hi", "")); failed == nil || !strings.Contains(failed.Message, "tenant: missing") {
		t.Errorf("got %+v, want to be told that the tenant is missing", failed)
	}
	if _, _, failed := f.call(rpc, "shout", wire.MethodSend, `{"tenant":"other",`+message("y", "hi", "")[1:]); failed == nil || !strings.Contains(failed.Message, "tenant") {
		t.Errorf("got %+v, want another tenant refused", failed)
	}
}

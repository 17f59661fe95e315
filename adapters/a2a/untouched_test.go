package a2a_test

import (
	"encoding/json"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

func TestWhatTheHubDoesNotKnowPassesBothWays(t *testing.T) {
	f := start(t, a2a.Options{})
	a := f.agent("far")
	s := f.stream(rpc, "far", wire.MethodStream, `{"metadata":{"r":1},"later":true,"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/markdown","vendor":[1]}],"extensions":["urn:x"],"vendor":{"a":1}}}`)
	s.next()
	task, _ := a.next(core.KindAssigned)
	sent := wire.SendRequestOf(task.Request())
	text, err := strictjson.Marshal(sent)
	if err != nil {
		t.Fatal(err)
	}
	const want = `{"message":{"messageId":"m1","role":"ROLE_USER","parts":[{"text":"hi","mediaType":"text/markdown","vendor":[1]}],"extensions":["urn:x"],"vendor":{"a":1}},"configuration":{},"metadata":{"r":1},"later":true}`
	if string(text) != want {
		t.Errorf("got %s for the agent, want %s", text, want)
	}
	report := func(body core.Body, beside wire.StreamResponse) {
		if err := a.s.Report(task.ID(), body, wire.Beside(beside)); err != nil {
			t.Error(err)
		}
	}
	report(core.Text{Text: "HI"}, wire.StreamResponse{ArtifactUpdate: &wire.ArtifactUpdate{
		Artifact: wire.Artifact{ID: "a1", Name: "greeting", Parts: []wire.Part{{MediaType: "text/x", Unknown: json.RawMessage(`{"vendor":2}`)}}, Unknown: json.RawMessage(`{"more":[]}`)}, Unknown: json.RawMessage(`{"late":1}`),
	}})
	a.say(task, core.Text{Text: " YOU"})
	report(core.ForeignFrame{Dialect: wire.Dialect, Name: "kindOfTomorrow"}, wire.StreamResponse{Unknown: json.RawMessage(`{"kindOfTomorrow":{"a":1}}`)})
	a.say(task, core.Done{})
	var got []string
	for _, i := range s.rest() {
		if u := i.ArtifactUpdate; u != nil {
			u.TaskID, u.ContextID = "", ""
		}
		if i.StatusUpdate == nil {
			got = append(got, string(i.AppendJSON(nil)))
		}
	}
	for i, want := range []string{
		`{"artifactUpdate":{"artifact":{"artifactId":"a1","name":"greeting","parts":[{"text":"HI","mediaType":"text/x","vendor":2}],"more":[]},"late":1}}`,
		`{"artifactUpdate":{"artifact":{"artifactId":"a1","parts":[{"text":" YOU"}]},"append":true}}`,
		`{"kindOfTomorrow":{"a":1}}`,
	} {
		if i >= len(got) || got[i] != want {
			t.Errorf("item %d: got %q, want %s", i, got, want)
		}
	}
}

package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
)

func TestAListFindsATaskBehindAThousandThatDoNotMatch(t *testing.T) {
	f := start(t, a2a.Options{})
	f.agent("shout").shouts()
	f.agent("other").shouts()
	want := f.send(rpc, "shout", message("m", "hi", "")).ID
	s := f.hub.Connect(hubIdentity("local"))
	defer s.Close(nil)
	for range 1001 {
		if _, err := s.Open(core.Request{Intent: core.IntentAsk, To: core.ToAgent("other"), Content: "x"}, hub.OpenOptions{Keep: true}); err != nil {
			t.Fatal(err)
		}
		for ended := false; !ended; {
			b, err := s.Next(context.Background())
			if err != nil {
				t.Fatal(err)
			}
			for _, e := range b.Events {
				ended = ended || e.Body.Kind().Ends()
			}
		}
	}
	var found []string
	pages, token := 0, ""
	for ; pages == 0 || token != ""; pages++ {
		_, result, failed := f.call(rpc, "shout", wire.MethodListTasks, fmt.Sprintf(`{"pageToken":%q}`, token))
		var page wire.ListTasksResponse
		if err := json.Unmarshal(result, &page); failed != nil || err != nil {
			t.Fatalf("got %v and %v, want a page", failed, err)
		}
		for _, one := range page.Tasks {
			found = append(found, one.ID)
		}
		token = page.NextPageToken
	}
	if len(found) != 1 || found[0] != want || pages != 2 {
		t.Errorf("got %v in %d pages, want %s in the second", found, pages, want)
	}
}

package acp_test

import (
	"context"
	"net/http/httptest"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
)

func TestTheAnswerToAClosedPostCanBeFetchedIfTasksAreKept(t *testing.T) {
	s := newServer(t, acp.HTTPOptions{Session: acp.Options{KeepTasks: true}})
	taken, release := make(chan struct{}), make(chan struct{})
	s.work("slow", 0, func(p *hub.Session, t *task.Task) {
		taken <- struct{}{}
		<-release
		echo(p, t)
	})
	ctx, cancel := context.WithCancel(t.Context())
	hungUp := make(chan struct{})
	go func() {
		defer close(hungUp)
		envelope := `{"id":"q1","from":"kit","to":"slow","kind":"query","payload":{"question":"how?"}}`
		s.acp.ServeHTTP(httptest.NewRecorder(), httptest.NewRequestWithContext(ctx, "POST", "/acp", strings.NewReader(envelope)))
	}()
	<-taken
	cancel()
	<-hungUp
	close(release)
	r := s.read("kit", "")
	for data := ""; !strings.Contains(data, `"kind":"response"`); { // the hub may send a discover first
		var name string
		if name, data = r.event(); name == "end" {
			t.Fatal("got the end of the stream, want the answer to q1")
		}
		if strings.Contains(data, `"kind":"response"`) && (!strings.Contains(data, `"ref":"q1"`) || !strings.Contains(data, "how?")) {
			t.Errorf("got %s, want the answer to q1", data)
		}
	}
}

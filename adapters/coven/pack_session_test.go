package coven_test

import (
	"context"
	"errors"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"google.golang.org/grpc/codes"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// pack is a pack whose every message the test sends.
type pack struct {
	t       *testing.T
	conn    *coretest.End[*pb.ExecuteToolRequest, *struct{}]
	service *coven.PackService
	end     chan link.Reason
}

// connectPack registers a pack with the named tools. The test must end its connection.
func connectPack(t *testing.T, h *hub.Hub, opts coven.Options, id string, tools ...string) *pack {
	t.Helper()
	server, client := coretest.Pipe[*struct{}, *pb.ExecuteToolRequest](0)
	p := &pack{t, client, coven.NewPackService(h, nil, nil), make(chan link.Reason, 1)}
	m := &pb.PackManifest{PackId: id}
	for _, name := range tools {
		m.Tools = append(m.Tools, &pb.ToolDefinition{Name: name})
	}
	go func() {
		p.end <- coven.ServePack(context.Background(), h, m, func() (coven.PackConn, error) { return server, nil }, opts)
	}()
	synctest.Wait() // it is admitted, or rejected
	t.Cleanup(func() { client.Close(link.Reason{Cause: link.Normal}) })
	return p
}

// call waits for the next call.
func (p *pack) call() *pb.ExecuteToolRequest {
	p.t.Helper()
	m, err := p.conn.Receive(context.Background())
	if err != nil {
		p.t.Fatalf("receive: got error %v, want a call", err)
	}
	return m
}

func (p *pack) answer(m *pb.ExecuteToolResponse) {
	p.t.Helper()
	if _, err := p.service.ToolResult(context.Background(), m); err != nil {
		p.t.Errorf("ToolResult: got error %v, want OK", err)
	}
}

func (p *pack) hangUp() link.Reason {
	p.conn.Close(link.Reason{Cause: link.Normal})
	return <-p.end
}

func TestACallThatIsTooLargeForThePackFailsWithoutBeingSent(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		p := connectPack(t, h, coven.Options{MaxMessageBytes: 1000}, "p", "x")
		a, _ := join(t, h, coven.Options{}, "a")
		a.call("c", "x", `"`+strings.Repeat("x", 1000)+`"`)
		if got := a.result().GetError(); !strings.HasPrefix(got, "too_large: ") || !strings.Contains(got, "1000") {
			t.Errorf("got %q, want too_large with the limit", got)
		}
		a.call("c", "x", `"x"`)
		p.answer(&pb.ExecuteToolResponse{RequestId: p.call().GetRequestId(), Result: &pb.ExecuteToolResponse_OutputJson{OutputJson: "1"}})
		if got := a.result().GetOutputJson(); got != "1" {
			t.Errorf("got %q, want the output of the next call", got)
		}
		a.hangUp()
		p.hangUp()
	})
}

func TestTheErrorOfAPackReachesTheAgentUnchanged(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		p := connectPack(t, h, coven.Options{}, "p", "x")
		a, _ := join(t, h, coven.Options{}, "a")
		long := strings.Repeat("é", 64<<10)
		for sent, want := range map[string]string{
			"execution failed: timeout: no": "execution failed: timeout: no", "": "", long: long[:64<<10],
		} {
			a.call("c", "x", "")
			p.answer(&pb.ExecuteToolResponse{RequestId: p.call().GetRequestId(), Result: &pb.ExecuteToolResponse_Error{Error: sent}})
			if got := a.result().GetError(); got != want {
				t.Errorf("got %.100q, want %.100q", got, want)
			}
		}
		for output, want := range map[string]string{"": "the output of the tool is not JSON", "sunny": "the output of the tool is not JSON"} {
			a.call("c", "x", "")
			p.answer(&pb.ExecuteToolResponse{RequestId: p.call().GetRequestId(), Result: &pb.ExecuteToolResponse_OutputJson{OutputJson: output}})
			if got := a.result().GetError(); got != want {
				t.Errorf("output %q: got %q, want %q", output, got, want)
			}
		}
		a.hangUp()
		p.hangUp()
	})
}

func TestAPackThatReadsNothingLosesItsConnection(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		opts := coven.Options{Link: link.Options{WriteTimeout: 10 * time.Second}}
		p := connectPack(t, h, opts, "p", "x")
		a, _ := join(t, h, coven.Options{}, "a")
		a.call("c", "x", "")
		if got := a.result().GetError(); got != "pack disconnected" {
			t.Errorf("got %q, want the pack to be gone", got)
		}
		if r := <-p.end; r.Cause != link.Slow {
			t.Errorf("got %v, want the connection ended as slow", &r)
		}
		a.hangUp()
	})
}

func TestPacksAnswerCallsWhileTheHubIsStopping(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		p := connectPack(t, h, coven.Options{}, "p", "x")
		a, _ := join(t, h, coven.Options{}, "a")
		q := ask(t, h)
		q.question("a", "go")
		id := a.prompt().GetRequestId()
		a.call("c", "x", "")
		call := p.call()
		closed := make(chan error, 1)
		go func() { closed <- h.Close(context.Background(), "maintenance") }()
		synctest.Wait()
		p.answer(&pb.ExecuteToolResponse{RequestId: call.GetRequestId(), Result: &pb.ExecuteToolResponse_OutputJson{OutputJson: "1"}})
		if got := a.result().GetOutputJson(); got != "1" {
			t.Errorf("got %q, want the output of the pack", got)
		}
		a.done(id, "done")
		if err := <-closed; err != nil {
			t.Error(err)
		}
		if r := <-p.end; r.Code != int(codes.Unavailable) {
			t.Errorf("got %v, want the pack's stream ended as UNAVAILABLE", &r)
		}
		a.hangUp()
	})
}

func TestAPackThatLeftBeforeItWasAcceptedLeavesNoTools(t *testing.T) {
	bubble(t, hub.Options{}, func(t *testing.T, h *hub.Hub) {
		m := &pb.PackManifest{PackId: "p", Tools: []*pb.ToolDefinition{{Name: "x"}}}
		gone := errors.New("gone")
		r := coven.ServePack(context.Background(), h, m, func() (coven.PackConn, error) { return nil, gone }, coven.Options{})
		if r.Cause != link.PeerGone || !errors.Is(&r, gone) {
			t.Errorf("got %v, want the peer gone", &r)
		}
		a, w := join(t, h, coven.Options{}, "a")
		if got := len(w.GetAvailableTools()); got != len(h.Tools()) {
			t.Errorf("got %d tools, want the hub's own", got)
		}
		a.hangUp()
	})
}

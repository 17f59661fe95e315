package e2e

import (
	"bytes"
	"context"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"

	"google.golang.org/protobuf/proto"

	a2a "github.com/dragoman-hub/dragoman/adapters/a2a/client"
	a2awire "github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/adapters/coven"
	editor "github.com/dragoman-hub/dragoman/adapters/editor/client"
	editorwire "github.com/dragoman-hub/dragoman/adapters/editor/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// chunksPerTask is how many chunks an answer has in BenchmarkChunk.
const chunksPerTask = 5000

// scripted is what a scripted agent says: a message, or a number of chunks.
type scripted[In any] struct {
	message In
	chunks  int
}

// script is the connection to an agent that takes no time to speak.
type script[In, Out any] struct {
	steps  chan scripted[In]
	chunk  func() In
	left   int
	answer func(Out, func(scripted[In]))
	closed chan struct{}
}

func (s *script[In, Out]) Receive(ctx context.Context) (In, error) {
	if s.left == 0 {
		select {
		case next := <-s.steps:
			if next.chunks == 0 {
				return next.message, nil
			}
			s.left = next.chunks
		case <-s.closed:
			var none In
			return none, io.EOF
		case <-ctx.Done():
			var none In
			return none, ctx.Err()
		}
	}
	s.left--
	return s.chunk(), nil
}

func (s *script[In, Out]) Send(_ context.Context, m Out) error {
	s.answer(m, func(next scripted[In]) { s.steps <- next })
	return nil
}

func (s *script[In, Out]) Close(link.Reason) error {
	select {
	case <-s.closed:
	default:
		close(s.closed)
	}
	return nil
}

// benchObserver tells when agents join and tasks end.
type benchObserver struct{ joined, ended chan struct{} }

func (o benchObserver) Joined(core.Card) {
	select {
	case o.joined <- struct{}{}:
	default:
	}
}
func (benchObserver) Left(core.AgentID, bool) {}
func (o benchObserver) Appended(_ core.TaskID, e core.Event) {
	if e.Body.Kind().Ends() {
		o.ended <- struct{}{}
	}
}
func (benchObserver) Recorded(core.TaskID, uint64) {}

// BenchmarkChunk measures what a chunk of 64 bytes costs from the bytes of its frame to the log
// of its task, in CPU time of the whole process.
func BenchmarkChunk(b *testing.B) {
	text := strings.Repeat("x", 64)
	b.Run("coven", func(b *testing.B) {
		frame, err := proto.Marshal(&pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: &pb.MessageResponse{
			RequestId: core.NewID(), Event: &pb.MessageResponse_Text{Text: text},
		}}})
		if err != nil {
			b.Fatal(err)
		}
		request := ""
		conn := &script[*pb.AgentMessage, *pb.ServerMessage]{steps: make(chan scripted[*pb.AgentMessage], 4), closed: make(chan struct{})}
		conn.chunk = func() *pb.AgentMessage {
			m := &pb.AgentMessage{}
			if err := proto.Unmarshal(frame, m); err != nil {
				b.Error(err)
			}
			m.GetResponse().RequestId = request
			return m
		}
		conn.answer = func(m *pb.ServerMessage, say func(scripted[*pb.AgentMessage])) {
			if p := m.GetSendMessage(); p != nil {
				request = p.GetRequestId()
				say(scripted[*pb.AgentMessage]{chunks: chunksPerTask})
				say(scripted[*pb.AgentMessage]{message: &pb.AgentMessage{Payload: &pb.AgentMessage_Response{Response: &pb.MessageResponse{RequestId: request, Event: &pb.MessageResponse_Done{Done: &pb.Done{}}}}}})
			}
		}
		conn.steps <- scripted[*pb.AgentMessage]{message: &pb.AgentMessage{Payload: &pb.AgentMessage_Register{Register: &pb.RegisterAgent{AgentId: "a"}}}}
		benchChunks(b, func(ctx context.Context, h *hub.Hub) { coven.Serve(ctx, h, conn, &coven.Options{}) })
	})
	b.Run("editor", func(b *testing.B) {
		frame := editorwire.AppendChunk(nil, "7b8ca3d0-6a8b-4f5e-9a39-27f0a25f9a52", editorwire.UpdateAgentMessageChunk, text, nil)
		conn := &script[[]byte, []byte]{steps: make(chan scripted[[]byte], 4), closed: make(chan struct{})}
		conn.chunk = func() []byte { return bytes.Clone(frame) }
		conn.answer = func(line []byte, say func(scripted[[]byte])) {
			m, fault := jsonrpc.Read(bytes.Clone(line), strictjson.Limits{})
			if fault != nil {
				b.Error(fault)
				return
			}
			result := map[string]string{
				"initialize": `{"protocolVersion":1}`, "session/new": `{"sessionId":"7b8ca3d0-6a8b-4f5e-9a39-27f0a25f9a52"}`, "session/prompt": `{"stopReason":"end_turn"}`,
			}[m.Method]
			if m.Method == "session/prompt" {
				say(scripted[[]byte]{chunks: chunksPerTask})
			}
			if result != "" {
				say(scripted[[]byte]{message: jsonrpc.AppendResult(nil, m.ID, []byte(result))})
			}
		}
		benchHosted(b, editor.New(editor.Options{Dir: "/", Dial: func(context.Context, ...string) (link.Conn[[]byte, []byte], error) { return conn, nil }}))
	})
	for name, metadata := range map[string]string{"a2a": "", "a2a hub": `,"metadata":{"` + a2awire.CursorExtension + `":"1.1234"}`} {
		b.Run(name, func(b *testing.B) {
			const ids = `"taskId":"6603f4b6-d92d-4d9e-8ce5-18f868cd4967","contextId":"d8ddf262-d69d-4491-a444-fd872a2d6ee7",`
			item := func(text string) string { return `data: {"jsonrpc":"2.0","id":1,"result":` + text + "}\n\n" }
			chunk := item(`{"artifactUpdate":{` + ids + `"artifact":{"artifactId":"answer","parts":[{"text":"` + text + `"}]},"append":true` + metadata + `}}`)
			remote := a2aRemote{
				card: `{"name":"a","description":"","version":"1","supportedInterfaces":[{"url":"http://far","protocolBinding":"JSONRPC","protocolVersion":"1.0"}],` +
					`"capabilities":{"streaming":true},"defaultInputModes":[],"defaultOutputModes":[],"skills":[]}`,
				stream: strings.Repeat(chunk, chunksPerTask) + item(`{"statusUpdate":{`+ids+`"status":{"state":"TASK_STATE_COMPLETED"}}}`),
			}
			benchHosted(b, a2a.New(a2a.Options{URL: "http://far", HTTP: &http.Client{Transport: remote}}))
		})
	}
}

// a2aRemote answers every request for a card, and all others with a stream.
type a2aRemote struct{ card, stream string }

func (r a2aRemote) RoundTrip(req *http.Request) (*http.Response, error) {
	media, body := "text/event-stream", r.stream
	if strings.HasSuffix(req.URL.Path, ".json") {
		media, body = "application/json", r.card
	}
	return &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, Body: io.NopCloser(strings.NewReader(body))}, nil
}

// benchHosted is benchChunks of an agent in the hub's own process.
func benchHosted(b *testing.B, a agent.Agent) {
	benchChunks(b, func(ctx context.Context, h *hub.Hub) {
		s := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}, Dialect: "test"})
		defer s.Close(nil)
		var serving sync.WaitGroup
		defer serving.Wait()
		_ = a.Run(ctx, func(p agent.Profile) {
			if err := s.Join(core.Card{ID: "a", Features: p.Features}, hub.JoinOptions{}); err != nil {
				b.Error(err)
			}
			serving.Go(func() { _ = coretest.Serve(ctx, s, a, nil) })
		})
	})
}

// benchChunks serves an agent and asks it until there were enough chunks.
func benchChunks(b *testing.B, serve func(context.Context, *hub.Hub)) {
	o := benchObserver{make(chan struct{}, 1), make(chan struct{})}
	h := hub.New(hub.Options{Observer: o, Journal: journal.NewMemory(journal.Retention{Bytes: 8 << 20}), Limits: hub.Limits{TaskBytes: 1 << 40}})
	ctx, stop := context.WithCancel(b.Context())
	served := make(chan struct{})
	go func() {
		defer close(served)
		serve(ctx, h)
	}()
	<-o.joined
	user := h.Connect(hub.Identity{Principal: core.Principal{ID: "user"}, Dialect: "test"})
	b.ReportAllocs()
	before := cpu(b)
	chunks := 0
	for b.Loop() {
		if chunks%chunksPerTask == 0 {
			if _, err := user.Open(core.Request{To: core.ToAgent("a"), Content: "go"}, hub.OpenOptions{Unwatched: true}); err != nil {
				b.Fatal(err)
			}
			<-o.ended
		}
		chunks++
	}
	tasks := (chunks + chunksPerTask - 1) / chunksPerTask
	b.ReportMetric(float64(cpu(b)-before)/float64(tasks*chunksPerTask), "cpu-ns/chunk")
	user.Close(nil)
	stop()
	<-served
	if err := h.Close(context.WithoutCancel(ctx), "done"); err != nil {
		b.Fatal(err)
	}
}

package e2e

import (
	"context"
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"

	a2a "github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/agent"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/link"
)

// a2aAgent is a remote A2A agent that the conversation plays. It receives the requests of the hub:
// a fetch of the card as {"GET": path}, all others as their bodies. It sends
//
//	{"card": …}      the card
//	{"result": …}    the result of the request that waits, {"error": …} its error
//	{"stream": …}    an item of the stream, which the first one begins
//	{"end": "…"}     the end of the stream, or as "cut" the loss of its connection
type a2aAgent struct {
	ctx      context.Context //nolint:containedctx // ends with the connection
	stop     context.CancelFunc
	requests chan *jsonValue
	answers  chan *http.Response // to the request that waits

	mu     sync.Mutex
	stream *io.PipeWriter // nil where none is open
}

// openA2AAgent starts a remote agent. It returns the agent's end and the function that runs the
// hub's.
func (p *player) openA2AAgent(headers map[string]string) (peerEnd, func() link.Reason, error) {
	id := headers["x-agent-id"]
	if id == "" {
		return nil, nil, fmt.Errorf("want the header X-Agent-Id with the agent that the remote becomes")
	}
	a := &a2aAgent{requests: make(chan *jsonValue, 100), answers: make(chan *http.Response)}
	a.ctx, a.stop = context.WithCancel(p.ctx)
	return a, func() link.Reason { return a.run(p.hub, core.AgentID(id)) }, nil
}

// run is what the supervisor does with an agent of the settings, once.
func (a *a2aAgent) run(h *hub.Hub, id core.AgentID) link.Reason {
	remote := a2a.New(a2a.Options{URL: "http://far.example.com", HTTP: &http.Client{Transport: a}, Count: h.Count})
	s := h.Connect(hub.Identity{Principal: core.Principal{ID: string(id), Dialect: "a2a"}, Dialect: "a2a"})
	defer s.Close(core.NewFault(core.CodeUnreachable, "it was stopped"))
	var hosting sync.WaitGroup
	defer hosting.Wait()
	defer a.stop()
	err := remote.Run(a.ctx, func(p agent.Profile) {
		card := core.Card{ID: id, Name: string(id), Dialect: "a2a", Features: p.Features, Capabilities: p.Capabilities, Metadata: p.Metadata}
		if err := s.Join(card, hub.JoinOptions{}); err == nil {
			hosting.Go(func() { _ = coretest.Serve(a.ctx, s, remote, nil) })
		}
	})
	return link.Reason{Cause: link.Normal, Text: err.Error()}
}

// RoundTrip implements http.RoundTripper.
func (a *a2aAgent) RoundTrip(r *http.Request) (*http.Response, error) {
	frame := &jsonValue{open: '{'}
	if r.Method == http.MethodGet {
		frame.set("GET", textValue(r.URL.Path))
	} else {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			return nil, err
		}
		if frame, err = parseJSON(body); err != nil {
			return nil, err
		}
	}
	a.requests <- frame
	select {
	case resp := <-a.answers:
		if pipe, ok := resp.Body.(*io.PipeReader); ok {
			context.AfterFunc(r.Context(), func() { pipe.CloseWithError(context.Canceled) })
		}
		return resp, nil
	case <-r.Context().Done():
		return nil, r.Context().Err()
	}
}

func (a *a2aAgent) receive(ctx context.Context) (*jsonValue, error) {
	select {
	case v := <-a.requests:
		return v, nil
	case <-ctx.Done():
		return nil, ctx.Err()
	case <-a.ctx.Done():
		return nil, a.ctx.Err()
	}
}

func (a *a2aAgent) send(ctx context.Context, v *jsonValue) error {
	if len(v.keys) != 1 {
		return fmt.Errorf("want one of card, result, error, stream and end")
	}
	a.mu.Lock()
	defer a.mu.Unlock()
	switch key, value := v.keys[0], v.items[0]; key {
	case "card":
		return a.answer(ctx, "application/json", io.NopCloser(strings.NewReader(value.line())))
	case "result", "error":
		return a.answer(ctx, "application/json", io.NopCloser(strings.NewReader(`{"jsonrpc":"2.0","id":1,"`+key+`":`+value.line()+`}`)))
	case "stream":
		if a.stream == nil {
			from, to := io.Pipe()
			if err := a.answer(ctx, "text/event-stream", from); err != nil {
				return err
			}
			a.stream = to
		}
		return a.write("data: {\"jsonrpc\":\"2.0\",\"id\":1,\"result\":" + value.line() + "}\n\n")
	case "end":
		how := error(nil)
		if value.text == "cut" {
			how = io.ErrUnexpectedEOF
		}
		_ = a.stream.CloseWithError(how)
		a.stream = nil
		return nil
	}
	return fmt.Errorf("want one of card, result, error, stream and end, got %s", v.keys[0])
}

// sendRaw writes a line of the stream as it is.
func (a *a2aAgent) sendRaw(_ context.Context, frame []byte) error {
	a.mu.Lock()
	defer a.mu.Unlock()
	return a.write(string(frame) + "\n")
}

func (a *a2aAgent) write(text string) error {
	_, err := io.WriteString(a.stream, text)
	return err
}

// answer answers the request that waits.
func (a *a2aAgent) answer(ctx context.Context, media string, body io.ReadCloser) error {
	select {
	case a.answers <- &http.Response{StatusCode: http.StatusOK, Header: http.Header{"Content-Type": {media}}, Body: body}:
		return nil
	case <-ctx.Done():
		return fmt.Errorf("no request waits for an answer: %w", ctx.Err())
	}
}

func (a *a2aAgent) close(link.Reason) { a.stop() }

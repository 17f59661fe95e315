package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"strconv"
	"strings"
	"sync"
	"time"

	"google.golang.org/grpc"

	wire "github.com/dragoman-hub/dragoman/proto/coven"
	"github.com/dragoman-hub/dragoman/transports/grpcserver"
)

// requesters returns the ways to ask by name. All but pi send the same frames to the hub and
// the relay.
func requesters() map[string]func(ctx context.Context, s server, agent string) (*side, error) {
	return map[string]func(context.Context, server, string) (*side, error){
		"pi": func(ctx context.Context, s server, agent string) (*side, error) {
			if s.name == "relay" {
				return connectRelay(ctx, s.addrs, agent, nil)
			}
			return connectPi(ctx, s.addrs, agent, 0, parallel, nil)
		},
		"rest": func(_ context.Context, s server, agent string) (*side, error) {
			return restSide(s.addrs, agent), nil
		},
		"acp": func(ctx context.Context, s server, agent string) (*side, error) {
			return connectACP(ctx, s.addrs, agent)
		},
		"parallax": func(ctx context.Context, s server, agent string) (*side, error) {
			return connectParallax(ctx, s.addrs, agent)
		},
		"native": func(ctx context.Context, s server, agent string) (*side, error) {
			return connectNative(ctx, s.addrs, agent)
		},
		"coven": connectCoven,
	}
}

// connectACP asks with envelopes of ACP over a WebSocket, as a peer that declared no
// extensions: an answer is one response.
func connectACP(ctx context.Context, at addresses, agent string) (*side, error) {
	s := &wsAsker{question: func(worker int, number int64, chunks int) []byte {
		return fmt.Appendf(nil, `{"v":1,"id":"%d-%d","from":"asker","to":"%s","ts":%d,"kind":"query","ref":null,"payload":{"question":"%d"}}`,
			worker, number, agent, time.Now().UnixMilli(), chunks)
	}}
	return s.open(ctx, at.HTTP, acpPath, http.Header{"X-Agent-Id": {"asker"}}, func(b []byte) error {
		_, rest, answers := bytes.Cut(b, []byte(`,"ref":"`))
		if !answers {
			return nil // discover
		}
		w, rest, err := s.addressed(rest)
		if err != nil {
			return err
		}
		if !bytes.Contains(b, []byte(`,"kind":"response",`)) {
			return w.answered(fmt.Errorf("refused: %s", b))
		}
		return errors.Join(w.read(rest, `"summary":"`), w.answered(nil))
	})
}

// connectNative asks with calls of the native dialect.
func connectNative(ctx context.Context, at addresses, agent string) (*side, error) {
	s := &wsAsker{question: func(worker int, number int64, chunks int) []byte {
		return fmt.Appendf(nil, `{"call":{"id":"%d-%d","act":"open","command":{"request":{"intent":"ask","to":"%s","content":"%d"}}}}`, worker, number, agent, chunks)
	}}
	return s.open(ctx, at.HTTP, nativePath, http.Header{"X-Agent-Id": {"asker"}}, func(b []byte) error {
		_, rest, mine := bytes.Cut(b, []byte(`"call":"`))
		if !mine {
			if bytes.HasPrefix(b, []byte(`{"error"`)) {
				return fmt.Errorf("refused: %s", b)
			}
			return nil // hello, or the result of the call
		}
		w, rest, err := s.addressed(rest)
		switch {
		case err != nil:
			return err
		case bytes.Contains(rest, []byte(`"kind":"text"`)):
			return w.read(rest, `"text":"`)
		case bytes.Contains(rest, []byte(`"kind":"done"`)):
			return w.answered(nil)
		case bytes.Contains(rest, []byte(`"kind":"failed"`)):
			return w.answered(fmt.Errorf("failed: %s", b))
		}
		return nil // opened, assigned
	})
}

// connectParallax asks with task_request, as an agent that declared all extensions.
func connectParallax(ctx context.Context, at addresses, agent string) (*side, error) {
	s := &wsAsker{question: func(worker int, number int64, chunks int) []byte {
		return fmt.Appendf(nil, `{"type":"task_request","id":"%[1]d-%[2]d","payload":{"requestId":"%[1]d-%[2]d","to":"%[3]s","input":{"content":"%[4]d"}}}`,
			worker, number, agent, chunks)
	}}
	registered := make(chan struct{})
	side, err := s.open(ctx, at.HTTP, parallaxPath, http.Header{"X-Agent-Id": {"asker"}}, func(b []byte) error {
		if bytes.Contains(b, []byte(`"type":"registered"`)) {
			close(registered)
			return nil
		}
		_, rest, mine := bytes.Cut(b, []byte(`"requestId":"`))
		if !mine {
			return fmt.Errorf("not what an agent of Parallax expects: %s", b)
		}
		w, _, err := s.addressed(rest)
		switch {
		case err != nil:
			return err
		case bytes.Contains(b, []byte(`"type":"task_accepted"`)):
			return nil
		case bytes.Contains(b, []byte(`"type":"task_progress"`)):
			return w.read(b, `"text":"`)
		case bytes.Contains(b, []byte(`"status":"completed"`)):
			return w.answered(nil)
		}
		return w.answered(fmt.Errorf("refused: %s", b))
	})
	if err != nil {
		return nil, err
	}
	register := []byte(`{"type":"register","id":"register","payload":{"agentId":"asker","capabilities":[],"config":{"extensions":["task_accepted","task_progress","task_request"]}}}`)
	if err := s.link.Send(ctx, register, len(register)); err != nil {
		return nil, errors.Join(err, side.close())
	}
	select {
	case <-registered:
		return side, nil
	case <-s.link.Done():
		return nil, errors.Join(errors.New("the asking agent was not registered"), side.close())
	case <-ctx.Done():
		return nil, errors.Join(context.Cause(ctx), side.close())
	}
}

// restAsker asks over HTTP, with a connection for each worker.
type restAsker struct {
	http *http.Client
	url  string
}

func newRESTClient(at addresses) *restAsker {
	return &restAsker{
		url:  "http://" + at.HTTP + "/v1/tasks?wait=true",
		http: &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: parallel}},
	}
}

// post sends a question and returns the status and the body of the answer.
func (c *restAsker) post(ctx context.Context, question string) (int, []byte, error) {
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, c.url, strings.NewReader(question))
	if err != nil {
		return 0, nil, err
	}
	r.Header.Set("Content-Type", "application/json")
	resp, err := c.http.Do(r)
	if err != nil {
		return 0, nil, err
	}
	defer resp.Body.Close()
	b, err := io.ReadAll(resp.Body)
	return resp.StatusCode, b, err
}

// ask sends a question and returns the bytes of text in the answer.
func (c *restAsker) ask(ctx context.Context, question string) (int, error) {
	status, b, err := c.post(ctx, question)
	if err != nil {
		return 0, err
	}
	_, text, ok := bytes.Cut(b, []byte(`"text":"`))
	n := bytes.IndexByte(text, '"')
	if status != http.StatusOK || !ok || n < 0 || !bytes.Contains(b, []byte(`"state":"done"`)) {
		return 0, fmt.Errorf("refused with status %d: %s", status, b)
	}
	return n, nil
}

func (c *restAsker) close() error {
	c.http.CloseIdleConnections()
	return nil
}

// restSide asks with POST /v1/tasks?wait=true.
func restSide(at addresses, to string) *side {
	c := newRESTClient(at)
	return &side{close: c.close, ask: func(ctx context.Context, _, chunks int) (int, error) {
		return c.ask(ctx, fmt.Sprintf(`{"to":"%s","content":"%d"}`, to, chunks))
	}}
}

// connectRefused asks an unknown agent and wants 404.
func connectRefused(at addresses) *side {
	c := newRESTClient(at)
	return &side{close: c.close, ask: func(ctx context.Context, _, chunks int) (int, error) {
		status, b, err := c.post(ctx, `{"to":"nobody-of-that-name","content":"1"}`)
		if err == nil && status != http.StatusNotFound {
			err = fmt.Errorf("got status %d, want %d: %s", status, http.StatusNotFound, b)
		}
		return chunks * chunkBytes, err
	}}
}

// connectThread asks in a thread that is longer than the history that an agent gets, or with
// fresh in a new thread each time.
func connectThread(ctx context.Context, at addresses, to string, fresh bool) (*side, error) {
	c := newRESTClient(at)
	s := &side{close: c.close, ask: func(ctx context.Context, _, chunks int) (int, error) {
		return c.ask(ctx, fmt.Sprintf(`{"to":"%s","content":"%d"}`, to, chunks))
	}}
	if fresh {
		return s, nil
	}
	s.ask = func(ctx context.Context, _, chunks int) (int, error) {
		return c.ask(ctx, fmt.Sprintf(`{"to":"%s","content":"%d","thread":"long/%s"}`, to, chunks, to))
	}
	const turns, chunks = 32, 64 // 4 KiB an answer
	for range turns {
		if _, err := s.ask(ctx, 0, chunks); err != nil {
			return nil, err
		}
	}
	return s, nil
}

// covenAsker is a client of Coven's ClientService: each worker has a conversation and a stream
// of its events.
type covenAsker struct {
	calls   wire.ClientServiceClient
	workers [parallel]struct {
		askWorker
		key string
	}
	gone   chan struct{} // closed when a stream has ended
	reason error
	once   sync.Once
}

func connectCoven(ctx context.Context, to server, agent string) (*side, error) {
	cc, err := grpcserver.Dial(ctx, to.addrs.GRPC, grpcserver.DialOptions{})
	if err != nil {
		return nil, err
	}
	c := &covenAsker{calls: wire.NewClientServiceClient(cc), gone: make(chan struct{})}
	life, leave := context.WithCancel(context.WithoutCancel(ctx))
	var group sync.WaitGroup
	end := func() error {
		leave()
		group.Wait()
		return cc.Close()
	}
	rest := newRESTClient(to.addrs)
	defer rest.close() //nolint:errcheck // always nil
	for i := range c.workers {
		w := &c.workers[i]
		w.key, w.done = fmt.Sprintf("%s/%d", agent, i), make(chan error, 1)
		// A conversation continues with the agent that answered last.
		if to.name != "relay" {
			if _, err := rest.ask(ctx, fmt.Sprintf(`{"to":"%s","content":"1","thread":"%s"}`, agent, w.key)); err != nil {
				return nil, errors.Join(err, end())
			}
		}
		stream, err := c.calls.StreamEvents(life, &wire.StreamEventsRequest{ConversationKey: w.key})
		if err == nil {
			_, err = stream.Header()
		}
		if err != nil {
			return nil, errors.Join(err, end())
		}
		group.Go(func() { c.read(stream, &w.askWorker) })
	}
	return &side{close: end, ask: c.ask}, nil
}

// read reads the events of a worker's conversation.
func (c *covenAsker) read(stream grpc.ServerStreamingClient[wire.ClientStreamEvent], w *askWorker) {
	for {
		m, err := stream.Recv()
		if err == nil {
			switch p := m.GetPayload().(type) {
			case *wire.ClientStreamEvent_Text:
				w.got.Add(int64(len(p.Text.GetContent())))
			case *wire.ClientStreamEvent_Done:
				err = w.answered(nil)
			case *wire.ClientStreamEvent_Error:
				err = w.answered(errors.New(p.Error.GetMessage()))
			}
		}
		if err != nil {
			c.once.Do(func() {
				c.reason = err
				close(c.gone)
			})
			return
		}
	}
}

func (c *covenAsker) ask(ctx context.Context, worker, chunks int) (int, error) {
	w := &c.workers[worker]
	w.got.Store(0)
	got, err := c.calls.SendMessage(ctx, &wire.ClientSendMessageRequest{
		ConversationKey: w.key, Content: strconv.Itoa(chunks), IdempotencyKey: strconv.FormatInt(benchAsked.Add(1), 10),
	})
	if err != nil {
		return 0, err
	}
	if got.GetStatus() != "accepted" {
		return 0, fmt.Errorf("the message was not accepted: %s", got.GetStatus())
	}
	select {
	case err = <-w.done:
	case <-c.gone:
		err = c.reason
	case <-ctx.Done():
		err = context.Cause(ctx)
	}
	return int(w.got.Load()), err
}

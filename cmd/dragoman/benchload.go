package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"strconv"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// side is the hub or the relay, seen by a client that asks for many workers over one
// connection. Of a frame that comes in it looks at the beginning, and reads on only
// where that says so: what is to be measured is the other end of the connection.
type side struct {
	link       *link.Link[[]byte, []byte]
	question   func(worker int, number int64, chunks int) []byte
	asked      atomic.Int64
	workers    [benchParallel]benchWorker
	wire, text atomic.Int64 // bytes of frames and of text, in bursts
}

// benchWorker asks one question at a time.
type benchWorker struct {
	got  atomic.Int64 // bytes of text that have come
	done chan error
}

func (s *side) multiple() float64 { return float64(s.wire.Load()) / float64(max(1, s.text.Load())) }

type sides struct{ hub, relay *side }

// connectBench connects the client to both sides.
func connectBench(ctx context.Context, hub, relay Addresses) (sides, func() error, error) {
	h, closeHub, err := connectHub(ctx, hub)
	if err != nil {
		return sides{}, nil, err
	}
	r, closeRelay, err := connectRelay(ctx, relay)
	if err != nil {
		return sides{}, nil, errors.Join(err, closeHub())
	}
	return sides{h, r}, func() error { return errors.Join(closeHub(), closeRelay()) }, nil
}

// run has every frame heard, until leave is called.
func (s *side) run(ctx context.Context, conn *ws.Conn, hear func([]byte) error) (leave func() error) {
	s.link = link.New(conn, link.Options{})
	for w := range s.workers {
		s.workers[w].done = make(chan error, 1)
	}
	var group sync.WaitGroup
	group.Go(func() {
		s.link.Run(context.WithoutCancel(ctx), func(_ context.Context, b []byte) error {
			s.wire.Add(int64(len(b)))
			return hear(b)
		}, nil)
	})
	return func() error {
		s.link.Close(link.Reason{Cause: link.Normal})
		group.Wait()
		return nil
	}
}

// ask asks for so many chunks and returns how many bytes of text came.
func (s *side) ask(ctx context.Context, worker, chunks int) (int, error) {
	w := &s.workers[worker]
	w.got.Store(0)
	err := s.exchange(ctx, w, s.question(worker, s.asked.Add(1), chunks))
	return int(w.got.Load()), err
}

// exchange sends a frame for a worker and waits for the end of its answer.
func (s *side) exchange(ctx context.Context, w *benchWorker, frame []byte) error {
	if err := s.link.Send(ctx, frame, len(frame)); err != nil {
		return err
	}
	select {
	case err := <-w.done:
		return err
	case <-s.link.Done():
		end := s.link.Reason()
		return fmt.Errorf("the connection has ended: %w", &end)
	case <-ctx.Done():
		return context.Cause(ctx)
	}
}

// addressed returns the worker whose number rest begins with, and what follows it.
func (s *side) addressed(rest []byte) (*benchWorker, []byte, error) {
	end := max(0, bytes.IndexAny(rest, `-"`))
	n, err := strconv.Atoi(string(rest[:end]))
	if err != nil || n < 0 || n >= len(s.workers) {
		return nil, nil, fmt.Errorf("for a worker that there is not: %s", rest)
	}
	return &s.workers[n], rest[end:], nil
}

// connectHub is a pi client with a session for each worker.
func connectHub(ctx context.Context, at Addresses) (*side, func() error, error) {
	conn, err := dialWS(ctx, place{http: "http://" + at.Pi}, "/", nil, 256<<20)
	if err != nil {
		return nil, nil, err
	}
	command := func(worker int, number int64, rest string) []byte {
		return fmt.Appendf(nil, `{"id":"%d-%d","sessionId":"%d",%s}`, worker, number, worker, rest)
	}
	s := &side{question: func(worker int, number int64, chunks int) []byte {
		return command(worker, number, `"type":"prompt","message":"`+strconv.Itoa(chunks)+`"`)
	}}
	leave := s.run(ctx, conn, s.hearHub)
	for w := range s.workers {
		for _, rest := range []string{`"type":"create_session","agent":"` + benchAgent + `"`, `"type":"switch_session"`} {
			if err := s.exchange(ctx, &s.workers[w], command(w, s.asked.Add(1), rest)); err != nil {
				return nil, nil, errors.Join(err, leave())
			}
		}
	}
	return s, leave, nil
}

// hearHub reads what a pi client needs: pieces of text and responses. The rest of a
// run, told in frames of the same two beginnings, is only counted.
func (s *side) hearHub(b []byte) error {
	const (
		event    = `{"type":"event","sessionId":"`
		piece    = `","event":{"type":"message_update","assistantMessageEvent":{"type":"text_delta",`
		response = `{"id":"`
		nobodys  = `{"type":"response",`
		other    = `{"type":"`
	)
	if rest, ok := bytes.CutPrefix(b, []byte(event)); ok {
		w, rest, err := s.addressed(rest)
		if err != nil || !bytes.HasPrefix(rest, []byte(piece)) {
			return err
		}
		return w.read(rest)
	}
	if rest, ok := bytes.CutPrefix(b, []byte(response)); ok {
		w, rest, err := s.addressed(rest)
		if err != nil {
			return err
		}
		if !bytes.Contains(rest, []byte(`","type":"response",`)) || !bytes.Contains(rest, []byte(`,"success":true`)) {
			err = fmt.Errorf("the hub refused: %s", b)
		}
		return w.answered(err)
	}
	if !bytes.HasPrefix(b, []byte(other)) || bytes.HasPrefix(b, []byte(nobodys)) {
		return fmt.Errorf("not what a pi client expects: %s", b)
	}
	return nil
}

// read counts the text of a delta, up to the next quotation mark: what the agent says
// has none in it.
func (w *benchWorker) read(frame []byte) error {
	_, text, begun := bytes.Cut(frame, []byte(`"delta":"`))
	n := bytes.IndexByte(text, '"')
	if !begun || n < 0 {
		return fmt.Errorf("a delta without its text: %s", frame)
	}
	w.got.Add(int64(n))
	return nil
}

// answered says that the question of the worker has its answer.
func (w *benchWorker) answered(err error) error {
	select {
	case w.done <- err:
		return nil
	default:
		return errors.New("a question was answered twice")
	}
}

// relayFrame is what the plain relay speaks with its client.
type relayFrame struct {
	ID      string `json:"id"`
	Message string `json:"message,omitempty"`
	Delta   string `json:"delta,omitempty"`
	Done    bool   `json:"done,omitempty"`
}

// connectRelay is a client of the plain relay. Its questions have a number, since an
// agent may still hold the id of the one before.
func connectRelay(ctx context.Context, at Addresses) (*side, func() error, error) {
	conn, err := dialWS(ctx, place{http: "http://" + at.HTTP}, "/", nil, 1<<20)
	if err != nil {
		return nil, nil, err
	}
	s := &side{question: func(worker int, number int64, chunks int) []byte {
		return fmt.Appendf(nil, `{"id":"%d-%d","message":"%d"}`, worker, number, chunks)
	}}
	return s, s.run(ctx, conn, s.hearRelay), nil
}

// hearRelay reads a [relayFrame].
func (s *side) hearRelay(b []byte) error {
	rest, ok := bytes.CutPrefix(b, []byte(`{"id":"`))
	if !ok {
		return fmt.Errorf("not what the relay speaks: %s", b)
	}
	w, rest, err := s.addressed(rest)
	if err != nil {
		return err
	}
	if bytes.Contains(rest, []byte(`","delta":"`)) {
		if err := w.read(rest); err != nil {
			return err
		}
	}
	if bytes.HasSuffix(rest, []byte(`,"done":true}`)) {
		return w.answered(nil)
	}
	return nil
}

// takeTurns asks the hub and the relay in turns.
func takeTurns(ctx context.Context, o benchOptions, to sides, atOnce, chunks int) (comparison, error) {
	c := comparison{AtOnce: atOnce, Chunks: chunks}
	for i := range o.rounds + 1 {
		var turns [2]turn
		for n, s := range []*side{to.hub, to.relay} {
			s.wire.Store(0)
			s.text.Store(0)
			var err error
			if turns[n], err = s.turn(ctx, o.each, atOnce, chunks); err != nil {
				return c, err
			}
		}
		if i > 0 { // the first round warms up
			c.add(turns[0], turns[1])
		}
	}
	c.finish()
	return c, nil
}

// turn asks as often as fits into a span of time.
func (s *side) turn(ctx context.Context, span time.Duration, atOnce, chunks int) (turn, error) {
	var mu sync.Mutex
	var t turn
	var first error
	var group sync.WaitGroup
	began := time.Now()
	for w := range atOnce {
		group.Go(func() {
			var mine series
			var err error
			for err == nil && time.Since(began) < span {
				asked := time.Now()
				var n int
				if n, err = s.ask(ctx, w, chunks); err == nil && n != chunks*benchChunk {
					err = fmt.Errorf("got %d bytes of text, want %d: text was lost", n, chunks*benchChunk)
				}
				mine.add(time.Since(asked))
				s.text.Add(int64(n))
			}
			mu.Lock()
			defer mu.Unlock()
			t.took.values = append(t.took.values, mine.values...)
			if first == nil {
				first = err
			}
		})
	}
	group.Wait()
	t.rate = float64(len(t.took.values)*chunks) / time.Since(began).Seconds()
	t.took.sort()
	return t, first
}

package main

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core/link"
)

// question asks for so many chunks and returns how many bytes of text came.
type question func(ctx context.Context, worker, chunks int) (int, error)

// side is the hub or the relay, seen by the client.
type side struct {
	ask        question
	wire, text atomic.Int64 // bytes of frames and of text, in bursts
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

// connectHub is a pi client with a session for each worker. It looks at no more of
// a frame than it needs, so that what is measured is the hub and not the client.
func connectHub(ctx context.Context, at Addresses) (*side, func() error, error) {
	conn, err := dialWS(ctx, place{http: "http://" + at.Pi}, "/", nil, 256<<20)
	if err != nil {
		return nil, nil, err
	}
	s := &side{}
	l := link.New(conn, link.Options{})
	var got [benchParallel]atomic.Int64 // bytes of text, by worker
	var done [benchParallel]chan error
	for w := range done {
		done[w] = make(chan error, 1)
	}
	var group sync.WaitGroup
	group.Go(func() {
		l.Run(context.WithoutCancel(ctx), func(_ context.Context, b []byte) error {
			s.wire.Add(int64(len(b)))
			delta, isDelta := member(b, `"type":"text_delta"`, `"delta":"`)
			id, isResponse := member(b, `"type":"response"`, `"id":"`)
			switch {
			case isDelta:
				session, _ := member(b, "", `"sessionId":"`)
				worker, err := strconv.Atoi(string(session))
				if err != nil {
					return err
				}
				got[worker].Add(int64(len(delta)))
			case isResponse:
				worker, err := strconv.Atoi(strings.SplitN(string(id), "-", 2)[0])
				if err != nil {
					return err
				}
				err = nil
				if bytes.Contains(b, []byte(`"success":false`)) {
					err = fmt.Errorf("the hub refused: %s", b)
				}
				done[worker] <- err
			}
			return nil
		}, nil)
	})
	var asked atomic.Int64
	do := func(ctx context.Context, worker int, command string) error {
		frame := fmt.Appendf(nil, `{"id":"%d-%d","sessionId":"%d",%s}`, worker, asked.Add(1), worker, command)
		if err := l.Send(ctx, frame, len(frame)); err != nil {
			return err
		}
		select {
		case err := <-done[worker]:
			return err
		case <-l.Done():
			return errors.New("the hub has gone")
		case <-ctx.Done():
			return context.Cause(ctx)
		}
	}
	for w := range benchParallel {
		for _, command := range []string{`"type":"create_session","agent":"` + benchAgent + `"`, `"type":"switch_session"`} {
			if err := do(ctx, w, command); err != nil {
				return nil, nil, err
			}
		}
	}
	s.ask = func(ctx context.Context, worker, chunks int) (int, error) {
		got[worker].Store(0)
		err := do(ctx, worker, fmt.Sprintf(`"type":"prompt","message":"%d"`, chunks))
		return int(got[worker].Load()), err
	}
	return s, func() error {
		l.Close(link.Reason{Cause: link.Normal})
		group.Wait()
		return nil
	}, nil
}

// member returns the text that stands behind name in a frame that has mark in it.
func member(frame []byte, mark, name string) ([]byte, bool) {
	if !bytes.Contains(frame, []byte(mark)) {
		return nil, false
	}
	_, rest, ok := bytes.Cut(frame, []byte(name))
	if !ok {
		return nil, false
	}
	text, _, ok := bytes.Cut(rest, []byte(`"`))
	return text, ok
}

// relayFrame is what the plain relay speaks with its client.
type relayFrame struct {
	ID      string `json:"id"`
	Message string `json:"message,omitempty"`
	Delta   string `json:"delta,omitempty"`
	Done    bool   `json:"done,omitempty"`
}

// connectRelay is a client of the plain relay.
func connectRelay(ctx context.Context, at Addresses) (*side, func() error, error) {
	conn, err := dialWS(ctx, place{http: "http://" + at.HTTP}, "/", nil, 1<<20)
	if err != nil {
		return nil, nil, err
	}
	s := &side{}
	l := link.New(conn, link.Options{})
	var got [benchParallel]atomic.Int64
	var asked atomic.Int64
	var done [benchParallel]chan struct{}
	for w := range done {
		done[w] = make(chan struct{}, 1)
	}
	var group sync.WaitGroup
	group.Go(func() {
		l.Run(context.WithoutCancel(ctx), func(_ context.Context, b []byte) error {
			s.wire.Add(int64(len(b)))
			var f relayFrame
			if err := json.Unmarshal(b, &f); err != nil {
				return err
			}
			id, _, _ := strings.Cut(f.ID, "-")
			worker, err := strconv.Atoi(id)
			if err != nil {
				return err
			}
			got[worker].Add(int64(len(f.Delta)))
			if f.Done {
				done[worker] <- struct{}{}
			}
			return nil
		}, nil)
	})
	s.ask = func(ctx context.Context, worker, chunks int) (int, error) {
		got[worker].Store(0)
		// An agent may still hold the id of the question before.
		id := fmt.Sprintf("%d-%d", worker, asked.Add(1))
		b, err := json.Marshal(relayFrame{ID: id, Message: strconv.Itoa(chunks)})
		if err != nil {
			return 0, err
		}
		if err := l.Send(ctx, b, len(b)); err != nil {
			return 0, err
		}
		select {
		case <-done[worker]:
			return int(got[worker].Load()), nil
		case <-l.Done():
			return 0, errors.New("the relay has gone")
		case <-ctx.Done():
			return 0, context.Cause(ctx)
		}
	}
	return s, func() error {
		l.Close(link.Reason{Cause: link.Normal})
		group.Wait()
		return nil
	}, nil
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

package main

import (
	"bytes"
	"context"
	"errors"
	"fmt"
	"net/http"
	"strconv"
	"sync"
	"sync/atomic"

	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// benchAsked numbers the questions of all connections: a server may remember the ids of an
// earlier row.
var benchAsked atomic.Int64

// wsAsker asks for many workers over one WebSocket. It parses only the beginning of most
// frames, since the server is what is measured.
type wsAsker struct {
	into     *side // counts the bytes
	link     *link.Link[[]byte, []byte]
	question func(worker int, number int64, chunks int) []byte
	workers  [parallel]askWorker
}

// askWorker asks one question at a time.
type askWorker struct {
	got  atomic.Int64 // bytes of text received
	done chan error
}

// open connects to a path of a server. take is called with every frame.
func (s *wsAsker) open(ctx context.Context, addr, path string, header http.Header, take func([]byte) error) (*side, error) {
	conn, err := dial(ctx, addr, path, header)
	if err != nil {
		return nil, err
	}
	own := &side{ask: s.ask}
	if s.into == nil {
		s.into = own
	}
	own.close = s.run(ctx, conn, take)
	return own, nil
}

// run calls take with every frame until leave is called.
func (s *wsAsker) run(ctx context.Context, conn *ws.Conn, take func([]byte) error) (leave func() error) {
	s.link = link.New(conn, link.Options{})
	for w := range s.workers {
		s.workers[w].done = make(chan error, 1)
	}
	var group sync.WaitGroup
	group.Go(func() {
		s.link.Run(context.WithoutCancel(ctx), func(_ context.Context, b []byte) error {
			s.into.wire.Add(int64(len(b)))
			return take(b)
		}, nil)
	})
	return func() error {
		s.link.Close(link.Reason{Cause: link.Normal})
		group.Wait()
		return nil
	}
}

// ask asks for chunks and returns the bytes of text in the answer.
func (s *wsAsker) ask(ctx context.Context, worker, chunks int) (int, error) {
	w := &s.workers[worker]
	w.got.Store(0)
	err := s.exchange(ctx, w, s.question(worker, benchAsked.Add(1), chunks))
	return int(w.got.Load()), err
}

// exchange sends a frame for a worker and waits for the end of its answer.
func (s *wsAsker) exchange(ctx context.Context, w *askWorker, frame []byte) error {
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
func (s *wsAsker) addressed(rest []byte) (*askWorker, []byte, error) {
	end := max(0, bytes.IndexAny(rest, `-"`))
	n, err := strconv.Atoi(string(rest[:end]))
	if err != nil || n < 0 || n >= len(s.workers) {
		return nil, nil, fmt.Errorf("for a worker that there is not: %s", rest)
	}
	return &s.workers[n], rest[end:], nil
}

// read counts the text after a member's name up to the next quotation mark: the agents' text
// has none.
func (w *askWorker) read(frame []byte, member string) error {
	_, text, begun := bytes.Cut(frame, []byte(member))
	n := bytes.IndexByte(text, '"')
	if !begun || n < 0 {
		return fmt.Errorf("a delta without its text: %s", frame)
	}
	w.got.Add(int64(n))
	return nil
}

// answered ends the question of the worker.
func (w *askWorker) answered(err error) error {
	select {
	case w.done <- err:
		return nil
	default:
		return errors.New("a question was answered twice")
	}
}

// connectPi connects a pi client with a session for each of n workers from first on. Bytes
// count for into, or for the returned side if that is nil.
func connectPi(ctx context.Context, at addresses, agent string, first, n int, into *side) (*side, error) {
	command := func(worker int, number int64, rest string) []byte {
		return fmt.Appendf(nil, `{"id":"%d-%d","sessionId":"%d",%s}`, worker, number, worker, rest)
	}
	s := &wsAsker{into: into, question: func(worker int, number int64, chunks int) []byte {
		return command(worker, number, `"type":"prompt","message":"`+strconv.Itoa(chunks)+`"`)
	}}
	own, err := s.open(ctx, at.Pi, "/", nil, s.hearPi)
	if err != nil {
		return nil, err
	}
	for w := first; w < first+n; w++ {
		for _, rest := range []string{`"type":"create_session","agent":"` + agent + `"`, `"type":"switch_session"`} {
			if err := s.exchange(ctx, &s.workers[w], command(w, benchAsked.Add(1), rest)); err != nil {
				return nil, errors.Join(err, own.close())
			}
		}
	}
	leave := own.close
	own.close = func() error { // the next row creates sessions of the same names
		end, cancel := context.WithTimeout(context.WithoutCancel(ctx), responseTimeout)
		defer cancel()
		var err error
		for w := first; w < first+n && err == nil; w++ {
			err = s.exchange(end, &s.workers[w], command(w, benchAsked.Add(1), `"type":"delete_session"`))
		}
		return errors.Join(err, leave())
	}
	return own, nil
}

// hearPi reads the frames that a pi client needs: text deltas and responses. Other frames are
// only counted.
func (s *wsAsker) hearPi(b []byte) error {
	const (
		event    = `{"type":"event","sessionId":"`
		piece    = `","event":{"type":"message_update","assistantMessageEvent":{"type":"text_delta",`
		response = `{"id":"`
		noID     = `{"type":"response",`
		other    = `{"type":"`
	)
	if rest, ok := bytes.CutPrefix(b, []byte(event)); ok {
		w, rest, err := s.addressed(rest)
		if err != nil || !bytes.HasPrefix(rest, []byte(piece)) {
			return err
		}
		return w.read(rest, `"delta":"`)
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
	if !bytes.HasPrefix(b, []byte(other)) || bytes.HasPrefix(b, []byte(noID)) {
		return fmt.Errorf("not what a pi client expects: %s", b)
	}
	return nil
}

// relayFrame is a frame between the relay and its counterpart of a pi client.
type relayFrame struct {
	ID      string `json:"id"`
	To      string `json:"to,omitempty"`
	Message string `json:"message,omitempty"`
	Delta   string `json:"delta,omitempty"`
	Done    bool   `json:"done,omitempty"`
}

// connectRelay is the counterpart of connectPi for the relay. Questions are numbered, since an
// agent may still remember the previous id.
func connectRelay(ctx context.Context, at addresses, agent string, into *side) (*side, error) {
	s := &wsAsker{into: into, question: func(worker int, number int64, chunks int) []byte {
		return fmt.Appendf(nil, `{"id":"%d-%d","to":"%s","message":"%d"}`, worker, number, agent, chunks)
	}}
	return s.open(ctx, at.HTTP, "/", nil, s.hearRelay)
}

// hearRelay reads a [relayFrame].
func (s *wsAsker) hearRelay(b []byte) error {
	rest, ok := bytes.CutPrefix(b, []byte(`{"id":"`))
	if !ok {
		return fmt.Errorf("not what the relay speaks: %s", b)
	}
	w, rest, err := s.addressed(rest)
	if err != nil {
		return err
	}
	if bytes.Contains(rest, []byte(`","delta":"`)) {
		if err := w.read(rest, `"delta":"`); err != nil {
			return err
		}
	}
	if bytes.HasSuffix(rest, []byte(`,"done":true}`)) {
		return w.answered(nil)
	}
	return nil
}

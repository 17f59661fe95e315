package e2e

import (
	"bufio"
	"context"
	"fmt"
	"net"
	"net/http"
	"strings"
	"syscall"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// The slow reader takes so much of an answer a second, which a child says as fast as it can. The
// answer of a soak of hours is longer than all buffers of the system, and takes 200 s; that of the short
// one takes 5 s.
const slowBytes = 10_000

func slowChunks() (chunks, size int) {
	if *soakHours > 0 {
		return 5000, 400
	}
	return 1000, 50
}

// readSlowly reads one such answer after the other: every chunk comes once and in order, and the
// child waits for nobody.
func (s *soak) readSlowly() {
	for s.ctx.Err() == nil {
		err := s.readOneSlowly(s.ctx)
		switch {
		case s.ctx.Err() != nil:
		case err != nil:
			s.wrong("the slow reader: %w", err)
		default:
			s.count("rest: read slowly to the end")
		}
	}
}

func (s *soak) readOneSlowly(ctx context.Context) error {
	chunks, size := slowChunks()
	small := net.Dialer{Control: func(_, _ string, c syscall.RawConn) error { // of what the system keeps for it
		return c.Control(func(fd uintptr) { _ = syscall.SetsockoptInt(int(fd), syscall.SOL_SOCKET, syscall.SO_RCVBUF, 4<<10) })
	}}
	slow := &http.Client{Transport: &http.Transport{DialContext: small.DialContext, DisableKeepAlives: true}}
	body := fmt.Sprintf(`{"to":"editor-child","content":"flood %d %d","deadline_ms":60000}`, chunks, size)
	r, err := http.NewRequestWithContext(ctx, http.MethodPost, s.hub.URL+"/v1/tasks", strings.NewReader(body))
	if err != nil {
		return err
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", "text/event-stream")
	began := time.Now()
	resp, err := slow.Do(r)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	if resp.StatusCode != http.StatusCreated && resp.StatusCode != http.StatusOK {
		return fmt.Errorf("got %s, want a stream of events", resp.Status)
	}
	lines := bufio.NewReaderSize(resp.Body, 1<<10)
	var next, taken int
	for seq := uint64(1); ; seq++ {
		e, _, err := readSSE(lines)
		if err != nil {
			return fmt.Errorf("after %d chunks: %w", next, err)
		}
		if e.Seq != seq {
			return fmt.Errorf("got the event %d, want %d", e.Seq, seq)
		}
		if text, is := e.Body.(core.Text); is {
			if want := floodChunk(next, size); text.Text != want {
				return fmt.Errorf("got the chunk %.20q, want %.20q", text.Text, want)
			}
			next++
			taken += len(text.Text)
		}
		if e.Body.Kind().Ends() {
			if next != chunks || e.Body.Kind() != core.KindDone {
				return fmt.Errorf("got %d chunks and the end %+v, want %d and done", next, e.Body, chunks)
			}
			return nil
		}
		if next == chunks/2 && *soakHours > 0 {
			var task struct{ State string }
			if err := s.hub.Get(ctx, resp.Header.Get("Location"), &task); err != nil {
				return err
			}
			if task.State != "done" {
				return fmt.Errorf("when half was read the task was %q, want done: the child waits for nobody", task.State)
			}
		}
		pauseFor(ctx, time.Until(began.Add(time.Duration(taken)*time.Second/slowBytes))) // the pace of the reader
	}
}

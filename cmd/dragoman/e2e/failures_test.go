package e2e

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log/slog"
	"net"
	"net/http"
	"strings"
	"sync"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/coven"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

// Each test of these files is named for a failure that was seen in the field, and uses
// real sockets and processes. docs/failures.md lists them all.

// startAgentWith connects an agent with a handler and returns once it has joined. It leaves when
// the test ends.
func (h *testHub) startAgentWith(t *testing.T, dialect string, id core.AgentID, handle core.Handler) {
	t.Helper()
	ctx, leave := context.WithCancel(context.Background())
	var life sync.WaitGroup
	t.Cleanup(func() {
		leave()
		life.Wait()
	})
	to := client.Hub{URL: h.url(), GRPC: h.service.Addresses().GRPC}
	card := core.Card{ID: id, MaxConcurrent: 4, Features: core.FeatureStreaming | core.FeatureCancellation}
	join := service.Joins()[dialect]
	if dialect == gatewayName {
		join = func(ctx context.Context, to client.Hub, card core.Card, handle core.Handler, _ func(client.AskFunc), _ *slog.Logger) error {
			return joinGateway(ctx, to, card, handle)
		}
	}
	life.Go(func() {
		if err := join(ctx, to, card, handle, func(client.AskFunc) {}, h.log); err != nil && ctx.Err() == nil {
			t.Errorf("the agent %s left: %v", id, err)
		}
	})
	h.await(t, "joined "+string(id))
}

const floodChunks = 5000

var floodTail = " " + strings.Repeat("~", 1280) + "\n"

// sendFlood answers with more chunks than the buffers between the hub and its reader hold.
func sendFlood(_ context.Context, _ core.Request, say func(core.Body) error) error {
	for i := range floodChunks {
		if err := say(core.Text{Text: fmt.Sprintf("%04d", i) + floodTail}); err != nil {
			return err
		}
	}
	return nil
}

// wantFlood fails unless the JSON that was read has every chunk once and in order.
func wantFlood(t *testing.T, who string, raw []byte) {
	t.Helper()
	tail := []byte(strings.ReplaceAll(floodTail, "\n", `\n`))
	for i := range floodChunks {
		at := bytes.Index(raw, tail)
		if at < 4 || string(raw[at-4:at]) != fmt.Sprintf("%04d", i) {
			t.Errorf("%s: got %.40q where chunk %d of %d was due, want every chunk in order", who, raw[max(0, at-4):], i, floodChunks)
			return
		}
		raw = raw[at+len(tail):]
	}
	if at := bytes.Index(raw, tail); at >= 0 {
		t.Errorf("%s: got chunk %s behind the last, want every chunk once", who, raw[at-4:at])
	}
}

// A reader stalls while a Coven agent sends as fast as it can. The agent finishes, another reader
// gets everything, and so does the stalled reader once it continues.
func TestChunkDroppedAtAFullBuffer(t *testing.T) {
	h := newTestHub(t, nil)
	h.startAgentWith(t, coven.Name, "torrent", sendFlood)

	t.Run("REST", func(t *testing.T) {
		key := h.key()
		stalled := restReader(t, h, http.MethodPost, "/v1/tasks", `{"to":"torrent","content":"flood `+key+`"}`)
		defer stalled.Body.Close()
		h.end(t, key)
		quick := restReader(t, h, http.MethodGet, stalled.Header.Get("Location")+"/events", "")
		defer quick.Body.Close()
		for who, resp := range map[string]*http.Response{"the quick reader": quick, "the reader that was stalled": stalled} {
			raw, err := io.ReadAll(resp.Body)
			if err != nil {
				t.Errorf("%s: got %v behind %d bytes, want all", who, err, len(raw))
			}
			wantFlood(t, who, raw)
			if lines := bytes.Split(bytes.TrimSpace(raw), []byte("\n")); !bytes.Contains(lines[len(lines)-1], []byte(`"kind":"done"`)) {
				t.Errorf("%s: got %.100q last, want the end", who, lines[len(lines)-1])
			}
		}
	})
	t.Run("pi", func(t *testing.T) {
		key := h.key()
		ctx, cancel := context.WithTimeout(t.Context(), watchdog)
		defer cancel()
		conn, err := ws.Dial(ctx, "ws://"+h.service.Addresses().Pi+"/?snapshots=none", ws.DialOptions{Limits: ws.Limits{ReadLimit: 256 << 20}})
		if err != nil {
			t.Fatal(err)
		}
		defer conn.Close(link.Reason{Cause: link.Normal})
		var deltas, last []byte
		until := func(part string) {
			t.Helper()
			for {
				frame, err := conn.Receive(ctx)
				if err != nil {
					t.Fatalf("waiting for %s: got %v behind %d bytes of text, want all", part, err, len(deltas))
				}
				switch {
				case bytes.Contains(frame, []byte(`"text_delta"`)):
					deltas = append(deltas, frame...)
				case bytes.Contains(frame, []byte(`"message_end"`)):
					last = frame
				}
				if bytes.Contains(frame, []byte(part)) {
					return
				}
			}
		}
		for _, command := range []string{
			`{"id":"c","type":"create_session","sessionId":"` + key + `","agent":"torrent"}`,
			`{"id":"s","type":"switch_session","sessionId":"` + key + `"}`,
			`{"id":"p","type":"prompt","sessionId":"` + key + `","message":"flood ` + key + `"}`,
		} {
			if err := conn.Send(ctx, []byte(command)); err != nil {
				t.Fatal(err)
			}
		}
		until(`"text_delta"`)
		h.end(t, key) // nothing is read meanwhile
		until(`"agent_end"`)
		wantFlood(t, "the deltas", deltas)
		wantFlood(t, "the message in the end", last)
	})
}

// restReader asks for a stream of JSON lines over a connection with a small receive buffer.
func restReader(t *testing.T, h *testHub, method, path, body string) *http.Response {
	t.Helper()
	slow := &http.Client{Transport: &http.Transport{
		DisableKeepAlives: true,
		DialContext: func(ctx context.Context, network, addr string) (net.Conn, error) {
			c, err := new(net.Dialer).DialContext(ctx, network, addr)
			if err == nil {
				err = c.(*net.TCPConn).SetReadBuffer(256 << 10)
			}
			return c, err
		},
	}}
	r, err := http.NewRequestWithContext(t.Context(), method, h.url()+path, strings.NewReader(body))
	if err != nil {
		t.Fatal(err)
	}
	r.Header.Set("Content-Type", "application/json")
	r.Header.Set("Accept", client.NDJSON)
	resp, err := slow.Do(r)
	if err != nil {
		t.Fatal(err)
	}
	if resp.StatusCode >= 300 {
		t.Fatalf("got %s, want a stream of events", resp.Status)
	}
	return resp
}

// A proxy may cut a stream at any time. The reader comes back with the last event that it has, as
// every EventSource does, and reads exactly what it missed, however often that happens.
func TestStreamCutByAMiddlebox(t *testing.T) {
	const cuts, pieces = 5, 40
	h := newTestHub(t, nil)
	h.startAgentWith(t, coven.Name, "talker", func(ctx context.Context, r core.Request, say func(core.Body) error) error {
		key := parseInstruction(r.Content).key
		for part := range cuts {
			for i := range pieces {
				if err := say(core.Text{Text: fmt.Sprintf("%d.%d ", part, i)}); err != nil {
					return err
				}
			}
			if _, err := h.wait(ctx, fmt.Sprintf("%s cut %d", key, part)); err != nil {
				return err
			}
		}
		return nil
	})
	key := h.key()
	middlebox := newProxy(t, h.service.Addresses().HTTP)
	base := "http://" + middlebox.addr()
	slow := &http.Client{Transport: &http.Transport{DisableKeepAlives: true}}
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	open := func(method, path, body, last string) *http.Response {
		t.Helper()
		r, err := http.NewRequestWithContext(ctx, method, base+path, strings.NewReader(body))
		if err != nil {
			t.Fatal(err)
		}
		r.Header.Set("Content-Type", "application/json")
		r.Header.Set("Accept", "text/event-stream")
		if last != "" {
			r.Header.Set("Last-Event-ID", last)
		}
		resp, err := slow.Do(r)
		if err != nil {
			t.Fatal(err)
		}
		if resp.StatusCode >= 300 {
			t.Fatalf("got %s, want a stream of events", resp.Status)
		}
		return resp
	}

	resp := open(http.MethodPost, "/v1/tasks", `{"to":"talker","content":"talk `+key+`"}`, "")
	events := resp.Header.Get("Location") + "/events"
	var got []core.Event
	last := ""
	read := func(until string) error { // the last chunk to read before the cut
		r := bufio.NewReader(resp.Body)
		for {
			e, id, err := readSSE(r)
			if err != nil {
				return err
			}
			got, last = append(got, e), id
			if b, ok := e.Body.(core.Text); ok && b.Text == until || e.Body.Kind().Ends() {
				return nil
			}
		}
	}
	for part := range cuts {
		// Some chunks are read, the rest is lost on the way.
		if err := read(fmt.Sprintf("%d.%d ", part, pieces/2)); err != nil {
			t.Fatalf("before cut %d: %v", part, err)
		}
		middlebox.cut()
		resp.Body.Close()
		h.signal(fmt.Sprintf("%s cut %d", key, part), nil)
		resp = open(http.MethodGet, events, "", last)
	}
	if err := read("nothing but the end"); err != nil {
		t.Fatalf("behind the last cut: %v", err)
	}
	resp.Body.Close()

	var want strings.Builder
	for part := range cuts {
		for i := range pieces {
			fmt.Fprintf(&want, "%d.%d ", part, i)
		}
	}
	for i, e := range got {
		if e.Seq != uint64(i+1) {
			t.Fatalf("got sequence %d at place %d, want %d: nothing lost, nothing twice", e.Seq, i, i+1)
		}
	}
	if answer := core.Fold(got); answer.Text != want.String() || answer.End != core.KindDone {
		t.Errorf("got the end %s and the text %q, want done and %q", answer.End, answer.Text, want.String())
	}
}

// readSSE reads one event of a task from a stream of server-sent events.
func readSSE(r *bufio.Reader) (e core.Event, id string, err error) {
	var data []byte
	for {
		l, err := r.ReadBytes('\n')
		if err != nil {
			return e, id, errors.Join(err, io.ErrUnexpectedEOF)
		}
		name, value, _ := bytes.Cut(bytes.TrimRight(l, "\n"), []byte(": "))
		switch string(name) {
		case "id":
			id = string(value)
		case "data":
			data = value
		case "":
			if data != nil {
				return e, id, json.Unmarshal(data, &e)
			}
		}
	}
}

package command_test

import (
	"context"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/pi/command"
)

// host performs commands with perform, which answers all with success if it is nil. It has
// no sessions.
type host struct {
	perform  func(*command.Execution) command.Outcome
	admitted int
	frames   [][]byte // announced and sent
}

func (h *host) Find(command.Key) command.Session { return nil }
func (h *host) IsParked(command.Key) bool        { return false }

func (h *host) Perform(x *command.Execution) command.Outcome {
	if h.perform == nil {
		return command.Outcome{}
	}
	return h.perform(x)
}

func (h *host) Admitted(*command.Execution, command.Session) { h.admitted++ }
func (h *host) Replayed(*command.Execution)                  {}

func (h *host) Announce(_ *command.Execution, frame []byte) { h.frames = append(h.frames, frame) }

func (h *host) Respond(_ *command.Execution, frame []byte) { h.Send(frame) }

func (h *host) Recovered(command.Success) {}
func (h *host) Count(string)              {}
func (h *host) Send(frame []byte)         { h.frames = append(h.frames, frame) }
func (h *host) Close()                    {}

// unlimited sets no limit on the rates of commands.
var unlimited = command.Rates{Client: -1, Session: -1, Server: -1, Answers: -1}

// newEngine starts an engine of h with one client, whose frames h takes.
func newEngine(t testing.TB, h *host, opts command.Options) (*command.Engine, *command.Client) {
	e := command.New(h, opts)
	t.Cleanup(e.Close)
	return e, &command.Client{Namespace: command.Namespace{Conn: 1}, Sink: h, Attached: true}
}

func decode(t interface{ Fatalf(string, ...any) }, frame []byte) command.Command {
	c, err := command.Decode(frame, 1<<20)
	if err != nil {
		t.Fatalf("decode(%.80s): %v", frame, err)
	}
	return c
}

// submit has a command executed and returns its response.
func submit(t interface{ Fatalf(string, ...any) }, e *command.Engine, c *command.Client, frame string) string {
	e.Submit(c, decode(t, []byte(frame)), &command.Execution{})
	frames := c.Sink.(*host).frames
	return string(frames[len(frames)-1])
}

// records is a journal in memory.
type records struct {
	mu   sync.Mutex
	kept [][]byte
}

func (r *records) Append(_ context.Context, data ...[]byte) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	r.kept = append(r.kept, data...)
	return nil
}

func (r *records) Replay(_ context.Context, use func(time.Time, []byte) bool) error {
	r.mu.Lock()
	defer r.mu.Unlock()
	for _, data := range r.kept {
		if !use(time.Time{}, data) {
			break
		}
	}
	return nil
}

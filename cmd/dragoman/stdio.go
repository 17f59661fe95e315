package main

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"log/slog"
	"net/http"
	"os"
	"os/signal"
	"sync"
	"syscall"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/transports/stdio"
	"github.com/dragoman-hub/dragoman/transports/ws"
)

func stdioCommand(io streams) *cobra.Command {
	var dialect, snapshots, id string
	c := &cobra.Command{
		Use: "stdio", Short: "Speak pi-server or ACP with a running hub over stdin and stdout", Args: cobra.NoArgs,
		Long: `Connect stdin and stdout to a running hub: one JSON object a line, commands in,
responses and events out. After the end of stdin it waits for the answers to what
was asked and ends.

  echo '{"id":"1","type":"list_sessions"}' | dragoman stdio
  echo '{"v":1,"id":"1","kind":"discover"}' | dragoman stdio --dialect acp --id me`,
	}
	f := c.Flags()
	f.StringVar(&dialect, "dialect", pi.Name, "`dialect`: pi or acp")
	f.StringVar(&snapshots, "snapshots", "", "`what` updates repeat of a growing message, of pi: all or none; default: as the hub says")
	f.StringVar(&id, "id", "", "`id` to speak as, of acp; default: whose the token is, or what from of the first envelope says")
	to := hubFlags(f)
	c.RunE = func(c *cobra.Command, _ []string) error {
		bridges := map[string]struct {
			path  string
			limit int
			owed  func([]byte) (asks string, answers []string)
		}{
			pi.Name:     {"/ws/pi", 64 << 20, owedPi},
			acp.Dialect: {"/ws/acp", acpBytes, owedACP},
		}
		b, ok := bridges[dialect]
		if !ok {
			return &exit{exitUsage, fmt.Errorf("--dialect %q: use pi or acp", dialect)}
		}
		if snapshots != "" {
			if _, err := pi.ParseSnapshots(snapshots); err != nil || dialect != pi.Name {
				return &exit{exitUsage, fmt.Errorf("--snapshots %q: use all or none, with --dialect pi", snapshots)}
			}
			b.path += "?snapshots=" + snapshots
		}
		var as http.Header
		if id != "" {
			if dialect != acp.Dialect {
				return &exit{exitUsage, errors.New("--id is of --dialect acp")}
			}
			if err := core.CheckAgentID(core.AgentID(id)); err != nil {
				return &exit{exitUsage, fmt.Errorf("--id: %s", core.AsFault(err).Message)}
			}
			as = http.Header{"X-Agent-Id": {id}}
		}
		ctx, stop := signal.NotifyContext(c.Context(), syscall.SIGINT, syscall.SIGTERM)
		defer stop()
		conn, err := dialWS(ctx, to.place(), b.path, as, b.limit)
		var turned *core.Fault
		if errors.As(err, &turned) {
			return errors.New(turned.Message)
		}
		if err != nil {
			return err
		}
		local, err := openStdio(io)
		if err != nil {
			return err
		}
		return bridge(ctx, local, conn, b.owed, newLog(io.err, "warn", "auto"))
	}
	return c
}

// openStdio makes a Conn of what the command reads and writes: of our own stdin
// and stdout as they are, so that a blocked read can be woken.
func openStdio(io streams) (*stdio.Conn, error) {
	if io.in == os.Stdin && io.out == os.Stdout {
		return stdio.Std(stdio.Options{})
	}
	return stdio.New(io.in, io.out, stdio.Options{}), nil
}

// debts counts what was asked and not answered yet.
type debts struct {
	mu     sync.Mutex
	open   map[string]int
	closed bool // nothing more will be asked
	paid   chan struct{}
}

func (d *debts) owe(asks string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	if asks != "" {
		d.open[asks]++
	}
}

func (d *debts) pay(answers []string) {
	d.mu.Lock()
	defer d.mu.Unlock()
	for _, a := range answers {
		if d.open[a]--; d.open[a] <= 0 {
			delete(d.open, a)
		}
	}
	d.settle()
}

func (d *debts) close() {
	d.mu.Lock()
	defer d.mu.Unlock()
	d.closed = true
	d.settle()
}

func (d *debts) settle() {
	if d.closed && len(d.open) == 0 {
		select {
		case <-d.paid:
		default:
			close(d.paid)
		}
	}
}

// bridge carries frames both ways until the hub closes, or stdin has ended and
// everything asked was answered.
func bridge(ctx context.Context, local *stdio.Conn, remote *ws.Conn, owed func([]byte) (asks string, answers []string), log *slog.Logger) error {
	d := &debts{open: map[string]int{}, paid: make(chan struct{})}
	up := link.New(remote, wsLink)
	down := link.New(local, link.Options{EOF: d.close})
	var group sync.WaitGroup
	var end link.Reason
	group.Go(func() {
		end = up.Run(ctx, func(ctx context.Context, frame []byte) error {
			_, answers := owed(frame)
			return down.SendThen(ctx, frame, len(frame), func() { d.pay(answers) })
		}, nil)
		down.Close(link.Reason{Cause: link.Normal, Text: "the hub has gone"})
	})
	group.Go(func() {
		down.Run(ctx, func(ctx context.Context, frame []byte) error {
			if len(frame) == 0 {
				return nil
			}
			asks, _ := owed(frame)
			d.owe(asks)
			return up.Send(ctx, frame, len(frame))
		}, func(_ context.Context, r *link.Reject) error {
			log.Warn("a line was left out", "reason", r.Text)
			return nil
		})
	})
	select {
	case <-d.paid:
	case <-up.Done():
	case <-down.Done():
	}
	up.Close(link.Reason{Cause: link.Normal})
	down.Close(link.Reason{Cause: link.Normal})
	group.Wait()
	if end.Cause != link.Normal && end.Cause != link.ShuttingDown {
		return fmt.Errorf("the connection to the hub ended: %w", errors.New(end.Error()))
	}
	return nil
}

// owedPi says that a pi-server frame of the client asks for a response, and whether
// one of the hub is a response. They are counted alone: every frame has one, but one
// that cannot be read has it without its id.
func owedPi(frame []byte) (asks string, answers []string) {
	const response = "response"
	var f struct {
		Type string `json:"type"`
	}
	if err := json.Unmarshal(frame, &f); err == nil && f.Type == response {
		answers = []string{response}
	}
	return response, answers
}

// owedACP says which reply an ACP envelope asks for or is. A delegate that wants
// a report is owed its result, not only the ack.
func owedACP(frame []byte) (asks string, answers []string) {
	var e struct {
		ID      string `json:"id"`
		Ref     string `json:"ref"`
		Kind    string `json:"kind"`
		Payload struct {
			ReportBack *bool `json:"report_back"`
		} `json:"payload"`
	}
	err := json.Unmarshal(frame, &e)
	reply, report := "reply to ", "report on "
	if err != nil || e.Kind == "" {
		return reply + e.ID, nil // what is no envelope is answered with an error
	}
	switch e.Kind {
	case "query", "ping", "discover", "cancel", "hello":
		return reply + e.ID, nil
	case "delegate":
		if e.Payload.ReportBack != nil && !*e.Payload.ReportBack {
			return reply + e.ID, nil
		}
		return report + e.ID, nil
	case "result":
		return "", []string{report + e.Ref}
	case "error":
		return "", []string{report + e.Ref, reply + e.Ref}
	}
	return "", []string{reply + e.Ref}
}

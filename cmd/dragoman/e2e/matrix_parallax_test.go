package e2e

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/link"
	"github.com/dragoman-hub/dragoman/schemas"
)

// parallaxCodes are Parallax's codes for the hub's.
var parallaxCodes = map[core.Code]string{
	core.CodeInvalid: "VALIDATION_ERROR", core.CodeUnauthenticated: "UNAUTHORIZED", core.CodeNotAuthorized: "FORBIDDEN",
	core.CodeUnknownAgent: "NOT_FOUND", core.CodeUnknownTask: "UNKNOWN_TASK", core.CodeUnreachable: "UNREACHABLE",
	core.CodeUnknownDomain: "UNKNOWN_DOMAIN", core.CodeUnknownKind: "UNKNOWN_TYPE", core.CodeUnsupported: "UNSUPPORTED",
	core.CodeOverloaded: "OVERLOADED", core.CodeRateLimited: "RATE_LIMITED", core.CodeTooLarge: "TOO_LARGE", core.CodeTimeout: "TIMEOUT",
	core.CodeCancelled: "CANCELLED", core.CodeConflict: "CONFLICT", core.CodeLoop: "LOOP", core.CodeBudget: "BUDGET_EXCEEDED",
	core.CodeInternal: "INTERNAL_ERROR",
}

// parallaxByExtension is a Parallax agent that asks by the extension task_request. Its requests end
// with its connection.
func parallaxByExtension() *clientDialect {
	failed := func(f *core.Fault) outcome {
		return outcome{End: "task_error", Code: parallaxCodes[f.Code], Message: f.Message, Retry: strconv.FormatBool(f.Retryable)}
	}
	return &clientDialect{
		name:    "Parallax request",
		connect: func(t *testing.T, h *testHub, id string) requester { return connectParallaxAgent(t, h, id) },
		streams: true, data: true, deadlines: true, reports: allReports(),
		done: outcome{End: "completed"}, failed: failed, refused: failed,
		cancelled: func(reason string) outcome { return failed(core.NewFault(core.CodeCancelled, "%s", reason)) },
		reconnects: func(t *testing.T, d *pair) string {
			const id = "phoenix"
			first := connectParallaxAgent(t, d.testHub, id)
			defer first.leave()
			key, x := d.startHalf(t, first, query{})
			first.cut()
			if got := x.wait(t); got.End != "lost" {
				t.Errorf("got %+v, want the connection lost", got)
			}
			d.await(t, "left "+id)
			d.wantCancelled(t, key)
			connectParallaxAgent(t, d.testHub, id).leave() // its id is free again
			return "cancelled"
		},
	}
}

// parallaxFrame is a message of the protocol, with the payload fields that tests read.
type parallaxFrame struct {
	Type    string `json:"type"`
	ID      string `json:"id"`
	Payload struct {
		RequestID string          `json:"requestId"`
		Seq       int             `json:"seq"`
		Text      *string         `json:"text"`
		Status    string          `json:"status"`
		Result    json.RawMessage `json:"result"`
		Retryable *bool           `json:"retryable"`
		Code      string          `json:"code"`
		Message   string          `json:"message"`
		Error     struct{ Code, Message string }

		ToolCall          *acpCall                `json:"toolCall"`
		ToolState         *core.ToolState         `json:"toolState"`
		ToolResult        *core.ToolResult        `json:"toolResult"`
		ApprovalRequested *acpCall                `json:"approvalRequested"`
		ApprovalDecided   *core.ApprovalDecided   `json:"approvalDecided"`
		InjectionAnswered *core.InjectionAnswered `json:"injectionAnswered"`
		Usage             *core.Usage             `json:"usage"`
		File              *core.File              `json:"file"`
	} `json:"payload"`
}

// parallaxAgent is an agent that only asks.
type parallaxAgent struct {
	frames frames
	link   *link.Link[[]byte, []byte]
	done   chan struct{}
	asked  exchanges
	seqs   map[string]int // of the latest progress, by request; used by the reader
}

func connectParallaxAgent(t *testing.T, h *testHub, id string) *parallaxAgent {
	t.Helper()
	f := dialFrames(t, h.service.Addresses().HTTP, "/ws/agent", client.MaxParallaxBytes)
	a := &parallaxAgent{frames: f, link: link.New(f.Conn, link.Options{}), done: make(chan struct{}), seqs: map[string]int{}}
	registered := a.asked.add("register", newExchange())
	go func() {
		defer close(a.done)
		reason := a.link.Run(context.Background(), a.receive, nil)
		a.asked.lost(&reason)
	}()
	err := a.send(t.Context(), "register", "register", map[string]any{
		"agentId": id, "capabilities": []string{"asking"},
		"config": map[string]any{"extensions": []string{"task_accepted", "task_progress", "task_request"}},
	})
	if err != nil {
		t.Fatal(err)
	}
	if got := registered.wait(t); got.End != "registered" {
		t.Fatalf("got %+v in answer to the registration, want registered", got)
	}
	return a
}

func (a *parallaxAgent) send(ctx context.Context, kind, id string, payload map[string]any) error {
	raw := plainJSON(map[string]any{"type": kind, "id": id, "timestamp": "2026-01-02T03:04:05.000Z", "payload": payload})
	return a.link.Send(ctx, raw, len(raw))
}

func (a *parallaxAgent) receive(_ context.Context, raw []byte) error {
	var f parallaxFrame
	if err := json.Unmarshal(raw, &f); err != nil {
		return err
	}
	schema := schemas.Parallax(f.Type)
	if schema == nil {
		return fmt.Errorf("the hub sent a message of type %q", f.Type)
	}
	if err := schema.Validate(raw); err != nil {
		return err
	}
	p := f.Payload
	switch f.Type {
	case "registered":
		a.asked.get("register").end(outcome{End: "registered"})
		return nil
	case "error":
		if x := a.asked.get(f.ID); x != nil {
			x.end(outcome{End: "error", Code: p.Code, Message: p.Message})
			return nil
		}
		return errors.New(p.Message)
	case "disconnect":
		return nil
	}
	x := a.asked.get(p.RequestID)
	if x == nil {
		return fmt.Errorf("got %s for the unknown request %q", f.Type, p.RequestID)
	}
	switch f.Type {
	case "task_progress":
		if a.seqs[p.RequestID]++; p.Seq != a.seqs[p.RequestID] {
			x.violates("got progress %d, want %d", p.Seq, a.seqs[p.RequestID])
		}
		switch {
		case p.Text != nil:
			x.addText(*p.Text)
		case p.ToolCall != nil:
			x.reportBody(core.ToolCall{Name: p.ToolCall.Name, Input: string(p.ToolCall.Input)})
		case p.ToolState != nil:
			x.reportBody(*p.ToolState)
		case p.ToolResult != nil:
			x.reportBody(*p.ToolResult)
		case p.ApprovalRequested != nil:
			x.reportBody(core.ApprovalRequested{Name: p.ApprovalRequested.Name})
		case p.ApprovalDecided != nil:
			x.reportBody(*p.ApprovalDecided)
		case p.InjectionAnswered != nil:
			x.reportBody(*p.InjectionAnswered)
		case p.Usage != nil:
			x.reportBody(*p.Usage)
		case p.File != nil:
			x.reportBody(*p.File)
		}
	case "task_result":
		result := outcome{End: p.Status}
		if string(p.Result) != "null" {
			result.Data = p.Result
		}
		x.end(result)
	case "task_error":
		retry := ""
		if p.Retryable != nil {
			retry = strconv.FormatBool(*p.Retryable)
		}
		x.end(outcome{End: "task_error", Code: p.Error.Code, Message: p.Error.Message, Retry: retry})
	}
	return nil
}

func (a *parallaxAgent) begin(q query) *exchange {
	input := map[string]any{}
	if q.data != nil {
		var members map[string]json.RawMessage
		if err := json.Unmarshal(q.data, &members); err != nil {
			panic(err) // the test's own data
		}
		for name, value := range members {
			input[name] = value
		}
	}
	input["content"] = q.content
	payload := map[string]any{"to": q.to, "input": input}
	if q.deadline > 0 {
		payload["timeout"] = q.deadline.Milliseconds()
	}
	id := parseInstruction(q.content).key
	x := a.asked.add(id, newExchange())
	x.cancel = func(ctx context.Context, reason string) error {
		return a.send(ctx, "task_cancel", "cancel-"+id, map[string]any{"requestId": id, "reason": reason})
	}
	if err := a.send(context.Background(), "task_request", id, payload); err != nil {
		x.lost(err)
	}
	return x
}

func (a *parallaxAgent) cut() {
	a.frames.cut()
	<-a.done
}

func (a *parallaxAgent) leave() {
	a.link.Close(link.Reason{Cause: link.Normal})
	<-a.done
}

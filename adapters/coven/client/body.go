package client

import (
	"context"
	"fmt"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// maxPiece is the most text of one message: it leaves room for the request id.
const maxPiece = maxMessageBytes / 2

// sendBody sends the messages for a body. Text is split between characters to fit into
// messages, structured answers become text, and an end always fits. hasText reports that
// text of the answer was sent before. It blocks for room in the queue until ctx ends or
// the link is closed.
func (w *worker) sendBody(ctx context.Context, request string, body core.Body, hasText bool) error {
	switch b := body.(type) {
	case core.Accepted:
		if b.Estimate <= 0 {
			return nil // the first event implies it
		}
		body = core.Thinking{Text: "estimated time: " + b.Estimate.String()}
	case core.Text:
		if len(b.Text) > maxPiece {
			return w.sendText(ctx, request, b.Text)
		}
	case core.Cancelled:
		body = core.Cancelled{Reason: wire.CutText(b.Reason, maxPiece)}
	case core.Failed:
		text := wire.Unexplained
		if b.Fault != nil {
			text = wire.FaultText(b.Fault)
		}
		body = core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", wire.CutText(text, maxPiece))}
	case core.Done: // most have neither text nor data, and are sent without an allocation
		if b.Text != "" || len(b.Data) > 0 || b.Truncated || b.TokensUsed > 0 {
			return w.sendDone(ctx, request, b, hasText)
		}
	}
	return w.sendResponse(ctx, request, body)
}

// sendDone sends an end. Its numbers become a status line, and its data text.
func (w *worker) sendDone(ctx context.Context, request string, b core.Done, hasText bool) error {
	if note := footnote(b); note != "" {
		if err := w.sendResponse(ctx, request, core.Thinking{Text: note}); err != nil {
			return err
		}
	}
	text, pieces := wire.ValidUTF8(b.Text), ""
	if len(b.Data) > 0 {
		data := core.Fenced("Data", "json", b.Data)
		switch {
		case hasText:
			pieces = "\n\n" + data
		case text != "":
			text += "\n\n" + data
		default:
			text = data
		}
	}
	if len(text) > maxPiece {
		if !hasText {
			pieces = text
		}
		text = "" // full_response is optional: the pieces are the answer
	}
	if pieces != "" {
		if err := w.sendText(ctx, request, pieces); err != nil {
			return err
		}
	}
	return w.sendResponse(ctx, request, core.Done{Text: text})
}

// footnote returns the numbers of Done as a status line.
func footnote(b core.Done) string {
	var notes []string
	if b.Truncated {
		notes = append(notes, "the answer was cut to stay within the token limit")
	}
	if b.TokensUsed > 0 {
		notes = append(notes, fmt.Sprintf("tokens used: %d", b.TokensUsed))
	}
	return strings.Join(notes, "; ")
}

// sendText sends text in pieces.
func (w *worker) sendText(ctx context.Context, request, text string) error {
	for _, piece := range wire.Pieces(text, maxPiece) {
		if err := w.sendResponse(ctx, request, piece); err != nil {
			return err
		}
	}
	return nil
}

func (w *worker) sendResponse(ctx context.Context, request string, b core.Body) error {
	m, err := wire.ResponseOf(request, b, nil)
	if err != nil {
		return err
	}
	return w.respond(ctx, m)
}

// respond sends a response.
func (w *worker) respond(ctx context.Context, m *pb.MessageResponse) error {
	// One allocation: there are many responses.
	whole := &struct {
		pb.AgentMessage
		payload pb.AgentMessage_Response
	}{}
	whole.payload.Response, whole.Payload = m, &whole.payload
	return w.send(ctx, &whole.AgentMessage)
}

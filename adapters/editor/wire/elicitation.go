package wire

import (
	"encoding/json"
	"errors"
	"fmt"
)

// The modes of elicitation.
const (
	ElicitForm = "form"
	ElicitURL  = "url"
)

// ElicitationRequest is the params of elicitation/create: a question to the user, of a session
// or of a request.
type ElicitationRequest struct {
	SessionID  string          `json:"sessionId,omitempty"`
	RequestID  json.RawMessage `json:"requestId,omitempty"`
	ToolCallID string          `json:"toolCallId,omitempty"`
	Mode       string          `json:"mode"`
	Message    string          `json:"message"`
	// RequestedSchema is that of a form.
	RequestedSchema json.RawMessage `json:"requestedSchema,omitempty"`
	// URL and ElicitationID are those of a page to visit.
	URL           string          `json:"url,omitempty"`
	ElicitationID string          `json:"elicitationId,omitempty"`
	Meta          json.RawMessage `json:"_meta,omitempty"`
}

func (r *ElicitationRequest) check() error {
	switch r.Mode {
	case "":
		return errors.New("mode: missing; send form or url")
	case ElicitForm:
		if len(r.RequestedSchema) == 0 {
			return errors.New("requestedSchema: missing; send a schema of an object")
		}
	case ElicitURL:
		return need("url", r.URL)
	default:
		return fmt.Errorf("mode: want form or url, got %.40q", r.Mode)
	}
	return nil
}

// The actions of an answer.
const (
	ElicitAccept  = "accept"
	ElicitDecline = "decline"
	ElicitCancel  = "cancel"
)

// ElicitationResponse is its result.
type ElicitationResponse struct {
	Action string `json:"action"`
	// Content has the values of an accepted form by the names of the schema.
	Content json.RawMessage `json:"content,omitempty"`
	Meta    json.RawMessage `json:"_meta,omitempty"`
}

func (r *ElicitationResponse) check() error { return need("action", r.Action) }

// ElicitationComplete is the params of elicitation/complete: the page was done with.
type ElicitationComplete struct {
	ElicitationID string          `json:"elicitationId"`
	Meta          json.RawMessage `json:"_meta,omitempty"`
}

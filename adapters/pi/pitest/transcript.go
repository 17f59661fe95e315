package pitest

import (
	"encoding/json"
	"strings"

	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
)

// Transcript assembles the events of one session into the text that a client shows: once
// from the deltas and once from the snapshots, so that both can be compared. The zero
// Transcript is empty. It is not safe for concurrent use.
type Transcript struct {
	// Deltas is the concatenated text of all text_delta events.
	Deltas strings.Builder
	// Snapshots is the text of all completed messages of the assistant and of the last
	// snapshot of the current one.
	Snapshots string
	// Kinds are the types of the events, those of updates as message_update/<update type>.
	Kinds []string
	// StopReason and ErrorMessage are those of the last completed message of the assistant.
	StopReason, ErrorMessage string
	// UIRequests are the requests to the user.
	UIRequests []UIRequest

	ended string
}

// UIRequest is an extension_ui_request (section 18.1).
type UIRequest struct {
	RequestID string `json:"requestId"`
	Method    string `json:"method"`
	Title     string `json:"title"`
	Message   string `json:"message"`
}

// Add adds a frame. It ignores frames that are not events of a session.
func (t *Transcript) Add(f Frame) {
	var e struct {
		Type    string          `json:"type"`
		Message json.RawMessage `json:"message"`
		Update  *struct {
			Type  string `json:"type"`
			Delta string `json:"delta"`
		} `json:"assistantMessageEvent"`
	}
	if f.Type != "event" || json.Unmarshal(f.Event, &e) != nil {
		return
	}
	kind := e.Type
	if e.Update != nil {
		kind += "/" + e.Update.Type
		if e.Update.Type == "text_delta" {
			t.Deltas.WriteString(e.Update.Delta)
		}
	}
	t.Kinds = append(t.Kinds, kind)
	var request UIRequest
	if e.Type == "extension_ui_request" && json.Unmarshal(f.Event, &request) == nil {
		t.UIRequests = append(t.UIRequests, request)
		return
	}
	var m struct {
		Role         string `json:"role"`
		StopReason   string `json:"stopReason"`
		ErrorMessage string `json:"errorMessage"`
	}
	if e.Type == "turn_end" || e.Message == nil || json.Unmarshal(e.Message, &m) != nil || m.Role != conversation.RoleAssistant {
		return
	}
	t.Snapshots = t.ended + conversation.Message{JSON: e.Message}.Text()
	if e.Type == "message_end" {
		t.ended = t.Snapshots
		t.StopReason, t.ErrorMessage = m.StopReason, m.ErrorMessage
	}
}

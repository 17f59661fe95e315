package a2a

import (
	"encoding/json"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Done implements [core.Sink].
func (t *translator) Done(e core.Event, b core.Done) error {
	if b.Text != "" && !t.said {
		t.text(b.Text)
	}
	if len(b.Data) > 0 {
		t.artifact(wire.Artifact{ID: artifactData, Parts: []wire.Part{wire.DataPart(b.Data)}}, true)
	}
	return t.end(e, wire.StateCompleted, nil, endMetadata{Truncated: b.Truncated, TokensUsed: b.TokensUsed})
}

// rejected are the faults of tasks that the hub or the agent never took up.
var rejected = map[core.Code]bool{core.CodeUnsupported: true, core.CodeNotAuthorized: true, core.CodeLoop: true, core.CodeBudget: true, core.CodeInvalid: true}

// Failed implements [core.Sink].
func (t *translator) Failed(e core.Event, b core.Failed) error {
	state := wire.StateFailed
	if rejected[b.Fault.Code] {
		state = wire.StateRejected
	}
	return t.end(e, state, textMessage(b.Fault.Message), endMetadata{Fault: b.Fault})
}

// Cancelled implements [core.Sink].
func (t *translator) Cancelled(e core.Event, b core.Cancelled) error {
	return t.end(e, wire.StateCanceled, textMessage(b.Reason), endMetadata{})
}

func textMessage(text string) *wire.Message {
	if text == "" {
		return nil
	}
	return &wire.Message{Parts: []wire.Part{wire.TextPart(text)}}
}

// endMetadata is the metadata of the last update.
type endMetadata struct {
	Usage      *core.Usage `json:"usage,omitempty"`
	Fault      *core.Fault `json:"fault,omitempty"`
	Truncated  bool        `json:"truncated,omitempty"`
	TokensUsed int64       `json:"tokensUsed,omitempty"`
}

// end adds the end of the task. It returns nil, as the methods of a Sink do.
func (t *translator) end(e core.Event, state wire.State, m *wire.Message, metadata endMetadata) error {
	if t.counted {
		metadata.Usage = &t.usage
	}
	var raw json.RawMessage
	if metadata != (endMetadata{}) {
		raw = strictjson.Encode(metadata)
	}
	t.ended, t.approvals, t.questions = true, nil, nil
	t.status(e, state, raw, m)
	return nil
}

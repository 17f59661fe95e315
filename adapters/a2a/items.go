package a2a

import (
	"cmp"
	"encoding/json"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// The artifacts of a task whose agent did not name its own: the text of the answer, and its
// structured data. Files are artifacts of their own.
const (
	artifactAnswer = "answer"
	artifactData   = "data"
	artifactFile   = "file-"
)

// maxPartBytes is the maximum size of a part of text: text that the hub has merged is cut, as
// clients bound the size of an item.
const maxPartBytes = 1 << 20

// translator turns the events of one task into items of a stream. It is a [core.Sink]; items
// has those of the last event. It must get every event of the task from the first on, because
// later items depend on earlier ones: whether an artifact was begun, what else waits for
// people.
type translator struct {
	task, context string

	items []wire.StreamResponse

	assigned  bool
	begun     map[string]bool // artifacts
	current   string          // the artifact that the text belongs to
	files     int
	said      bool // there was text
	usage     core.Usage
	counted   bool // there was usage
	approvals []core.ApprovalRequested
	questions []string // the ids of the open ones
	ended     bool
	at        time.Time // of the last event
}

func newTranslator(t *task.Task) *translator {
	return &translator{task: string(t.ID()), context: string(t.Thread()), begun: map[string]bool{}, current: artifactAnswer}
}

// translate returns the items of an event. They are valid until the next call.
func (t *translator) translate(e core.Event) []wire.StreamResponse {
	t.items, t.at = t.items[:0], e.At
	_ = e.Deliver(t) // no method returns an error
	return t.items
}

// state returns the state that a task is in which has not ended.
func (t *translator) state() wire.State {
	switch {
	case len(t.approvals) > 0 || len(t.questions) > 0:
		return wire.StateInputRequired
	case t.assigned:
		return wire.StateWorking
	}
	return wire.StateSubmitted
}

// interrupted reports whether the task waits for people.
func (t *translator) interrupted() bool {
	return !t.ended && len(t.approvals)+len(t.questions) > 0
}

// status adds an update of the status. The id of its message follows from the event.
func (t *translator) status(e core.Event, state wire.State, metadata json.RawMessage, m *wire.Message) {
	if m != nil && m.ID == "" {
		m.ID, m.Role = t.task+"-"+strconv.FormatUint(e.Seq, 10), wire.RoleAgent
		if e.Epoch > 1 { // its number may have been used before, in what was lost
			m.ID = t.task + "-" + e.Cursor().String()
		}
	}
	t.items = append(t.items, wire.StreamResponse{StatusUpdate: &wire.StatusUpdate{
		TaskID: t.task, ContextID: t.context, Metadata: metadata,
		Status: wire.Status{State: state, Message: m, At: e.At},
	}})
}

// artifact adds parts to an artifact.
func (t *translator) artifact(a wire.Artifact, last bool) {
	t.update(wire.ArtifactUpdate{Artifact: a, LastChunk: last})
}

// update adds an update of an artifact of this task.
func (t *translator) update(u wire.ArtifactUpdate) {
	u.TaskID, u.ContextID, u.Append = t.task, t.context, t.begun[u.Artifact.ID]
	t.begun[u.Artifact.ID] = true
	t.items = append(t.items, wire.StreamResponse{ArtifactUpdate: &u})
}

// tell adds an event without a word of its own as a message of the status: a text for people,
// and the event for programs. It returns nil, as the methods of a Sink do.
func (t *translator) tell(e core.Event, text string) error {
	m := &wire.Message{Metadata: metadataOf(e.Body), Parts: []wire.Part{wire.TextPart(cmp.Or(text, e.Body.Kind().String()))}}
	t.status(e, t.state(), nil, m)
	return nil
}

// metadataOf returns the metadata with an event: its kind and the members of its body.
func metadataOf(b core.Body) json.RawMessage {
	body, err := strictjson.Marshal(b)
	if _, thinking := b.(core.Thinking); thinking || err != nil || len(body) < 2 {
		body = []byte("{}") // what it thinks is the text of the message
	}
	out := fmt.Appendf(nil, `{"%s":{"kind":"%s"`, wire.MetadataEvent, b.Kind())
	if len(body) > 2 {
		out = append(append(out, ','), body[1:len(body)-1]...)
	}
	return append(out, "}}"...)
}

// Opened implements [core.Sink]: a stream begins with the whole task.
func (t *translator) Opened(core.Event, core.Opened) error { return nil }

// Assigned implements [core.Sink].
func (t *translator) Assigned(e core.Event, _ core.Assigned) error {
	t.assigned = true
	t.status(e, t.state(), nil, nil)
	return nil
}

// Accepted implements [core.Sink].
func (t *translator) Accepted(e core.Event, b core.Accepted) error {
	text := "accepted"
	if b.Estimate > 0 {
		text += ", about " + b.Estimate.Round(time.Second).String()
	}
	return t.tell(e, text)
}

// SessionStarted implements [core.Sink].
func (t *translator) SessionStarted(e core.Event, b core.SessionStarted) error {
	return t.tell(e, "session "+b.Session)
}

// SessionLost implements [core.Sink].
func (t *translator) SessionLost(e core.Event, b core.SessionLost) error {
	return t.tell(e, "session lost: "+b.Reason)
}

// Thinking implements [core.Sink].
func (t *translator) Thinking(e core.Event, b core.Thinking) error { return t.tell(e, b.Text) }

// Text implements [core.Sink]. What an agent of the same dialect said around the text names
// the artifact; text without goes on in the same artifact.
func (t *translator) Text(e core.Event, b core.Text) error {
	t.said = true
	if r, said := wire.BesideOf(e.Foreign); said && r.ArtifactUpdate != nil {
		t.beside(*r.ArtifactUpdate, b.Text)
		return nil
	}
	t.text(b.Text)
	return nil
}

// text adds text to the current artifact, in parts of bounded size.
func (t *translator) text(text string) {
	for {
		n := cut(text, maxPartBytes)
		t.artifact(wire.Artifact{ID: t.current, Parts: []wire.Part{wire.TextPart(text[:n])}}, false)
		if text = text[n:]; text == "" {
			return
		}
	}
}

// cut returns where to cut a text of more than n bytes, between characters.
func cut(text string, n int) int {
	if len(text) <= n {
		return len(text)
	}
	for n > 0 && !utf8.RuneStart(text[n]) {
		n--
	}
	return n
}

// beside adds an update that an agent of the same dialect sent, with the text that the event
// took out of it.
func (t *translator) beside(u wire.ArtifactUpdate, text string) {
	if u.Artifact.ID == "" {
		u.Artifact.ID = t.current
	}
	if len(u.Artifact.Parts) == 0 {
		u.Artifact.Parts = []wire.Part{{}}
	}
	if p := &u.Artifact.Parts[0]; p.Kind == 0 {
		p.Kind, p.Text = wire.PartText, text
	}
	t.current = u.Artifact.ID
	t.update(u)
}

// ToolCall implements [core.Sink].
func (t *translator) ToolCall(e core.Event, b core.ToolCall) error {
	return t.tell(e, strings.TrimSpace("calls "+visible.Line(b.Name)+" "+visible.JSON(b.Input)))
}

// ToolState implements [core.Sink].
func (t *translator) ToolState(e core.Event, b core.ToolState) error {
	return t.tell(e, because(b.State.String(), b.Detail))
}

// ToolResult implements [core.Sink].
func (t *translator) ToolResult(e core.Event, b core.ToolResult) error { return t.tell(e, b.Output) }

// ApprovalRequested implements [core.Sink].
func (t *translator) ApprovalRequested(e core.Event, b core.ApprovalRequested) error {
	t.approvals = append(t.approvals, b)
	t.status(e, t.state(), nil, &wire.Message{Parts: []wire.Part{
		wire.TextPart(fmt.Sprintf("May %s be called with %s? Answer in this task with a data part {\"approval\":{\"id\":%q,\"approved\":true,\"input_sha256\":%q}}.", visible.Line(b.Name), visible.JSON(b.Input), b.ID, b.InputSHA256)),
		wire.DataPart(strictjson.Encode(map[string]any{"approval": b})),
	}})
	return nil
}

// ApprovalDecided implements [core.Sink].
func (t *translator) ApprovalDecided(e core.Event, b core.ApprovalDecided) error {
	t.approvals = slices.DeleteFunc(t.approvals, func(a core.ApprovalRequested) bool { return a.ID == b.ID })
	text := "denied"
	if b.Approved {
		text = "approved"
	}
	return t.tell(e, because(text, b.Reason))
}

// QuestionAsked implements [core.Sink]: the view of the questions tells it, to who may answer.
func (t *translator) QuestionAsked(core.Event, core.QuestionAsked) error { return nil }

// QuestionAnswered implements [core.Sink].
func (t *translator) QuestionAnswered(core.Event, core.QuestionAnswered) error { return nil }

// because returns a text for people with its reason, if there is one.
func because(text, reason string) string {
	if reason == "" {
		return text
	}
	return text + ": " + reason
}

// Injected implements [core.Sink].
func (t *translator) Injected(e core.Event, b core.Injected) error { return t.tell(e, b.Content) }

// InjectionAnswered implements [core.Sink].
func (t *translator) InjectionAnswered(e core.Event, b core.InjectionAnswered) error {
	text := "not taken"
	if b.Accepted {
		text = "taken"
	}
	return t.tell(e, because(text, b.Reason))
}

// File implements [core.Sink].
func (t *translator) File(e core.Event, b core.File) error {
	t.files++
	a := wire.Artifact{ID: artifactFile + strconv.Itoa(t.files), Name: b.Name, Parts: []wire.Part{wire.FilePart(b.Name, b.MediaType, b.Data)}}
	if r, said := wire.BesideOf(e.Foreign); said && r.ArtifactUpdate != nil && r.ArtifactUpdate.Artifact.ID != "" {
		u := *r.ArtifactUpdate
		part := a.Parts[0]
		if len(u.Artifact.Parts) > 0 {
			part.Metadata, part.Unknown = u.Artifact.Parts[0].Metadata, u.Artifact.Parts[0].Unknown
		}
		u.Artifact.Parts = []wire.Part{part}
		t.update(u)
		return nil
	}
	t.artifact(a, true)
	return nil
}

// Usage implements [core.Sink]: the sum is in the metadata of the end.
func (t *translator) Usage(_ core.Event, b core.Usage) error {
	t.usage, t.counted = t.usage.Add(b), true
	return nil
}

// Retrying implements [core.Sink].
func (t *translator) Retrying(e core.Event, b core.Retrying) error {
	t.assigned, t.approvals = false, nil
	why := ""
	if b.Fault != nil {
		why = b.Fault.Message
	}
	return t.tell(e, because("another agent is tried", why))
}

// CancelRequested implements [core.Sink].
func (t *translator) CancelRequested(e core.Event, b core.CancelRequested) error {
	return t.tell(e, because("is to be cancelled", b.Reason))
}

// ForeignFrame implements [core.Sink]: an item of this dialect passes as it is.
func (t *translator) ForeignFrame(e core.Event, b core.ForeignFrame) error {
	if r, said := wire.BesideOf(e.Foreign); said {
		if u := r.StatusUpdate; u != nil {
			u.TaskID, u.ContextID = t.task, t.context
			u.Status.State, u.Status.At = t.state(), e.At
		}
		if u := r.ArtifactUpdate; u != nil {
			u.TaskID, u.ContextID, u.Append = t.task, t.context, t.begun[u.Artifact.ID]
			t.begun[u.Artifact.ID] = true
		}
		t.items = append(t.items, r)
		return nil
	}
	return t.tell(e, visible.Line(b.Dialect+" "+b.Name))
}

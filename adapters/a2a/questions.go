package a2a

import (
	"encoding/json"
	"fmt"
	"slices"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// question returns the items for a question to people, or for its end. It is no event of the
// task, so it has no place in the stream that a cursor could name.
func (t *translator) question(u question.Update) []wire.StreamResponse {
	t.items = t.items[:0]
	q := u.Question
	e := core.Event{At: q.Since}
	if t.ended || !slices.Contains(q.Tasks, core.TaskID(t.task)) {
		return nil
	}
	if u.Outcome != nil {
		t.questions = slices.DeleteFunc(t.questions, func(id string) bool { return id == q.ID })
		e.At = time.Now()
		t.status(e, t.state(), nil, &wire.Message{ID: q.ID + "-answer", Role: wire.RoleAgent, Metadata: answered(q.ID), Parts: []wire.Part{wire.TextPart(u.Outcome.String())}})
		return t.items
	}
	if !slices.Contains(t.questions, q.ID) {
		t.questions = append(t.questions, q.ID)
	}
	data := strictjson.Encode(map[string]any{"question": q})
	t.status(e, t.state(), nil, &wire.Message{ID: q.ID, Role: wire.RoleAgent, Parts: []wire.Part{wire.TextPart(visible.Text(q.Text)), wire.DataPart(data)}})
	return t.items
}

// answered is the metadata of the end of a question, which is no event of the task.
func answered(id string) json.RawMessage {
	return fmt.Appendf(nil, `{"%s":{"kind":"question_answered","id":"%s"}}`, wire.MetadataEvent, id)
}

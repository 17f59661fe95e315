package wire

import (
	"bytes"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The values of task_result.payload.status. The page shows the first alone.
const (
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// TaskResult is the payload of task_result (page, "Task Result").
type TaskResult struct {
	About
	Status   string          `json:"status,omitempty"`
	Result   json.RawMessage `json:"result"`
	Duration Count           `json:"duration,omitempty"`
	Metadata ResultMetadata  `json:"metadata,omitzero"`

	read strictjson.Value // what was read of the result
}

// readPayload leaves the result in the message, for it may be long.
func (r *TaskResult) readPayload(payload strictjson.Value) error {
	var in struct {
		TaskResult
		Result strictjson.Value `json:"result"`
	}
	err := payload.Decode(&in)
	*r = in.TaskResult
	r.Result, r.read = in.Result.Raw(), in.Result
	r.Metadata.readMetadata(payload)
	return err
}

// ResultMetadata is what has a meaning in task_result.payload.metadata. Only
// tokensUsed is of the page.
type ResultMetadata struct {
	TokensUsed Count `json:"tokensUsed,omitempty"`
	Truncated  bool  `json:"truncated,omitempty"`
	// Progress is what was said on the way, an item each, for a peer without
	// task_progress.
	Progress []json.RawMessage `json:"progress,omitempty"`
	// ProgressOmitted is how many items did not fit there.
	ProgressOmitted int `json:"progressOmitted,omitempty"`

	read []strictjson.Value // what was read of the progress
}

// readMetadata keeps what was read of the progress beside it.
func (m *ResultMetadata) readMetadata(payload strictjson.Value) {
	m.read = slices.Collect(payload.Get("metadata", "progress").Items())
	for i := range m.Progress {
		m.Progress[i] = m.read[i].Raw()
	}
}

// ResultShape is what has a meaning in task_result.
var ResultShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "status": nil, "result": nil, "metadata": metadataShape,
}

var metadataShape = shape{"tokensUsed": nil, "truncated": nil, "progress": nil}

// Answer is what a result says, taken apart.
type Answer struct {
	Text  string
	Data  json.RawMessage
	Files []core.File
}

// textMembers are the members of a result object that hold its text, best first.
var textMembers = []string{"content", "text", "answer", "summary"}

// read takes a result apart:
//
//   - a string is the text, null is nothing;
//   - an object made of nothing but "content" (a string), "data" and "files", with
//     at least one of the last two, is exactly that;
//   - any other value is the data. The text is then the first of the members
//     "content", "text", "answer" and "summary" that is a string, and "files" is
//     taken out of the data if it is an array of files.
//
// What looks like files but is not exactly that stays in the data.
func read(result strictjson.Value) Answer {
	text, isText := result.Text()
	switch {
	case result.Absent():
		return Answer{}
	case isText:
		return Answer{Text: text}
	case result.Kind() != strictjson.Object:
		return Answer{Data: result.Clone()}
	}
	files, hasFiles := filesOf(result.Get("files"))
	content, hasText := result.Get("content").Text()
	data := result.Get("data")
	rest := result.Len()
	for _, has := range []bool{hasFiles, hasText, data.Exists()} {
		if has {
			rest--
		}
	}
	if rest == 0 && (hasFiles || data.Exists()) {
		return Answer{content, data.Clone(), files}
	}
	a := Answer{Data: result.Clone()}
	for _, name := range textMembers {
		if text, ok := result.Get(name).Text(); ok {
			a.Text = text
			break
		}
	}
	if hasFiles {
		left := Members{}
		for key, value := range result.Members() {
			if string(key) != "files" {
				left[string(key)] = value.Raw()
			}
		}
		if left, err := Marshal(left); err == nil {
			a.Data, a.Files = left, files
		}
	}
	return a
}

// value is the simplest result that read takes apart into a.
func (a Answer) value() (json.RawMessage, error) {
	if len(a.Data) == 0 && len(a.Files) == 0 {
		if a.Text == "" {
			return json.RawMessage("null"), nil
		}
		return Marshal(a.Text)
	}
	if plain := read(strictjson.ParseValid(a.Data)); len(plain.Files) == 0 && bytes.Equal(plain.Data, bytes.TrimSpace(a.Data)) && (a.Text == "" || a.Text == plain.Text) {
		if len(a.Files) == 0 {
			return a.Data, nil
		}
		if whole, err := a.beside(); whole != nil || err != nil {
			return whole, err
		}
	}
	ms := Members{}
	for name, v := range map[string]any{"content": a.Text, "data": a.Data, "files": wireFiles(a.Files)} {
		if (name == "content" && a.Text == "") || (name == "data" && len(a.Data) == 0) || (name == "files" && len(a.Files) == 0) {
			continue
		}
		raw, err := Marshal(v)
		if err != nil {
			return nil, err
		}
		ms[name] = raw
	}
	return Marshal(ms)
}

// beside puts the files into the object that is the data. It returns nil if that
// would read otherwise.
func (a Answer) beside() (json.RawMessage, error) {
	var ms Members
	if json.Unmarshal(a.Data, &ms) != nil || ms == nil || ms["files"] != nil {
		return nil, nil
	}
	if _, text := StringOf(ms["content"]); len(ms) == 0 || (len(ms) == 1 && text) {
		return nil, nil
	}
	files, err := Marshal(wireFiles(a.Files))
	if err != nil {
		return nil, err
	}
	ms["files"] = files
	return Marshal(ms)
}

func wireFiles(files []core.File) []file {
	fs := make([]file, len(files))
	for i, f := range files {
		fs[i] = file(f)
	}
	return fs
}

// filesOf reads an array of files, and whether it is exactly that.
func filesOf(v strictjson.Value) ([]core.File, bool) {
	var fs []*struct {
		Name      *string `json:"name"`
		MediaType string  `json:"mediaType"`
		Data      *[]byte `json:"data"`
	}
	if v.DecodeKnown(&fs) != nil || len(fs) == 0 {
		return nil, false
	}
	files := make([]core.File, len(fs))
	for i, f := range fs {
		if f == nil || f.Name == nil || *f.Name == "" || f.Data == nil {
			return nil, false
		}
		files[i] = core.File{Name: *f.Name, MediaType: f.MediaType, Data: *f.Data}
	}
	return files, true
}

// StringOf reads a JSON string, and whether it is one.
func StringOf(raw json.RawMessage) (string, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// Said are the events that the metadata holds, those that agents do not say among
// them. What is no item is not worth losing the result.
func (m ResultMetadata) Said() []core.Body {
	var bs []core.Body
	for n, raw := range m.Progress {
		var v strictjson.Value
		if n < len(m.read) {
			v = m.read[n]
		}
		var i Item
		if v.Of(raw).Decode(&i) == nil {
			said, _ := i.Bodies()
			bs = append(bs, said...)
		}
	}
	return bs
}

// bodies are the events that the metadata stands for, and whether the text of the
// answer is told by now. streamed says that it came before, as task_progress.
// counted says that the usage did: the page has the sum alone, which otherwise
// counts as output.
func (m ResultMetadata) bodies(streamed, counted bool) ([]core.Body, bool) {
	var bs []core.Body
	told := streamed
	for _, b := range m.Said() {
		k := b.Kind()
		if !SaidByAgent(k) || (k == core.KindText && streamed) {
			continue
		}
		bs = append(bs, b)
		counted = counted || k == core.KindUsage
		told = told || k == core.KindText
	}
	if m.TokensUsed > 0 && !counted {
		bs = append(bs, core.Usage{Output: int64(m.TokensUsed)})
	}
	return bs, told
}

// Bodies are the events that a result stands for, the end last. Where text came
// before, the text of the result is kept in the end alone, where the pieces
// outrank it.
func (r TaskResult) Bodies(streamed, counted bool) []core.Body {
	bs, streamed := r.Metadata.bodies(streamed, counted)
	a := read(r.read.Of(r.Result))
	switch r.Status {
	case StatusFailed:
		end := core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", Or(a.Text, "the agent reported that it failed and gave no reason"))}
		return append(append(bs, a.beyond().partial(streamed)...), end)
	case StatusCancelled:
		return append(append(bs, a.beyond().partial(streamed)...), core.Cancelled{Reason: a.Text})
	}
	done := core.Done{Data: a.Data, Truncated: r.Metadata.Truncated, TokensUsed: int64(r.Metadata.TokensUsed)}
	if streamed {
		done.Text = a.Text
	} else if a.Text != "" {
		bs = append(bs, core.Text{Text: a.Text})
	}
	for _, f := range a.Files {
		bs = append(bs, f)
	}
	return append(bs, done)
}

// partial are the events of an answer whose end is no answer: only a whole one has
// data, so that it is told as text, in JSON.
func (a Answer) partial(streamed bool) []core.Body {
	var bs []core.Body
	text := a.Text
	switch {
	case len(a.Data) > 0:
		if value, err := (Answer{Text: a.Text, Data: a.Data}).value(); err == nil {
			text = string(value)
		}
	case streamed:
		text = "" // the pieces have told it
	}
	if text != "" {
		bs = append(bs, core.Text{Text: text})
	}
	for _, f := range a.Files {
		bs = append(bs, f)
	}
	return bs
}

// beyond is the answer without what its text, taken for a reason, says.
func (a Answer) beyond() Answer {
	if len(a.Data) == 0 {
		a.Text = ""
	}
	return a
}

// ResultOf is the task_result for an answer.
func ResultOf(who About, a Answer) (TaskResult, error) {
	value, err := a.value()
	return TaskResult{About: who, Status: StatusCompleted, Result: value}, err
}

// Or returns the text, or otherwise if that is empty.
func Or(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

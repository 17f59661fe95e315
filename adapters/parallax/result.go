package parallax

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The values of task_result.payload.status. The page shows the first alone.
const (
	statusCompleted = "completed"
	statusFailed    = "failed"
	statusCancelled = "cancelled"
)

// taskResult is the payload of task_result (page, "Task Result").
type taskResult struct {
	about
	Status   string          `json:"status,omitempty"`
	Result   json.RawMessage `json:"result"`
	Duration count           `json:"duration,omitempty"`
	Metadata resultMetadata  `json:"metadata,omitzero"`
}

// resultMetadata is what has a meaning in task_result.payload.metadata. Only
// tokensUsed is of the page.
type resultMetadata struct {
	TokensUsed count `json:"tokensUsed,omitempty"`
	Truncated  bool  `json:"truncated,omitempty"`
	// Progress is what was said on the way, an item each, for a peer without
	// task_progress.
	Progress []json.RawMessage `json:"progress,omitempty"`
	// ProgressOmitted is how many items did not fit there.
	ProgressOmitted int `json:"progressOmitted,omitempty"`
}

var resultShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "status": nil, "result": nil, "metadata": metadataShape,
}

var metadataShape = shape{"tokensUsed": nil, "truncated": nil, "progress": nil}

// answer is what a result says, taken apart.
type answer struct {
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
func read(result json.RawMessage) answer {
	result = bytes.TrimSpace(result)
	switch {
	case len(result) == 0 || string(result) == "null":
		return answer{}
	case result[0] == '"':
		text, _ := stringOf(result)
		return answer{Text: text}
	case result[0] != '{':
		return answer{Data: result}
	}
	var ms members
	if json.Unmarshal(result, &ms) != nil {
		return answer{Data: result}
	}
	files, hasFiles := filesOf(ms["files"])
	content, hasText := stringOf(ms["content"])
	data, hasData := ms["data"]
	rest := len(ms)
	for _, has := range []bool{hasFiles, hasText, hasData} {
		if has {
			rest--
		}
	}
	if rest == 0 && (hasFiles || hasData) {
		return answer{content, data, files}
	}
	a := answer{Data: result}
	for _, name := range textMembers {
		if text, ok := stringOf(ms[name]); ok {
			a.Text = text
			break
		}
	}
	if hasFiles {
		delete(ms, "files")
		if left, err := marshal(ms); err == nil {
			a.Data, a.Files = left, files
		}
	}
	return a
}

// value is the simplest result that read takes apart into a.
func (a answer) value() (json.RawMessage, error) {
	if len(a.Data) == 0 && len(a.Files) == 0 {
		if a.Text == "" {
			return json.RawMessage("null"), nil
		}
		return marshal(a.Text)
	}
	if plain := read(a.Data); len(plain.Files) == 0 && bytes.Equal(plain.Data, bytes.TrimSpace(a.Data)) && (a.Text == "" || a.Text == plain.Text) {
		if len(a.Files) == 0 {
			return a.Data, nil
		}
		if whole, err := a.beside(); whole != nil || err != nil {
			return whole, err
		}
	}
	ms := members{}
	for name, v := range map[string]any{"content": a.Text, "data": a.Data, "files": wireFiles(a.Files)} {
		if (name == "content" && a.Text == "") || (name == "data" && len(a.Data) == 0) || (name == "files" && len(a.Files) == 0) {
			continue
		}
		raw, err := marshal(v)
		if err != nil {
			return nil, err
		}
		ms[name] = raw
	}
	return marshal(ms)
}

// beside puts the files into the object that is the data. It returns nil if that
// would read otherwise.
func (a answer) beside() (json.RawMessage, error) {
	var ms members
	if json.Unmarshal(a.Data, &ms) != nil || ms == nil || ms["files"] != nil {
		return nil, nil
	}
	if _, text := stringOf(ms["content"]); len(ms) == 0 || (len(ms) == 1 && text) {
		return nil, nil
	}
	files, err := marshal(wireFiles(a.Files))
	if err != nil {
		return nil, err
	}
	ms["files"] = files
	return marshal(ms)
}

func wireFiles(files []core.File) []file {
	fs := make([]file, len(files))
	for i, f := range files {
		fs[i] = file(f)
	}
	return fs
}

// filesOf reads an array of files, and whether it is exactly that.
func filesOf(raw json.RawMessage) ([]core.File, bool) {
	raw = bytes.TrimSpace(raw)
	if len(raw) == 0 || raw[0] != '[' {
		return nil, false
	}
	var fs []*struct {
		Name      *string `json:"name"`
		MediaType string  `json:"mediaType"`
		Data      *[]byte `json:"data"`
	}
	if strictjson.DecodeKnown(raw, limits, &fs) != nil || len(fs) == 0 {
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

// stringOf reads a JSON string, and whether it is one.
func stringOf(raw json.RawMessage) (string, bool) {
	if raw = bytes.TrimSpace(raw); len(raw) == 0 || raw[0] != '"' {
		return "", false
	}
	var s string
	return s, json.Unmarshal(raw, &s) == nil
}

// said are the events that the metadata holds, those that agents do not say among
// them. What is no item is not worth losing the result.
func (m resultMetadata) said() []core.Body {
	var bs []core.Body
	for _, raw := range m.Progress {
		var i item
		if strictjson.Decode(raw, limits, &i) == nil {
			said, _ := i.bodies()
			bs = append(bs, said...)
		}
	}
	return bs
}

// bodies are the events that the metadata stands for, and whether the text of the
// answer is told by now. streamed says that it came before, as task_progress.
// counted says that the usage did: the page has the sum alone, which otherwise
// counts as output.
func (m resultMetadata) bodies(streamed, counted bool) ([]core.Body, bool) {
	var bs []core.Body
	told := streamed
	for _, b := range m.said() {
		k := b.Kind()
		if !saidByAgent(k) || (k == core.KindText && streamed) {
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

// bodies are the events that a result stands for, the end last. Where text came
// before, the text of the result is kept in the end alone, where the pieces
// outrank it.
func (r taskResult) bodies(streamed, counted bool) []core.Body {
	bs, streamed := r.Metadata.bodies(streamed, counted)
	a := read(r.Result)
	switch r.Status {
	case statusFailed:
		end := core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", orText(a.Text, "the agent reported that it failed and gave no reason"))}
		return append(append(bs, a.beyond().partial(streamed)...), end)
	case statusCancelled:
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
func (a answer) partial(streamed bool) []core.Body {
	var bs []core.Body
	text := a.Text
	switch {
	case len(a.Data) > 0:
		if value, err := (answer{Text: a.Text, Data: a.Data}).value(); err == nil {
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
func (a answer) beyond() answer {
	if len(a.Data) == 0 {
		a.Text = ""
	}
	return a
}

// resultOf is the task_result for an answer.
func resultOf(who about, a answer) (taskResult, error) {
	value, err := a.value()
	return taskResult{about: who, Status: statusCompleted, Result: value}, err
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

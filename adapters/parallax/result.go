package parallax

import (
	"bytes"
	"encoding/json"

	"github.com/dragoman-hub/dragoman/core"
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
	// Progress is what was said on the way, for a peer without task_progress.
	Progress []item `json:"progress,omitempty"`
	// ProgressOmitted is how many items did not fit there.
	ProgressOmitted int `json:"progressOmitted,omitempty"`
}

var resultShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "status": nil, "result": nil,
	"metadata": shape{"tokensUsed": nil, "truncated": nil, "progress": nil},
}

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
	if core.DecodeJSONStrict(raw, limits, &fs) != nil || len(fs) == 0 {
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

// bodies are the events that a result stands for, the end last. streamed says
// that the text came before, as task_progress: then the text of the result is
// kept in the end alone, where the pieces outrank it. counted says that the usage
// did: the page has the sum alone, which otherwise counts as output.
func (r taskResult) bodies(streamed, counted bool) []core.Body {
	var bs []core.Body
	for _, i := range r.Metadata.Progress {
		said, _ := i.bodies() // what cannot be said is not worth losing the result
		for _, b := range said {
			if k := b.Kind(); k != core.KindText && saidByAgent(k) {
				bs = append(bs, b)
				counted = counted || k == core.KindUsage
			}
		}
	}
	if r.Metadata.TokensUsed > 0 && !counted {
		bs = append(bs, core.Usage{Output: int64(r.Metadata.TokensUsed)})
	}
	a := read(r.Result)
	switch r.Status {
	case statusFailed:
		return append(bs, core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", orText(a.Text, "the agent reported that it failed and gave no reason"))})
	case statusCancelled:
		return append(bs, core.Cancelled{Reason: a.Text})
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

// resultOf is the task_result for an answer.
func resultOf(who about, a answer, tokens int64, truncated bool) (taskResult, error) {
	value, err := a.value()
	return taskResult{
		about: who, Status: statusCompleted, Result: value,
		Metadata: resultMetadata{TokensUsed: count(tokens), Truncated: truncated},
	}, err
}

func orText(text, otherwise string) string {
	if text == "" {
		return otherwise
	}
	return text
}

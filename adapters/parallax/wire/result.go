package wire

import (
	"bytes"
	"cmp"
	"encoding/json"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// The values of task_result.payload.status. The page shows only the first.
const (
	StatusCompleted = "completed"
	StatusFailed    = "failed"
	StatusCancelled = "cancelled"
)

// TaskResult is the payload of task_result (page, "Task Result").
type TaskResult struct {
	TaskRef
	Status   string          `json:"status,omitempty"`
	Result   json.RawMessage `json:"result"`
	Duration Count           `json:"duration,omitempty"`
	Metadata ResultMetadata  `json:"metadata,omitzero"`

	parsed strictjson.Value // of Result
}

// readPayload does not copy the result, which may be long.
func (r *TaskResult) readPayload(payload strictjson.Value) error {
	var in struct {
		TaskResult
		Result strictjson.Value `json:"result"`
	}
	err := payload.Decode(&in)
	*r = in.TaskResult
	r.Result, r.parsed = in.Result.Raw(), in.Result
	r.Metadata.readProgress(payload)
	return err
}

// ResultMetadata is what the hub reads of task_result.payload.metadata. The page has
// only tokensUsed.
type ResultMetadata struct {
	TokensUsed Count `json:"tokensUsed,omitempty"`
	Truncated  bool  `json:"truncated,omitempty"`
	// Progress is what came before the end, one Item each, for a peer without
	// task_progress.
	Progress []json.RawMessage `json:"progress,omitempty"`
	// ProgressOmitted counts the items that did not fit there.
	ProgressOmitted int `json:"progressOmitted,omitempty"`

	parsed []strictjson.Value // of Progress
}

// readProgress keeps the parsed items of the progress.
func (m *ResultMetadata) readProgress(payload strictjson.Value) {
	m.parsed = slices.Collect(payload.Get("metadata", "progress").Items())
	for i := range m.Progress {
		m.Progress[i] = m.parsed[i].Raw()
	}
}

// ResultShape names the members of task_result that the hub knows.
var ResultShape = shape{
	"requestId": nil, "taskId": nil, "executionId": nil, "status": nil, "result": nil, "metadata": metadataShape,
}

var metadataShape = shape{"tokensUsed": nil, "truncated": nil, "progress": nil}

// textMembers are the members of a result object that may hold its text, the preferred
// one first.
var textMembers = []string{"content", "text", "answer", "summary"}

// parseResult splits a result into text, data and files:
//
//   - a string is the text, null is nothing;
//   - an object with no members but "content" (a string), "data" and "files", and at
//     least one of the last two, is exactly that;
//   - any other value is the data. The text is then the first of the members
//     "content", "text", "answer" and "summary" that is a string, and "files" is
//     removed from the data if it is an array of files.
//
// Files in any other form stay in the data.
func parseResult(result strictjson.Value) core.Answer {
	text, isText := result.Text()
	switch {
	case result.Absent():
		return core.Answer{}
	case isText:
		return core.Answer{Text: text}
	case result.Kind() != strictjson.Object:
		return core.Answer{Data: result.Clone()}
	}
	files, hasFiles := filesOf(result.Get("files"))
	content, hasText := result.Get("content").Text()
	data := result.Get("data")
	others := result.Len()
	for _, has := range []bool{hasFiles, hasText, data.Exists()} {
		if has {
			others--
		}
	}
	if others == 0 && (hasFiles || data.Exists()) {
		return core.Answer{Text: content, Data: data.Clone(), Files: files}
	}
	a := core.Answer{Data: result.Clone()}
	for _, name := range textMembers {
		if text, ok := result.Get(name).Text(); ok {
			a.Text = text
			break
		}
	}
	if hasFiles {
		rest := Members{}
		for key, value := range result.Members() {
			if string(key) != "files" {
				rest[string(key)] = value.Raw()
			}
		}
		if rest, err := strictjson.Marshal(rest); err == nil {
			a.Data, a.Files = rest, files
		}
	}
	return a
}

// EncodeResult returns the simplest result that is read as the text, data and files of a.
func EncodeResult(a core.Answer) (json.RawMessage, error) {
	if len(a.Data) == 0 && len(a.Files) == 0 {
		if a.Text == "" {
			return json.RawMessage("null"), nil
		}
		return strictjson.Marshal(a.Text)
	}
	if plain := parseResult(strictjson.ParseValid(a.Data)); len(plain.Files) == 0 && bytes.Equal(plain.Data, bytes.TrimSpace(a.Data)) && (a.Text == "" || a.Text == plain.Text) {
		if len(a.Files) == 0 {
			return a.Data, nil
		}
		if whole, err := addFiles(a.Data, a.Files); whole != nil || err != nil {
			return whole, err
		}
	}
	parts := map[string]any{}
	if a.Text != "" {
		parts["content"] = a.Text
	}
	if len(a.Data) > 0 {
		parts["data"] = a.Data
	}
	if len(a.Files) > 0 {
		parts["files"] = wireFiles(a.Files)
	}
	return strictjson.Marshal(parts)
}

// addFiles adds the member files to an object. It returns nil if the sum would be read
// differently.
func addFiles(data json.RawMessage, files []core.File) (json.RawMessage, error) {
	var ms Members
	if json.Unmarshal(data, &ms) != nil || ms == nil || ms["files"] != nil {
		return nil, nil
	}
	if _, isText := Unquoted(ms["content"]); len(ms) == 0 || (len(ms) == 1 && isText) {
		return nil, nil
	}
	var err error
	if ms["files"], err = strictjson.Marshal(wireFiles(files)); err != nil {
		return nil, err
	}
	return strictjson.Marshal(ms)
}

func wireFiles(files []core.File) []file {
	fs := make([]file, len(files))
	for i, f := range files {
		fs[i] = file(f)
	}
	return fs
}

// filesOf reads an array of files, and reports whether the value is exactly that.
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

// Bodies returns the events in Progress, including kinds that agents may not send. An
// item that cannot be read is skipped: the result matters more.
func (m ResultMetadata) Bodies() []core.Body {
	var bs []core.Body
	for n, raw := range m.Progress {
		var v strictjson.Value
		if n < len(m.parsed) {
			v = m.parsed[n]
		}
		var i Item
		if v.Of(raw).Decode(&i) == nil {
			bodies, _ := i.Bodies()
			bs = append(bs, bodies...)
		}
	}
	return bs
}

// events returns the events that the metadata adds before the end, and whether the text
// of the answer has been sent by then. streamed reports that text came as task_progress,
// counted that usage did. The page has only the sum of tokens, which counts as output
// unless usage came.
func (m ResultMetadata) events(streamed, counted bool) (bs []core.Body, textSent bool) {
	textSent = streamed
	for _, b := range m.Bodies() {
		k := b.Kind()
		if !AgentMaySend(k) || (k == core.KindText && streamed) {
			continue
		}
		bs = append(bs, b)
		counted = counted || k == core.KindUsage
		textSent = textSent || k == core.KindText
	}
	if m.TokensUsed > 0 && !counted {
		bs = append(bs, core.Usage{Output: int64(m.TokensUsed)})
	}
	return bs, textSent
}

// Bodies returns the events of a result, the end last. streamed reports that text came
// as task_progress, counted that usage did. If text came before, the text of the result
// is only in the end, where the streamed text takes precedence.
func (r TaskResult) Bodies(streamed, counted bool) []core.Body {
	bs, streamed := r.Metadata.events(streamed, counted)
	a := parseResult(r.parsed.Of(r.Result))
	if r.Status == StatusFailed || r.Status == StatusCancelled {
		reason := a.Text
		if len(a.Data) == 0 {
			a.Text = "" // it is the reason and nothing else
		}
		bs = append(bs, partialBodies(a, streamed)...)
		if r.Status == StatusCancelled {
			return append(bs, core.Cancelled{Reason: reason})
		}
		return append(bs, core.Failed{Fault: core.NewFault(core.CodeInternal, "%s", cmp.Or(reason, "the agent reported that it failed and gave no reason"))})
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

// partialBodies returns the events of an answer whose task was not done. Only a whole
// answer has data, so data becomes text, as JSON.
func partialBodies(a core.Answer, streamed bool) []core.Body {
	var bs []core.Body
	text := a.Text
	switch {
	case len(a.Data) > 0:
		if value, err := EncodeResult(core.Answer{Text: a.Text, Data: a.Data}); err == nil {
			text = string(value)
		}
	case streamed:
		text = ""
	}
	if text != "" {
		bs = append(bs, core.Text{Text: text})
	}
	for _, f := range a.Files {
		bs = append(bs, f)
	}
	return bs
}

// ResultOf returns the task_result for an answer.
func ResultOf(ref TaskRef, a core.Answer) (TaskResult, error) {
	value, err := EncodeResult(a)
	return TaskResult{TaskRef: ref, Status: StatusCompleted, Result: value}, err
}

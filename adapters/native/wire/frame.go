package wire

import (
	"encoding/json"
	"errors"
	"fmt"
	"maps"
	"slices"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// Dialect is the name of the dialect in cards, principals and foreign members.
const Dialect = "native"

// Version is the version of the dialect that this package speaks.
const Version = 1

// Frame is a frame of a peer: a [Greeting], [Call], [Event], [Answer], [Progress], [Ask], [Load],
// [Vitals] or [Tools].
type Frame interface{ frame() }

// Greeting names the version of the dialect that a peer speaks.
type Greeting struct {
	Native int64 `json:"native"`
}

// Answer is the result of a tool of a pack: Output, or Error if it failed.
type Answer struct {
	Execution string          `json:"execution"`
	Output    json.RawMessage `json:"output,omitempty"`
	Error     *core.Fault     `json:"error,omitempty"`
}

// Progress says how far an execution of a pack is.
type Progress struct {
	ID        string `json:"id,omitempty"`
	Execution string `json:"execution"`
	Detail    string `json:"detail"`
}

// Ask puts a question to the people of a task of the agent, or of the caller of an execution of
// the pack. Question is a [question.Question], of which only what is asked is read.
type Ask struct {
	ID        string           `json:"id"`
	Task      core.TaskID      `json:"task,omitempty"`
	Execution string           `json:"execution,omitempty"`
	Question  strictjson.Value `json:"question"`
}

// Load is the load that an agent reports.
type Load struct {
	ID    string         `json:"id,omitempty"`
	State core.LoadState `json:"state"`
}

// Vitals is the health that an agent reports.
type Vitals struct {
	ID      string             `json:"id,omitempty"`
	Status  string             `json:"status,omitempty"`
	Active  int                `json:"active,omitempty"`
	Metrics map[string]float64 `json:"metrics,omitempty"`
}

// Tools asks for the tools that the peer may call, and for their changes.
type Tools struct {
	ID string `json:"id"`
}

func (Greeting) frame() {}
func (Call) frame()     {}
func (Event) frame()    {}
func (Answer) frame()   {}
func (Progress) frame() {}
func (Ask) frame()      {}
func (Load) frame()     {}
func (Vitals) frame()   {}
func (Tools) frame()    {}

// Refusal is an error about a frame, with the names that the frame gave.
type Refusal struct {
	ID        string          `json:"id,omitempty"`
	Task      core.TaskID     `json:"task,omitempty"`
	Execution string          `json:"execution,omitempty"`
	Output    json.RawMessage `json:"output,omitempty"`
	Fault     *core.Fault     `json:"fault"`
	Fatal     bool            `json:"fatal,omitempty"`
}

// Error implements error.
func (r *Refusal) Error() string { return r.Fault.Error() }

// Unwrap returns the Fault.
func (r *Refusal) Unwrap() error { return r.Fault }

// frames reads the frames of a peer by their names, but events and calls.
var frames = map[string]func(strictjson.Value) (Frame, error){
	"hello":    readGreeting,
	"answer":   readAnswer,
	"progress": readProgress,
	"ask":      readAsk,
	"load":     readLoad,
	"vitals":   readVitals,
	"tools":    readTools,
}

// frameNames is for errors.
const frameNames = "call, event, answer, progress, ask, load, vitals, tools or hello"

// Decode reads a frame of a peer of at most limit bytes. Its error is a *[Refusal].
func Decode(raw []byte, limit int) (Frame, error) {
	root, err := strictjson.Parse(raw, strictjson.Limits{Bytes: limit})
	if err != nil {
		return nil, refuse(raw, strictjson.Value{}, "%s", err)
	}
	if root.Kind() != strictjson.Object {
		return nil, refuse(nil, root, "a frame is an object with a member %s, got %s", frameNames, root.Kind())
	}
	for key, v := range root.Members() {
		switch string(key) {
		case "event":
			return named(v, "event", readEvent)
		case "call":
			return named(v, "call", func(v strictjson.Value) (Frame, error) {
				if err := onlyMembers(root, "call", "with"); err != nil {
					return nil, err
				}
				return readCall(v, root.Get("with"))
			})
		}
		if of := frames[string(key)]; of != nil {
			return named(v, string(key), func(v strictjson.Value) (Frame, error) {
				if err := onlyMembers(root, string(key)); err != nil {
					return nil, err
				}
				return of(v)
			})
		}
	}
	hint := ""
	for key := range root.Members() {
		if hint = didYouMean(string(key), append(slices.Sorted(maps.Keys(frames)), "call", "event")); hint != "" {
			hint = "; " + Excerpt(key) + hint
			break
		}
	}
	return nil, &Refusal{Fault: core.NewFault(core.CodeUnknownKind, "unknown frame: send an object with a member %s%s", frameNames, hint)}
}

// onlyMembers refuses members of a frame beside those that it has.
func onlyMembers(frame strictjson.Value, has ...string) error {
	for key := range frame.Members() {
		if slices.Contains(has, string(key)) {
			continue
		}
		return core.NewFault(core.CodeInvalid, "unknown key %s beside it%s", Excerpt(key), didYouMean(string(key), has))
	}
	return nil
}

// didYouMean returns the end of an error about an unknown name: the nearest one; "" for none.
func didYouMean(name string, names []string) string {
	if near := suggest.Nearest(name, names); near != "" {
		return fmt.Sprintf(": did you mean %q?", near)
	}
	return ""
}

// named reads the member of a frame, and names it in errors.
func named(v strictjson.Value, name string, of func(strictjson.Value) (Frame, error)) (Frame, error) {
	if v.Kind() != strictjson.Object {
		return nil, refuse(nil, v, "%s: want an object, got %s", name, v.Kind())
	}
	frame, err := of(v)
	if err == nil {
		return frame, nil
	}
	r := refuse(nil, v, "%s: %s", name, messageOf(err))
	var f *core.Fault
	if errors.As(err, &f) {
		r.Fault.Code = f.Code
	}
	return nil, r
}

// messageOf returns the message of an error for the peer, without the code of a Fault.
func messageOf(err error) string {
	var f *core.Fault
	if errors.As(err, &f) {
		return f.Message
	}
	return err.Error()
}

// refuse returns an invalid Refusal with the names in a frame: of its member v, or as far as
// they can be found in the text of something that is not JSON.
func refuse(raw []byte, v strictjson.Value, format string, args ...any) *Refusal {
	r := &Refusal{Fault: core.NewFault(core.CodeInvalid, "%s", fmt.Sprintf(format, args...))}
	if raw != nil {
		r.ID, r.Task = Names(raw)
		return r
	}
	r.ID, _ = v.Get("id").Text()
	task, _ := v.Get("task").Text()
	r.Execution, _ = v.Get("execution").Text()
	r.Task = core.TaskID(task)
	r.shorten()
	return r
}

func (r *Refusal) shorten() {
	if len(r.ID) > core.MaxIDBytes {
		r.ID = ""
	}
	if len(r.Task) > core.MaxIDBytes {
		r.Task = ""
	}
	if len(r.Execution) > core.MaxIDBytes {
		r.Execution = ""
	}
}

// readGreeting reads any hello: in it, peers of different versions meet.
func readGreeting(v strictjson.Value) (Frame, error) {
	var g Greeting
	err := v.Decode(&g)
	return g, err
}

func readVitals(v strictjson.Value) (Frame, error) {
	var l Vitals
	err := v.DecodeKnown(&l)
	return l, err
}

func readAnswer(v strictjson.Value) (Frame, error) {
	var a struct {
		Answer
		Error strictjson.Value `json:"error"` // a fault travels: it may have more members
	}
	if err := v.DecodeKnown(&a); err != nil {
		return nil, err
	}
	if err := a.Error.Decode(&a.Answer.Error); err != nil {
		return nil, core.NewFault(core.CodeInvalid, "error: %s", err)
	}
	switch {
	case a.Execution == "":
		return nil, missing("execution")
	case a.Answer.Error == nil && len(a.Output) == 0:
		return nil, core.NewFault(core.CodeInvalid, "output: missing; send the output of the tool, or error")
	}
	return a.Answer, nil
}

func readProgress(v strictjson.Value) (Frame, error) {
	var p Progress
	if err := v.DecodeKnown(&p); err != nil {
		return nil, err
	}
	if p.Execution == "" {
		return nil, missing("execution")
	}
	return p, nil
}

func readAsk(v strictjson.Value) (Frame, error) {
	var a Ask
	if err := v.DecodeKnown(&a); err != nil {
		return nil, err
	}
	if err := checkID(a.ID); err != nil {
		return nil, err
	}
	switch {
	case (a.Task == "") == (a.Execution == ""):
		return nil, core.NewFault(core.CodeInvalid, "send the task that it is asked for, or the execution")
	case a.Question.Kind() != strictjson.Object:
		return nil, missing("question")
	}
	return a, nil
}

func readLoad(v strictjson.Value) (Frame, error) {
	var l Load
	if err := v.DecodeKnown(&l); err != nil {
		return nil, err
	}
	if l.State == 0 {
		return nil, core.NewFault(core.CodeInvalid, "state: missing; send idle, busy, overloaded or draining")
	}
	return l, nil
}

func readTools(v strictjson.Value) (Frame, error) {
	var t Tools
	if err := v.DecodeKnown(&t); err != nil {
		return nil, err
	}
	return t, checkID(t.ID)
}

func missing(member string) error {
	return core.NewFault(core.CodeInvalid, "%s: missing", member)
}

// checkID checks the id of a frame that is answered.
func checkID(id string) error {
	switch {
	case id == "":
		return core.NewFault(core.CodeInvalid, "id: missing; choose a text, which comes back with the answer")
	case len(id) > core.MaxIDBytes:
		return core.NewFault(core.CodeInvalid, "id: has %d bytes, want at most %d", len(id), core.MaxIDBytes)
	}
	return nil
}

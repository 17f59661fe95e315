package wire

import (
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// Event is what an agent reports of a task. An event with an ID is answered.
type Event struct {
	ID      string
	Task    core.TaskID
	Body    core.Body
	Foreign *core.Foreign
	// Unknown are the members of an event with an ID that the hub does not know, and passes on,
	// each with the known name that is nearest, if one is near.
	Unknown map[string]string
	// Piece is the text of a text or of a thinking with half a character; "" for any other.
	Piece strictjson.Piece
}

// bodyForm reads the body of one kind.
type bodyForm struct {
	read  func(strictjson.Value) (core.Body, error)
	known members
}

// form is the form of a body that must have the required members.
func form[B core.Body](required ...string) bodyForm {
	var zero B
	return bodyForm{
		read: func(v strictjson.Value) (core.Body, error) {
			var b B
			for _, name := range required {
				if v.Get(name).Absent() {
					return nil, lacks(v, name)
				}
			}
			err := v.Decode(&b)
			return b, err
		},
		known: membersOf(zero),
	}
}

// lacks is the error about a body without a required member: perhaps it is there under another
// name.
func lacks(body strictjson.Value, required string) error {
	for key := range body.Members() {
		if near := didYouMean(string(key), []string{required}); near != "" {
			return core.NewFault(core.CodeInvalid, "%s: missing; unknown key %s%s", required, Excerpt(key), near)
		}
	}
	return missing(required)
}

// textForm reads a body that has nothing but text, without reflection: nearly all events are
// such pieces.
func textForm(of func(text string) core.Body) bodyForm {
	return bodyForm{
		read: func(v strictjson.Value) (core.Body, error) {
			for key, member := range v.Members() {
				if string(key) == "text" {
					text, ok := member.Text()
					if !ok {
						return nil, core.NewFault(core.CodeInvalid, "text: want a string, got %s", member.Kind())
					}
					return of(text), nil
				}
			}
			return nil, lacks(v, "text")
		},
		known: membersOf(core.Text{}),
	}
}

// bodies has the form of every kind.
var bodies = [...]bodyForm{
	core.KindOpened:            form[core.Opened](),
	core.KindAssigned:          form[core.Assigned](),
	core.KindAccepted:          form[core.Accepted](),
	core.KindSessionStarted:    form[core.SessionStarted]("session"),
	core.KindSessionLost:       form[core.SessionLost]("reason"),
	core.KindThinking:          textForm(func(text string) core.Body { return core.Thinking{Text: text} }),
	core.KindText:              textForm(func(text string) core.Body { return core.Text{Text: text} }),
	core.KindToolCall:          form[core.ToolCall]("id", "name"),
	core.KindToolState:         form[core.ToolState]("id", "state"),
	core.KindToolResult:        form[core.ToolResult]("id"),
	core.KindApprovalRequested: form[core.ApprovalRequested]("id", "name"),
	core.KindApprovalDecided:   form[core.ApprovalDecided](),
	core.KindQuestionAsked:     form[core.QuestionAsked](),
	core.KindQuestionAnswered:  form[core.QuestionAnswered](),
	core.KindInjected:          form[core.Injected](),
	core.KindInjectionAnswered: form[core.InjectionAnswered]("id", "accepted"),
	core.KindFile:              form[core.File](),
	core.KindUsage:             form[core.Usage](),
	core.KindRetrying:          form[core.Retrying](),
	core.KindCancelRequested:   form[core.CancelRequested](),
	core.KindForeign:           form[core.ForeignFrame]("dialect", "name"),
	core.KindDone:              form[core.Done](),
	core.KindFailed:            form[core.Failed]("fault"),
	core.KindCancelled:         form[core.Cancelled](),
}

// parts are the members of an event that has not been understood yet.
type parts struct {
	id, task      string
	kind          string
	body, foreign strictjson.Value
	unknown       []strictjson.Field
}

// split reads the members of an event. hub gets the members that only the hub sends.
func split(v strictjson.Value, hub func(key string, v strictjson.Value) error) (p parts, err error) {
	for key, member := range v.Members() {
		switch string(key) {
		case "task":
			p.task, err = textOf(member, "task")
		case "kind":
			p.kind, err = textOf(member, "kind")
		case "id":
			p.id, err = textOf(member, "id")
		case "body":
			p.body = member
		case "foreign":
			p.foreign = member
		default:
			if !eventMembers.has(key) {
				p.unknown = append(p.unknown, strictjson.Field{Key: string(key), Value: member.Clone()})
			} else if hub != nil {
				err = hub(string(key), member)
			}
		}
		if err != nil {
			return p, err
		}
	}
	switch {
	case p.task == "":
		return p, missing("task")
	case p.kind == "":
		return p, missing("kind")
	}
	return p, nil
}

func textOf(v strictjson.Value, member string) (string, error) {
	s, ok := v.Text()
	if !ok && !v.Absent() {
		return "", core.NewFault(core.CodeInvalid, "%s: want a string, got %s", member, v.Kind())
	}
	return s, nil
}

// understand returns the body and the foreign members of an event. An unknown kind becomes a
// foreign frame of the dialect.
func (p parts) understand() (core.Body, *core.Foreign, error) {
	k, known := core.ParseKind(p.kind)
	if !known {
		if p.body.Exists() {
			p.unknown = append(p.unknown, strictjson.Field{Key: "body", Value: p.body.Clone()})
		}
		own, err := readForeign(p.foreign)
		if err != nil {
			return nil, nil, err
		}
		if len(p.unknown) == 0 && own == nil {
			own = &core.Foreign{Dialect: Dialect, JSON: []byte("{}")}
		}
		return core.ForeignFrame{Dialect: Dialect, Name: p.kind}, keep(own, p.unknown, "", nil), nil
	}
	if p.body.Kind() != strictjson.Object {
		if p.body.Absent() {
			return nil, nil, missing("body")
		}
		return nil, nil, core.NewFault(core.CodeInvalid, "body: want an object, got %s", p.body.Kind())
	}
	own, err := readForeign(p.foreign)
	if err != nil {
		return nil, nil, err
	}
	f := bodies[k]
	body, err := f.read(p.body)
	if err != nil {
		return nil, nil, core.NewFault(core.CodeInvalid, "body: %s", messageOf(err))
	}
	return body, keep(own, p.unknown, "body", unknown(p.body, f.known)), nil
}

func readForeign(v strictjson.Value) (*core.Foreign, error) {
	if v.Absent() {
		return nil, nil
	}
	f := new(core.Foreign)
	if err := v.Decode(f); err != nil {
		return nil, core.NewFault(core.CodeInvalid, "foreign: %s", err)
	}
	return f, nil
}

func readEvent(v strictjson.Value) (Frame, error) {
	p, err := split(v, nil)
	if err == nil && len(p.id) > core.MaxIDBytes {
		err = checkID(p.id)
	}
	if err != nil {
		return nil, err
	}
	e := Event{ID: p.id, Task: core.TaskID(p.task)}
	if e.Body, e.Foreign, err = p.understand(); err != nil {
		return nil, err
	}
	if text := p.body.Get("text"); text.Escaped() {
		if piece, _ := text.Piece(); !utf8.ValidString(string(piece)) {
			e.Piece = piece
		}
	}
	if k, known := core.ParseKind(p.kind); known && e.ID != "" && e.Foreign != nil {
		e.Unknown = nearest(nearest(nil, p.unknown, eventMembers), unknown(p.body, bodies[k].known), bodies[k].known)
	}
	return e, nil
}

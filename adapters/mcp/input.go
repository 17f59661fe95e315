package mcp

import (
	"cmp"
	"context"
	"fmt"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// input is an approval or a question of a task that waits for people, as the client is asked
// for it.
type input struct {
	// key identifies it in the life of the run: the id of the approval or question. name, if any, stands for
	// it in a result.
	key, name string
	until     time.Time
	approval  *task.PendingApproval
	question  *question.Question
	// form is that of the question, if the client can show it.
	form *question.Form
	// misfit is why the last answer did not fit; "" for the first time.
	misfit string
}

// label returns the key of the input in a result.
func (in input) label() string { return cmp.Or(in.name, in.key) }

// asInput returns a question as the sender of a request is asked it. Versions before arrayElicitation lack
// some of what a form may have.
func (q *request) asInput(asked question.Question) input {
	in := input{key: asked.ID, until: asked.Until, question: &asked}
	if q.version >= arrayElicitation {
		in.form = asked.Form
	}
	return in
}

// inputsOf returns the approvals and questions of a run that the sender of a request may answer,
// the longest waiting first. Its task is nil for a tool other than agent_ask. A question may also
// come from an agent that the agent of the task has asked.
func (s *Server) inputsOf(q *request, run string, t *task.Task) []input {
	var all []input
	if t != nil {
		for _, a := range t.Approvals() {
			all = append(all, input{key: approvalKey(t, a.ID), until: a.Until, approval: &a})
		}
	}
	for _, asked := range s.hub.Questions(q.principal()) {
		switch {
		case t == nil && q.holder.shows(asked.ID, run):
			in := q.asInput(asked)
			if f := asked.Form; f != nil && !slices.ContainsFunc(all, func(other input) bool { return other.name == f.Name }) {
				in.name = f.Name // as the server of the tool has it
			}
			all = append(all, in)
		case t != nil && (slices.Contains(asked.Tasks, t.ID()) || q.holder.shows(asked.ID, run)):
			all = append(all, q.asInput(asked))
		}
	}
	return all
}

// approvalKey returns the key of an approval: its id or, if an agent asks again under the same
// id, the id and the number of the request.
func approvalKey(t *task.Task, id string) string {
	n := 0
	log := t.Log()
	for e := range log.All() {
		if a, ok := e.Body.(core.ApprovalRequested); ok && a.ID == id {
			n++
		}
	}
	if n > 1 {
		return fmt.Sprintf("%s#%d", id, n)
	}
	return id
}

// arrayElicitation is the first version in which a form may ask for several of a list.
const arrayElicitation = "2025-11-25"

// request returns the request to the client. Versions before arrayElicitation have no lists.
func (in input) request(version string) wire.ElicitRequest {
	mode := wire.ModeForm
	if version < arrayElicitation {
		mode = ""
	}
	schema := wire.FormSchema{Type: "object"}
	switch q := in.question; {
	case in.form != nil:
		return wire.ElicitRequest{Method: wire.MethodElicit, Params: wire.ElicitParams{Mode: mode, Message: in.message(), Schema: in.form.Schema}}
	case q == nil:
		schema.Properties = map[string]wire.Field{
			"allow": {Type: "boolean", Title: "Allow"},
			"all":   {Type: "boolean", Title: "Allow all", Description: "Also allow all further tool calls of this task."},
		}
		schema.Required = []string{"allow"}
	case len(q.Options) == 0:
		schema.Properties, schema.Required = map[string]wire.Field{"answer": {Type: "string", Title: "Answer"}}, []string{"answer"}
	default:
		labels := make([]string, len(q.Options))
		for i, o := range q.Options {
			labels[i] = o.Label
		}
		choice := wire.Field{Type: "string", Title: "Choice", Enum: labels}
		switch {
		case q.Several && mode != "":
			choice = wire.Field{Type: "array", Title: "Choices", Items: &wire.Field{Type: "string", Enum: labels}}
		case q.Several:
			choice = wire.Field{Type: "string", Title: "Choices", Description: "One on each line."}
		}
		schema.Properties = map[string]wire.Field{"choice": choice, "answer": {Type: "string", Title: "Or in other words"}}
		schema.Required = []string{}
	}
	return wire.ElicitRequest{Method: wire.MethodElicit, Params: wire.ElicitParams{Mode: mode, Message: in.message(), Schema: strictjson.Encode(schema)}}
}

// message returns what the user is asked, and why again.
func (in input) message() string {
	if in.misfit == "" {
		return in.words()
	}
	return in.words() + "\n\nThe last answer did not fit: " + visible(in.misfit)
}

// words returns what the user is asked. The input of a tool is shown in full.
func (in input) words() string {
	if a := in.approval; a != nil {
		return fmt.Sprintf("%s asks to run %s:\n%s", visible(string(a.Agent)), visible(a.Name), visible(a.Input))
	}
	var b strings.Builder
	q := in.question
	if q.Agent != "" { // else a tool asks, which its text names
		b.WriteString(visible(string(q.Agent)) + " asks: ")
	}
	if in.form != nil {
		b.WriteString(visible(in.form.Message))
		return b.String()
	}
	b.WriteString(visible(q.Text))
	for _, o := range q.Options {
		if o.Description != "" {
			fmt.Fprintf(&b, "\n%s: %s", visible(o.Label), visible(o.Description))
		}
	}
	return b.String()
}

// visible replaces characters that could hide something, such as those that change the
// direction of text, by escapes.
func visible(text string) string {
	var b strings.Builder
	for _, r := range text {
		if r == '\n' || r == '\t' || strconv.IsPrint(r) {
			b.WriteRune(r)
			continue
		}
		fmt.Fprintf(&b, "\\u%04x", r)
	}
	return b.String()
}

// brief returns in short what is waited for.
func (in input) brief() string {
	if in.approval != nil {
		return "waits for the approval of " + visible(in.approval.Name)
	}
	text := in.question.Text
	if f := in.question.Form; f != nil { // whose fields the client is asked for
		text = f.Message
	}
	return "waits for an answer: " + ending(visible(text), maxWords)
}

// settle gives the answer of the user to the hub. It returns an invalid Fault for an answer
// that the request did not ask for. That somebody else was first is no error.
func (in input) settle(ctx context.Context, s *hub.Session, id core.TaskID, v strictjson.Value) error {
	c, err := in.command(id, v)
	if err != nil {
		return err
	}
	switch c := c.(type) {
	case core.Decide:
		err = s.Decide(ctx, c.Task, c.Decision)
	case core.Reply:
		if _, err = s.AnswerQuestion(ctx, c); doesNotFit(core.AsFault(err)) {
			err = core.NewFault(core.CodeInvalid, "%s: %s", in.label(), core.AsFault(err).Message)
		}
	}
	if err != nil && core.AsFault(err).Code == core.CodeConflict {
		return nil
	}
	return err
}

// doesNotFit reports whether the hub refused an answer for what it says.
func doesNotFit(f *core.Fault) bool {
	return f != nil && (f.Code == core.CodeInvalid || f.Code == core.CodeTooLarge)
}

// command returns what the answer of the user says: a core.Decide or a core.Reply.
func (in input) command(id core.TaskID, v strictjson.Value) (core.Command, error) {
	action, content, err := question.ReadAnswer(v)
	switch {
	case err != nil:
		return nil, core.NewFault(core.CodeInvalid, "%s: %s", in.label(), err)
	case in.approval != nil:
		return in.decision(id, action, content)
	}
	return in.reply(action, content)
}

// decision decides an approval. A user who declines or closes the form denies it.
func (in input) decision(id core.TaskID, action string, content strictjson.Value) (core.Command, error) {
	d := core.ApprovalDecided{ID: in.approval.ID, InputSHA256: in.approval.InputSHA256}
	switch action {
	case question.Decline:
		d.Reason = "declined"
	case question.Cancel:
		d.Reason = "dismissed"
	default:
		var form struct {
			Allow *bool `json:"allow"`
			All   bool  `json:"all"`
		}
		if !content.Exists() || content.Decode(&form) != nil || form.Allow == nil {
			return nil, core.NewFault(core.CodeInvalid, "%s: content: want allow, true or false", in.label())
		}
		d.Approved, d.All = *form.Allow, *form.Allow && form.All
	}
	return core.Decide{Task: id, Decision: d}, nil
}

// reply answers a question. A user who closes the form dismisses it, and so does one who declines where there
// is no option for that.
func (in input) reply(action string, content strictjson.Value) (core.Command, error) {
	a := core.Reply{Question: in.question.ID}
	form := in.question.Form
	switch {
	case action == question.Decline && form != nil && form.Decline != "":
		a.Selected = []string{form.Decline}
		return a, nil
	case action != question.Accept:
		a.Dismissed = true
		return a, nil
	case in.form != nil && content.Absent():
		a.Content = []byte("{}") // who asks checks whether that is enough
		return a, nil
	case in.form != nil && content.Kind() != strictjson.Object:
		return nil, core.NewFault(core.CodeInvalid, "%s: content: want an object with the fields of the form", in.label())
	case in.form != nil:
		a.Content = content.Clone()
		return a, nil
	case !content.Exists():
		return a, nil
	}
	if err := in.readChoice(&a, content); err != nil {
		return nil, core.NewFault(core.CodeInvalid, "%s: content: %s", in.label(), err)
	}
	return a, nil
}

// readChoice reads what a user has chosen, or written, into an answer.
func (in input) readChoice(a *core.Reply, content strictjson.Value) error {
	var said struct {
		Choice strictjson.Value `json:"choice"`
		Answer string           `json:"answer"`
	}
	err := content.Decode(&said)
	if a.Text = said.Answer; err == nil && said.Choice.Kind() == strictjson.Array {
		return said.Choice.Decode(&a.Selected)
	}
	if text, ok := said.Choice.Text(); ok && text != "" {
		a.Selected = in.selected(text)
	}
	return err
}

// selected returns the options in an answer that is a text.
func (in input) selected(text string) []string {
	if !in.question.Several {
		return []string{text}
	}
	var all []string
	for line := range strings.Lines(text) {
		if line = strings.TrimSpace(line); line != "" {
			all = append(all, line)
		}
	}
	return all
}

// requests returns inputs as inputRequests.
func requests(inputs []input, version string) map[string]wire.ElicitRequest {
	all := make(map[string]wire.ElicitRequest, len(inputs))
	for _, in := range inputs {
		all[in.label()] = in.request(version)
	}
	return all
}

// settleAll gives the answers of the user to the hub, ignoring those that nobody waits for.
// refused collects the inputs that the caller may not give.
func settleAll(ctx context.Context, s *hub.Session, id core.TaskID, inputs []input, responses map[string]strictjson.Value, refused func(key string)) *jsonrpc.Error {
	for _, in := range inputs {
		v, here := responses[in.label()]
		if !here {
			continue
		}
		err := in.settle(ctx, s, id, v)
		switch f := core.AsFault(err); {
		case f == nil:
		case f.Code == core.CodeNotAuthorized:
			refused(in.key)
		case f.Code == core.CodeInvalid:
			return badParams("inputResponses: %s", f.Message)
		}
	}
	return nil
}

// lastUntil returns when the last of the inputs times out.
func lastUntil(inputs []input) time.Time {
	return slices.MaxFunc(inputs, func(a, b input) int { return cmp.Compare(a.until.UnixNano(), b.until.UnixNano()) }).until
}

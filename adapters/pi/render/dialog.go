package render

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/visible"
)

// DialogAnswer returns the reply that a response to the dialog of a question means. A
// response to another method, or without a value, dismisses the question (facts, section
// 7.1).
func DialogAnswer(q question.Question, method, value string) core.Reply {
	if value = strings.TrimSpace(value); method != dialogMethod(q) || value == "" {
		return core.Reply{Dismissed: true}
	}
	if label, ok := chosen(q, value); ok {
		return core.Reply{Selected: []string{label}}
	}
	if !q.Several {
		return core.Reply{Text: value}
	}
	var reply core.Reply
	var rest []string
	for item := range strings.SplitSeq(value, ",") {
		switch label, ok := chosen(q, strings.TrimSpace(item)); {
		case ok && !slices.Contains(reply.Selected, label):
			reply.Selected = append(reply.Selected, label)
		case !ok && strings.TrimSpace(item) != "":
			rest = append(rest, strings.TrimSpace(item))
		}
	}
	if reply.Text = strings.Join(rest, ", "); reply.Text == "" && len(reply.Selected) == 0 {
		return core.Reply{Dismissed: true}
	}
	return reply
}

// chosen returns the label of the option that the text names: by the text that was shown,
// by the label in any case or, if several may be chosen, by the number.
func chosen(q question.Question, text string) (string, bool) {
	i := slices.IndexFunc(q.Options, func(o core.Option) bool { return text == optionText(o) || strings.EqualFold(text, o.Label) })
	if n, err := strconv.Atoi(text); i < 0 && q.Several && err == nil {
		i = n - 1
	}
	if i < 0 || i >= len(q.Options) {
		return "", false
	}
	return q.Options[i].Label, true
}

// dialogMethod returns the method of the dialog that shows a question: select for one
// choice, else input. Pi has no dialog for several choices, so the user types them.
func dialogMethod(q question.Question) string {
	if len(q.Options) > 0 && !q.Several {
		return "select"
	}
	return "input"
}

// Dialog returns the frame that asks the client to show a question (section 18.1).
func (e Envelope) Dialog(q question.Question, timeout time.Duration) []byte {
	title := visible.Text(q.Text)
	if q.Header != "" {
		title = visible.Line(q.Header) + ": " + title
	}
	if q.Several {
		for i, o := range q.Options {
			title += "\n" + strconv.Itoa(i+1) + ". " + optionText(o)
		}
	}
	return e.Event(2*len(title)+512, func(b []byte) []byte {
		b = strictjson.AppendString(append(b, `{"type":"extension_ui_request","requestId":`...), q.ID)
		b = strictjson.AppendString(append(b, `,"method":`...), dialogMethod(q))
		b = strictjson.AppendString(append(b, `,"title":`...), title)
		switch {
		case q.Several:
			b = append(b, `,"placeholder":"numbers or names, separated by commas"`...)
		case len(q.Options) > 0:
			b = append(b, `,"options":[`...)
			for i, o := range q.Options {
				if i > 0 {
					b = append(b, ',')
				}
				b = strictjson.AppendString(b, optionText(o))
			}
			b = append(b, ']')
		}
		return append(strconv.AppendInt(append(b, `,"timeout":`...), timeout.Milliseconds(), 10), '}')
	})
}

// optionText returns the text that shows an option. The specification has only one text
// per option.
func optionText(o core.Option) string {
	if o.Description == "" {
		return visible.Line(o.Label)
	}
	return visible.Line(o.Label) + ": " + visible.Text(o.Description)
}

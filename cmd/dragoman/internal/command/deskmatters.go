package command

import (
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/url"
	"slices"
	"strconv"
	"strings"
	"unicode/utf8"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/task"
)

// decisions are what a person decides with, beside yes and no.
type decisions struct {
	hub    *client.Client
	all    bool // an approval is one of every later call of the task
	reason string
	tell   bool // say what was decided: no event of the task tells it
}

// callID names an approval among matters.
func callID(id core.TaskID, call string) string { return string(id) + "\n" + call }

// approval returns the matter of a tool call that waits. about describes its task; "" for one of the person's own.
func (d decisions) approval(a task.PendingApproval, about string, width int) *matter {
	m := &matter{id: callID(a.Task, a.ID), prompt: "Allow it? [y]es, [n]o: ", partial: "[n]o, "}
	head, input := "Allow "+visible(a.Name), inputText(a.Input)
	if inOne := strings.TrimSuffix(head+": "+input, ": ") + "? [y]es, [n]o: "; !strings.Contains(input, "\n") && columns(inOne) < width {
		m.text, m.prompt = about, inOne
	} else {
		m.text = strings.TrimPrefix(about+"\n", "\n") + head + ":\n  " + indent(input)
	}
	m.take = func(ctx context.Context, word string, whole bool) (string, error) {
		approved := isWord(word, "yes")
		switch {
		case approved && !whole:
			return "", errors.New("not all of it was on the screen yet: s shows the rest")
		case !approved && !isWord(word, "no"):
			return "", errors.New("type y to allow it, or n to deny it")
		}
		made, err := decide(ctx, d.hub, a.Task, map[string]any{"id": a.ID, "approved": approved, "all": d.all && approved, "reason": d.reason}, a.InputSHA256)
		if err != nil || !d.tell {
			return "", err
		}
		return visible(verdict(made)), nil
	}
	return m
}

// decide sends a decision on the input with the SHA-256; "" leaves open on which.
func decide(ctx context.Context, hub *client.Client, id core.TaskID, body map[string]any, input string) (made core.ApprovalDecided, err error) {
	if input != "" {
		body["input_sha256"] = input
	}
	return made, hub.Post(ctx, client.TaskPath(id, "decisions"), body, &made)
}

// member is a member of a JSON object, in its place.
type member struct {
	name  string
	value json.RawMessage
}

// membersOf returns every member of a JSON object, also those with the same name.
func membersOf(text string) (all []member, ok bool) {
	in := json.NewDecoder(strings.NewReader(text))
	if begin, err := in.Token(); err != nil || begin != json.Delim('{') {
		return nil, false
	}
	for in.More() {
		var m member
		name, err := in.Token()
		if err == nil {
			m.name, _ = name.(string) // of an object it is one
			err = in.Decode(&m.value)
		}
		if err != nil {
			return nil, false
		}
		all = append(all, m)
	}
	if _, err := in.Token(); err != nil {
		return nil, false
	}
	_, err := in.Token()
	return all, errors.Is(err, io.EOF)
}

// inputText shows the whole input of a tool call: a command as it is, an object by its members, anything else as the
// agent sent it.
func inputText(input string) string {
	members, ok := membersOf(input)
	if !ok || len(members) == 0 {
		return visibleLines(input)
	}
	if len(members) == 1 && members[0].name == "command" {
		return valueText(members[0].value)
	}
	var lines []string
	for _, m := range members {
		lines = append(lines, visible(m.name)+": "+indent(valueText(m.value)))
	}
	return strings.Join(lines, "\n")
}

// valueText shows a text without its quotes, other values as JSON. A text that is empty, or begins or ends with what
// nobody sees, or has what is no character, keeps its quotes.
func valueText(value json.RawMessage) string {
	var text string
	if !bytes.HasPrefix(value, []byte{'"'}) || json.Unmarshal(value, &text) != nil || text == "" || strings.TrimSpace(text) != text || strings.ContainsRune(text, utf8.RuneError) {
		return jsonText(value)
	}
	return visibleLines(text)
}

// indent indents the lines of a text but the first.
func indent(text string) string { return strings.ReplaceAll(text, "\n", "\n  ") }

// question returns the matter of a question.
func (d decisions) question(q question.Question) *matter {
	return matterOf(q, func(ctx context.Context, answer core.Reply) (string, error) {
		o, err := sendAnswer(ctx, d.hub, answer)
		if err != nil || !d.tell {
			return "", err
		}
		return visible(fmt.Sprint(o)), nil
	})
}

// matterOf returns the matter of a question, whose answer is given to send.
func matterOf(q question.Question, send func(context.Context, core.Reply) (done string, err error)) *matter {
	who := visible(string(q.Agent))
	if who == "" {
		who = "A tool"
	}
	m := &matter{id: q.ID, text: who + " asks: " + block(strings.TrimSpace(q.Text)), prompt: "Answer in words: "}
	for i, o := range q.Options {
		m.text += fmt.Sprintf("\n  %d. %s", i+1, visible(o.Label))
		if o.Description != "" {
			m.text += ": " + block(o.Description)
		}
	}
	fields := fieldsOf(q)
	switch {
	case fields > 1:
		m.prompt = "Answer FIELD: VALUE, a line for each, and an empty line: "
	case q.Several:
		m.prompt = "Answer with numbers, such as 1 2, or in words: "
	case len(q.Options) > 0:
		m.prompt = "Answer with a number, or in words: "
	}
	var lines []string
	m.take = func(ctx context.Context, line string, whole bool) (string, error) {
		if !whole {
			return "", errors.New("not all of it was on the screen yet: s shows the rest")
		}
		selected := chosen(q, line)
		if fields > 1 && len(selected) == 0 && line != "" {
			lines = append(lines, line)
			return "", errMore
		}
		answer := core.Reply{Question: q.ID, Selected: selected}
		if len(selected) == 0 {
			answer.Text, lines = strings.Join(append(lines, line), "\n"), nil
		}
		err := readForm(q, &answer)
		if err != nil {
			return "", fmt.Errorf("the answer does not fit: %w", err)
		}
		return send(ctx, answer)
	}
	return m
}

// chosen returns the options that a line names by their numbers, or one that it names in words.
func chosen(q question.Question, line string) (labels []string) {
	for _, word := range strings.FieldsFunc(line, func(r rune) bool { return r == ' ' || r == ',' }) {
		n, err := strconv.Atoi(word)
		if err != nil || n < 1 || n > len(q.Options) {
			labels = nil
			break
		}
		labels = append(labels, q.Options[n-1].Label)
	}
	if i := slices.IndexFunc(q.Options, func(o core.Option) bool { return strings.EqualFold(o.Label, line) }); len(labels) == 0 && i >= 0 {
		labels = []string{q.Options[i].Label}
	}
	return labels
}

// fieldsOf returns how many fields the form of a question has.
func fieldsOf(q question.Question) int {
	if q.Form == nil {
		return 0
	}
	var form struct{ Properties map[string]json.RawMessage }
	_ = json.Unmarshal(q.Form.Schema, &form) // what cannot be read is asked in words
	return len(form.Properties)
}

// readForm reads the words of an answer to a form as its content, so that what does not fit is told at once.
func readForm(q question.Question, answer *core.Reply) (err error) {
	if q.Form == nil || slices.Contains(answer.Selected, q.Form.Decline) {
		return nil
	}
	answer.Content, err = question.Content(*q.Form, question.Outcome{Selected: answer.Selected, Text: answer.Text})
	return err
}

// sendAnswer answers a question.
func sendAnswer(ctx context.Context, hub *client.Client, answer core.Reply) (o question.Outcome, err error) {
	body := map[string]any{"selected": answer.Selected, "custom_text": answer.Text, "dismissed": answer.Dismissed}
	if answer.Content != nil {
		body = map[string]any{"content": answer.Content}
	}
	return o, hub.Post(ctx, "/v1/questions/"+url.PathEscape(answer.Question)+"/answer", body, &o)
}

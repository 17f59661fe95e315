package task_test

import (
	"fmt"
	"reflect"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/redact"
	"github.com/dragoman-hub/dragoman/core/task"
)

// secretHost returns a store whose redacted form of tasks lacks a secret, and a task that says it wherever a
// task can.
func secretHost(t *testing.T) (*task.Store, *task.Task, *worker) {
	t.Helper()
	s, h, _ := newStore()
	r, err := redact.New(nil, []string{"tops3cretvalue"})
	if err != nil {
		t.Fatal(err)
	}
	h.redactor = r
	const secret = "tops3cretvalue"
	one := openRequest(s, core.Request{
		Intent: core.IntentAsk, To: core.ToAny(), Content: "use " + secret, Data: []byte(`{"k":"` + secret + `"}`), Context: []byte(`{"k":"` + secret + `"}`),
		Attachments: []core.File{{Name: "a", Data: []byte(secret)}}, History: []core.Turn{{Role: core.RoleUser, Text: secret}}, Notice: &core.Notice{Topic: "t", Data: []byte(`"` + secret + `"`)},
		Foreign: &core.Foreign{Dialect: "acp", JSON: []byte(`{"k":"` + secret + `"}`), Wire: []byte(secret)},
	})
	w := assign(one)
	report(t, one, w, core.Accepted{}, core.Text{Text: "it is tops"}, core.Text{Text: "3cret"}, core.Text{Text: "value, "}, core.Thinking{Text: secret},
		core.ToolCall{ID: "1", Name: "rm", Input: `{"k":"` + secret + `"}`}, core.ApprovalRequested{ID: "1", Name: "rm", Input: `{"k":"` + secret + `"}`})
	return s, one, w
}

// asks calls every method of the form that needs nothing but the form, and returns what they say.
func asks(one *task.Task) map[string]string {
	said := map[string]string{}
	v := reflect.ValueOf(one)
	for i := range v.NumMethod() {
		name, m := v.Type().Method(i).Name, v.Method(i)
		if m.Type().NumIn() > 0 || name == "Redacted" {
			continue
		}
		var all []string
		for _, out := range m.Call(nil) {
			if log, is := out.Interface().(task.Log); is {
				for e := range log.All() {
					all = append(all, text(e))
				}
				continue
			}
			all = append(all, text(out.Interface()))
		}
		said[name] = strings.Join(all, " ")
	}
	return said
}

// text returns all text below a value. Bytes are written as text.
func text(v any) string {
	var b strings.Builder
	var walk func(v reflect.Value, depth int)
	walk = func(v reflect.Value, depth int) {
		switch v.Kind() {
		case reflect.String:
			b.WriteString(v.String() + " ")
		case reflect.Interface, reflect.Pointer:
			if !v.IsNil() && depth < 12 {
				walk(v.Elem(), depth+1)
			}
		case reflect.Struct:
			for i := range v.NumField() {
				if v.Type().Field(i).IsExported() {
					walk(v.Field(i), depth+1)
				}
			}
		case reflect.Slice:
			if v.Type().Elem().Kind() == reflect.Uint8 {
				b.WriteString(string(v.Bytes()) + " ")
				return
			}
			for i := range v.Len() {
				walk(v.Index(i), depth+1)
			}
		}
	}
	walk(reflect.ValueOf(v), 0)
	return b.String()
}

// What can be asked of a task is taken from its type: a method that is added says no secret in the redacted
// form, or this fails.
func TestTheRedactedFormSaysNoSecretWhateverItIsAsked(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		s, one, w := secretHost(t)
		form := one.Redacted()
		check := func(when string) {
			t.Helper()
			plain, saying := asks(one), 0
			for name, said := range asks(form) {
				for _, part := range []string{"tops3", "3cret", "cretvalue"} {
					if strings.Contains(said, part) {
						t.Errorf("%s: %s: got %q, want no secret", when, name, said)
					}
				}
				if strings.Contains(plain[name], "tops3cretvalue") {
					saying++
				}
			}
			if saying < 5 {
				t.Errorf("%s: got %d methods of the task that say the secret, want the test to reach them", when, saying)
			}
		}
		check("while it runs")
		if got := asks(form)["Approvals"]; !strings.Contains(got, one.Approvals()[0].InputSHA256) {
			t.Errorf("got the approvals %q, want the digest of the input that the agent sent", got)
		}
		conclude(t, one, w, core.Failed{Fault: &core.Fault{Code: core.CodeInternal, Message: "no tops3cretvalue", PeerCode: "tops3cretvalue"}})
		check("once it has ended")
		refused := open(s)
		refused.Refuse(core.NewFault(core.CodeInvalid, "tops3cretvalue is no agent"))
		for name, said := range asks(refused.Redacted()) {
			if strings.Contains(said, "s3cret") {
				t.Errorf("refused: %s: got %q, want no secret", name, said)
			}
		}
	})
}

// Wherever a reader begins, it gets every event once, and no part of a secret that was not told before.
func TestAReaderOfTheRedactedFormGetsEveryEventOnceFromEveryCursor(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		_, one, w := secretHost(t)
		form := one.Redacted()
		readers := map[uint64]*inbox{}
		watch := func(from core.Cursor) {
			readers[from.Seq] = &inbox{}
			if _, err := form.Watch(readers[from.Seq], from, nil); err != nil {
				t.Fatal(err)
			}
		}
		got := map[uint64]string{}
		read := func() {
			for from, in := range readers {
				for _, p := range in.take() {
					if !p.Task.IsRedacted() {
						t.Errorf("from %d: got the form as it was said, want the redacted one", from)
					}
					for _, e := range p.Events {
						got[from] += fmt.Sprint(e.Seq, " ")
						if said := text(e); strings.Contains(said, "tops3") || strings.Contains(said, "cretvalue") || strings.Contains(said, "3cret") {
							t.Errorf("from %d: got %q, want no secret", from, said)
						}
					}
				}
			}
		}
		watch(core.Cursor{})
		for _, e := range one.Events() {
			watch(e.Cursor())
		}
		read()
		report(t, one, w, core.Text{Text: "or tops"})
		read()
		report(t, one, w, core.Text{Text: "3cretvalue"})
		read()
		report(t, one, w, core.Text{Text: "tops"}) // which is the beginning of nothing
		synctest.Wait()
		read()
		last := one.Last().Seq
		if want := fmt.Sprint(last); strings.Contains(got[0], want) {
			t.Errorf("got the events %s, want %s later: it may be the beginning of a secret", got[0], want)
		}
		time.Sleep(redact.HoldTime) // of the bubble
		synctest.Wait()
		read()
		conclude(t, one, w, core.Done{})
		read()
		for from := range readers {
			want := ""
			for seq := from + 1; seq <= one.Last().Seq; seq++ { // the open tool call has an end, too
				want += fmt.Sprint(seq, " ")
			}
			if got[from] != want {
				t.Errorf("from %d: got the events %s, want %s", from, got[from], want)
			}
		}
	})
}

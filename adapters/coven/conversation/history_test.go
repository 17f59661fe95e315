package conversation

import (
	"fmt"
	"strings"
	"testing"
	"testing/synctest"
	"time"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/task"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

func TestAMessageIsKnownForItsTimeAndToItsSenderAlone(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		m := newSentMessages(3, time.Minute)
		sent := 0
		once := func(sender, key string) bool {
			t.Helper()
			_, known, err := m.once(sender, key, [32]byte{}, func() (string, error) {
				sent++
				return fmt.Sprint(sent), nil
			})
			if err != nil {
				t.Fatal(err)
			}
			return known
		}
		once("a", "k")
		if !once("a", "k") || once("b", "k") {
			t.Error("got it unknown to its sender or known to another, want the contrary")
		}
		<-time.After(time.Minute)
		if once("a", "k") {
			t.Error("got it known after its time, want it forgotten")
		}
		for i := range 5 {
			once("c", fmt.Sprint(i))
		}
		if m.ids.Len() != 3 {
			t.Errorf("got %d messages, want the latest 3", m.ids.Len())
		}
		fails := func() (string, error) { return "", core.NewFault(core.CodeUnknownAgent, "nobody") }
		for range 2 {
			if _, known, err := m.once("d", "k", [32]byte{}, fails); known || err == nil {
				t.Errorf("got %v and %v, want what was not sent to be sent anew", known, err)
			}
		}
	})
}

func TestAMessageIsUnreadUntilItsAnswerIsSentOrItIsOld(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		u := newUnread(time.Minute)
		u.add("1")
		u.add("2")
		u.remove("1")
		u.remove("never")
		if u.has("1") || !u.has("2") || u.has("never") {
			t.Error("want the second alone unread")
		}
		<-time.After(2 * time.Minute)
		u.add("3")
		if u.has("2") || !u.has("3") || u.tasks.Len() != 1 {
			t.Errorf("got %d, want the third alone", u.tasks.Len())
		}
		for i := range maxUnread + 5 {
			u.add(core.TaskID(fmt.Sprint("x", i)))
		}
		if u.tasks.Len() != maxUnread {
			t.Errorf("got %d, want %d", u.tasks.Len(), maxUnread)
		}
	})
}

// ofTask lets an agent say bodies of a task and returns it.
func ofTask(t *testing.T, bodies ...core.Body) *task.Task {
	t.Helper()
	h := coretest.NewHub(t, hub.Options{})
	agent, asker := h.Connect(hub.Identity{Principal: core.Principal{ID: "a"}}), h.Connect(hub.Identity{Principal: core.Principal{ID: "r"}})
	t.Cleanup(func() { agent.Close(nil) })
	t.Cleanup(func() { asker.Close(nil) })
	if err := agent.Join(core.Card{ID: "a", Features: core.FeatureStreaming}, hub.JoinOptions{}); err != nil {
		t.Fatal(err)
	}
	task, err := asker.Open(core.Request{To: core.ToAgent("a"), Content: "go", Thread: "t"}, hub.Opening{})
	if err != nil {
		t.Fatal(err)
	}
	for _, b := range bodies {
		if err := agent.Report(task.ID(), b, nil); err != nil {
			t.Fatal(err)
		}
	}
	return task
}

// toldOf is what a client is told of a task, in words.
func toldOf(task *task.Task, maxBytes int) (words []string, messages []*pb.ClientStreamEvent) {
	messages = Options{MaxMessageBytes: maxBytes}.tell("t", task, task.Events(), func(string) {})
	for _, m := range messages {
		switch p := m.GetPayload().(type) {
		case *pb.ClientStreamEvent_Text:
			words = append(words, "text "+p.Text.GetContent())
		case *pb.ClientStreamEvent_Event:
			words = append(words, p.Event.GetType()+" "+p.Event.GetText())
		case *pb.ClientStreamEvent_Done:
			words = append(words, "done "+p.Done.GetFullResponse())
		case *pb.ClientStreamEvent_Error:
			words = append(words, fmt.Sprintf("error %s %t", p.Error.GetMessage(), p.Error.GetRecoverable()))
		}
	}
	return words, messages
}

func recalled(task *task.Task, maxBytes int) (words []string) {
	all := ledgerOf("t", task, task.Events(), maxBytes)
	for i, e := range all {
		if i > 0 && e.place.Compare(all[i-1].place) <= 0 {
			words = append(words, "out of order")
		}
		words = append(words, e.event.GetType()+" "+e.event.GetText())
	}
	return words
}

func TestEveryEndIsToldAndRemembered(t *testing.T) {
	for name, tt := range map[string]struct {
		said             []core.Body
		told, remembered []string
	}{
		"text and done": {
			[]core.Body{core.Text{Text: "one "}, core.Text{Text: "two"}, core.Done{Text: "other"}},
			[]string{"message go", "text one two", "done one two"}, []string{"message go", "message one two"},
		},
		"done alone": {
			[]core.Body{core.Done{Text: "all"}}, []string{"message go", "text all", "done all"}, []string{"message go", "message all"},
		},
		"nothing": {[]core.Body{core.Done{}}, []string{"message go", "done "}, []string{"message go"}},
		"data": {
			[]core.Body{core.Text{Text: "see"}, core.Done{Data: []byte(`{"a":1}`)}},
			[]string{"message go", "text see", "text \n\nData:\n```json\n{\"a\":1}\n```", "done see\n\nData:\n```json\n{\"a\":1}\n```"},
			[]string{"message go", "message see\n\nData:\n```json\n{\"a\":1}\n```"},
		},
		"a failure of the agent's": {
			[]core.Body{core.Text{Text: "so far"}, core.Failed{Fault: core.NewFault(core.CodeInternal, "out of ink")}},
			[]string{"message go", "text so far", "error out of ink false"}, []string{"message go", "message so far", "error out of ink"},
		},
		"a failure with a code": {
			[]core.Body{core.Failed{Fault: core.NewFault(core.CodeOverloaded, "later")}},
			[]string{"message go", "error overloaded: later true"}, []string{"message go", "error overloaded: later"},
		},
		"cancelled": {
			[]core.Body{core.Text{Text: "so"}, core.Cancelled{Reason: "enough"}},
			[]string{"message go", "text so", "error cancelled: enough false"}, []string{"message go", "message so", "error cancelled: enough"},
		},
		"a file": {
			[]core.Body{core.File{Name: "a.txt", MediaType: "text/plain", Data: []byte("hi")}, core.Done{}},
			[]string{"message go", "file a.txt (text/plain, 2 bytes)", "done "}, []string{"message go", "file a.txt (text/plain, 2 bytes)"},
		},
	} {
		t.Run(name, func(t *testing.T) {
			task := ofTask(t, tt.said...)
			told, _ := toldOf(task, wire.DefaultMaxMessageBytes)
			if d := cmp.Diff(tt.told, told); d != "" {
				t.Errorf("told (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.remembered, recalled(task, wire.DefaultMaxMessageBytes)); d != "" {
				t.Errorf("remembered (-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatNoMessageHasRoomForIsToldInPiecesOrSaid(t *testing.T) {
	const room = 1000
	long := strings.Repeat("ü", 5000)
	task := ofTask(t,
		core.ToolResult{ID: "t", Output: long}, core.File{Name: "f", Data: []byte(long)}, core.Text{Text: long}, core.Done{Text: long},
	)
	words, messages := toldOf(task, room)
	var text strings.Builder
	for i, m := range messages {
		if n := proto.Size(m); n > room {
			t.Errorf("message %d has %d bytes, want at most %d", i, n, room)
		}
		text.WriteString(m.GetText().GetContent())
	}
	if text.String() != long {
		t.Errorf("got %d bytes of text, want all %d", text.Len(), len(long))
	}
	if !strings.Contains(words[1], "GET /v1/tasks/"+string(task.ID())) {
		t.Errorf("got %q of the tool, want it said where the whole is", words[1])
	}
	for i, e := range recalled(task, room) {
		if i > 0 && len(e) > room {
			t.Errorf("got %d bytes remembered, want fewer than %d", len(e), room)
		}
	}
}

package conversation_test

import (
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"google.golang.org/protobuf/proto"

	"github.com/dragoman-hub/dragoman/adapters/coven/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/hub"
	pb "github.com/dragoman-hub/dragoman/proto/coven"
)

// describeLive returns a line for each message of a stream.
func describeLive(messages []*pb.ClientStreamEvent) (lines []string) {
	for _, m := range messages {
		switch p := m.GetPayload().(type) {
		case *pb.ClientStreamEvent_Text:
			lines = append(lines, "text "+p.Text.GetContent())
		case *pb.ClientStreamEvent_Event:
			lines = append(lines, p.Event.GetType()+" "+p.Event.GetText())
		case *pb.ClientStreamEvent_Done:
			lines = append(lines, "done "+p.Done.GetFullResponse())
		case *pb.ClientStreamEvent_Error:
			lines = append(lines, fmt.Sprintf("error %s %t", p.Error.GetMessage(), p.Error.GetRecoverable()))
		}
	}
	return lines
}

// describeHistory returns a line for each event, and one for each that is out of order.
func describeHistory(events []*pb.Event) (lines []string) {
	for i, e := range events {
		if i > 0 && e.GetId() <= events[i-1].GetId() {
			lines = append(lines, "out of order")
		}
		lines = append(lines, e.GetType()+" "+e.GetText())
	}
	return lines
}

func TestEveryEndIsStreamedAndInTheHistory(t *testing.T) {
	for name, tt := range map[string]struct {
		reported      []core.Body
		live, history []string
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
			h := coretest.NewHub(t, hub.Options{})
			s := conversation.NewService(h, conversation.Options{}, serve)
			a := joinAgent(t, h, "guide")
			sendMessage(t, s, "guide", "go", "1")
			a.report(tt.reported...)
			if d := cmp.Diff(tt.live, describeLive(untilEnd(t, s, "guide"))); d != "" {
				t.Errorf("stream (-want +got):\n%s", d)
			}
			if d := cmp.Diff(tt.history, describeHistory(history(t, s, "guide"))); d != "" {
				t.Errorf("history (-want +got):\n%s", d)
			}
		})
	}
}

func TestWhatDoesNotFitIntoAMessageIsSplitOrReferredTo(t *testing.T) {
	const room = 1000
	long := strings.Repeat("ü", 5000)
	h := coretest.NewHub(t, hub.Options{})
	s := conversation.NewService(h, conversation.Options{MaxMessageBytes: room}, serve)
	a := joinAgent(t, h, "guide")
	sendMessage(t, s, "guide", "go", "1")
	task := a.report(core.ToolResult{ID: "t", Output: long}, core.File{Name: "f", Data: []byte(long)}, core.Text{Text: long}, core.Done{Text: long})
	messages := untilEnd(t, s, "guide")
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
	if got := describeLive(messages)[1]; !strings.Contains(got, "GET /v1/tasks/"+string(task.ID())) {
		t.Errorf("got %q for the result of the tool, want it to say where all of it is", got)
	}
	for i, e := range describeHistory(history(t, s, "guide")) {
		if i > 0 && len(e) > room {
			t.Errorf("got an event of %d bytes, want at most %d", len(e), room)
		}
	}
}

package pi_test

import (
	"encoding/base64"
	"encoding/json"
	"fmt"
	"strings"
	"testing"

	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"pgregory.net/rapid"

	"github.com/dragoman-hub/dragoman/adapters/pi"
	"github.com/dragoman-hub/dragoman/adapters/pi/command"
	"github.com/dragoman-hub/dragoman/adapters/pi/conversation"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/task"
)

// message is the content of one command.
type message struct {
	Text   string
	Images []core.File
}

func someMessage(t *rapid.T) message {
	w := message{Text: rapid.OneOf(
		rapid.StringN(1, -1, -1),
		rapid.Map(rapid.IntRange(1, command.MaxMessage), func(n int) string { return strings.Repeat("x", n) }),
	).Draw(t, "message")}
	for i := range rapid.SampledFrom([]int{0, 0, 1, 2}).Draw(t, "images") {
		w.Images = append(w.Images, core.File{
			Name: fmt.Sprintf("image-%d", i+1), MediaType: rapid.String().Draw(t, "type"), Data: rapid.SliceOf(rapid.Byte()).Draw(t, "data"),
		})
	}
	return w
}

// frame returns the command with the message.
func (w message) frame(kind, session, id, behavior string) string {
	m := map[string]any{"type": kind, "sessionId": session, "id": id, "message": w.Text}
	var images []any
	for _, f := range w.Images {
		images = append(images, map[string]any{"type": "image", "data": base64.StdEncoding.EncodeToString(f.Data), "mimeType": f.MediaType})
	}
	if images != nil {
		m["images"] = images
	}
	if behavior != "" {
		m["streamingBehavior"] = behavior
	}
	return string(strictjson.Encode(m))
}

// joined returns the content of a request with several messages.
func joined(all ...message) message {
	var w message
	var texts []string
	for _, one := range all {
		texts = append(texts, one.Text)
		w.Images = append(w.Images, one.Images...)
	}
	w.Text = strings.Join(texts, "\n\n")
	return w
}

// contentOf returns the content of the agent's request.
func contentOf(task *task.Task) message {
	return message{task.Request().Content, task.Request().Attachments}
}

// userMessages returns the user's messages, as clients get them.
func userMessages(t *rapid.T, messages []conversation.Message) []message {
	var all []message
	for _, m := range messages {
		if m.Role != conversation.RoleUser {
			continue
		}
		var s struct {
			Content []struct{ Type, Text, Data, MimeType string }
		}
		if err := json.Unmarshal(m.JSON, &s); err != nil {
			t.Fatal(err)
		}
		var w message
		for i, c := range s.Content {
			if c.Type == "text" {
				w.Text += c.Text
				continue
			}
			data, err := base64.StdEncoding.DecodeString(c.Data)
			if err != nil {
				t.Fatal(err)
			}
			w.Images = append(w.Images, core.File{Name: fmt.Sprintf("image-%d", i), MediaType: c.MimeType, Data: data})
		}
		all = append(all, w)
	}
	return all
}

// ways are the commands that send a message during a run.
var ways = []struct {
	kind, behavior string
	follows        bool
}{
	{"steer", "", false}, {"prompt", "steer", false}, {"follow_up", "", true}, {"prompt", "followUp", true},
}

func TestAMessageReachesTheAgentAndTheSessionWhole(t *testing.T) {
	h, s := newServer(t, pi.Options{CompactAt: -1}) // long messages would cause requests for a summary
	w := newHeldAgent()
	a := joinAgent(t, h, core.Card{ID: "a", Features: core.FeatureInjection | core.FeatureFiles}, w.work)
	rapid.Check(t, func(rt *rapid.T) {
		c := dial(t, s, pi.ConnOptions{})
		defer c.Close()
		c.open("s", "a")
		same := func(what string, want, got any) {
			rt.Helper()
			if diff := cmp.Diff(want, got, cmpopts.EquateEmpty()); diff != "" {
				rt.Fatalf("%s (-want +got):\n%s", what, diff)
			}
		}
		var shown, steering, following []message
		id := 0
		do := func(sent message, kind, behavior string) {
			id++
			c.ok(sent.frame(kind, "s", fmt.Sprintf("c%d", id), behavior))
		}

		first := someMessage(rt)
		opening := []message{first}
		for range rapid.IntRange(0, 2).Draw(rt, "steered before") {
			sent := someMessage(rt)
			do(sent, "steer", "")
			opening = append(opening, sent)
		}
		c.send(first.frame("prompt", "s", "run", ""))
		task := <-w.tasks
		same("request of the prompt", joined(opening...), contentOf(task))
		shown = append(shown, opening...)

		for range rapid.IntRange(0, 4).Draw(rt, "sent in the run") {
			sent := someMessage(rt)
			how := rapid.SampledFrom(ways).Draw(rt, "how")
			do(sent, how.kind, how.behavior)
			switch {
			case how.follows:
				following = append(following, sent)
			case len(sent.Images) > 0: // more than an injection holds
				steering = append(steering, sent)
			default:
				in := (<-w.requests).(core.Injected)
				same("injection", sent.Text, in.Content)
				a.report(task, core.InjectionAnswered{ID: in.ID, Accepted: true})
				shown = append(shown, sent)
			}
		}
		a.report(task, core.Done{})
		for _, sent := range append(steering, following...) {
			task = <-w.tasks
			same("request of a turn", sent, contentOf(task))
			a.report(task, core.Done{})
			shown = append(shown, sent)
		}
		c.until(`"type":"response"`, `"id":"run"`, `"success":true`)
		same("messages of the user", shown, userMessages(rt, messagesOf(t, c, "s")))
		c.ok(`{"type":"delete_session","sessionId":"s"}`)
	})
}

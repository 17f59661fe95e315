package a2a_test

import (
	"context"
	"encoding/json"
	"fmt"
	"io"
	"net/http"
	"net/http/httptest"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a"
	"github.com/dragoman-hub/dragoman/adapters/a2a/wire"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/webhook"
)

// posted is a notification at its target.
type posted struct {
	header http.Header
	item   wire.StreamResponse
}

// target starts an HTTP server that receives notifications.
func target(t *testing.T) (url string, received <-chan posted) {
	t.Helper()
	out := make(chan posted, 16)
	srv := httptest.NewServer(http.HandlerFunc(func(_ http.ResponseWriter, r *http.Request) {
		body, err := io.ReadAll(r.Body)
		if err != nil {
			t.Error(err)
		}
		v, err := wire.Parse(body)
		if err != nil {
			t.Error(err)
		}
		item, err := new(wire.ItemReader).Read(v)
		if err != nil {
			t.Errorf("%s: %v", body, err)
		}
		out <- posted{r.Header, item}
	}))
	t.Cleanup(srv.Close)
	return srv.URL, out
}

// next returns the next notification, which is to tell of the state.
func next(t *testing.T, received <-chan posted, want wire.State) wire.StreamResponse {
	t.Helper()
	select {
	case p := <-received:
		if got := lastState([]wire.StreamResponse{p.item}); got != want {
			t.Fatalf("got %+v posted, want the state %s", p.item, want)
		}
		return p.item
	case <-time.After(time.Minute):
		t.Fatalf("got nothing posted, want the state %s", want)
	}
	return wire.StreamResponse{}
}

func sender(t *testing.T, targets webhook.Targets) *webhook.Sender {
	s := webhook.New(targets)
	t.Cleanup(func() {
		ctx, cancel := context.WithCancel(context.Background())
		cancel()
		s.Close(ctx)
	})
	return s
}

func TestStatesOfATaskArePostedInOrder(t *testing.T) {
	for _, b := range bindings {
		t.Run(string(b), func(t *testing.T) {
			f := start(t, a2a.Options{Webhooks: sender(t, webhook.TargetsAny)})
			a := f.agent("shout")
			url, received := target(t)
			params := strings.TrimSuffix(message("m1", "go", ""), "}") +
				fmt.Sprintf(`,"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"id":"first","url":%q,"token":"tok","authentication":{"scheme":"Bearer","credentials":"secret"}}}}`, url)
			id := f.send(b, "shout", params).ID
			task, _ := a.next(core.KindAssigned)
			_, result, failed := f.call(b, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":%q}`, id, url+"/second"))
			var second wire.PushConfig
			if err := json.Unmarshal(result, &second); failed != nil || err != nil || second.ID == "" {
				t.Fatalf("got %s, %v, want a configuration with an id", result, failed)
			}
			if _, _, failed := f.call(b, "shout", wire.MethodDeletePush, fmt.Sprintf(`{"taskId":%q,"id":%q}`, id, second.ID)); failed != nil {
				t.Errorf("delete: got %v", failed)
			}
			_, result, _ = f.call(b, "shout", wire.MethodListPush, fmt.Sprintf(`{"taskId":%q}`, id))
			if want := fmt.Sprintf(`{"configs":[{"taskId":%q,"id":"first","url":%q,"token":"tok","authentication":{"scheme":"Bearer"}}],"nextPageToken":""}`, id, url); string(result) != want {
				t.Errorf("got %s, want %s", result, want)
			}
			if _, result, failed := f.call(b, "shout", wire.MethodGetPush, fmt.Sprintf(`{"taskId":%q,"id":"first"}`, id)); failed != nil || strings.Contains(string(result), "secret") {
				t.Errorf("get: got %s and %v, want it without the credentials", result, failed)
			}
			if _, _, failed := f.call(b, "shout", wire.MethodGetPush, fmt.Sprintf(`{"taskId":%q,"id":"first"}`, id), "X-User: eve"); failed.reason() != wire.ReasonTaskNotFound {
				t.Errorf("somebody else: got %v, want TASK_NOT_FOUND", failed)
			}
			a.say(task, core.Text{Text: "HI"}, core.ApprovalRequested{ID: "c", Name: "rm", Input: "{}"})
			if err := f.hub.Connect(hubIdentity("local")).Decide(hub.NoWait, task.ID(), core.ApprovalDecided{ID: "c", Approved: true}); err != nil {
				t.Fatal(err)
			}
			a.say(task, core.Done{})
			var states []wire.State
			for len(states) == 0 || !states[len(states)-1].Terminal() {
				p := <-received
				if p.header.Get("Authorization") != "Bearer secret" || p.header.Get("X-A2A-Notification-Token") != "tok" || p.header.Get("Content-Type") != wire.MediaA2A {
					t.Errorf("got the headers %v, want the credentials, the token and the type", p.header)
				}
				states = append(states, lastState([]wire.StreamResponse{p.item}))
				if p.item.Task != nil && answerOf(*p.item.Task) != "HI" {
					t.Errorf("got %+v, want the whole task at the end", p.item.Task)
				}
			}
			got := fmt.Sprint(states[max(0, len(states)-3):])
			if want := fmt.Sprint([]wire.State{wire.StateInputRequired, wire.StateWorking, wire.StateCompleted}); got != want {
				t.Errorf("got the states %s, want %s at the end", got, want)
			}
		})
	}
}

func TestAQuestionOfATaskIsPosted(t *testing.T) {
	f := start(t, a2a.Options{Webhooks: sender(t, webhook.TargetsAny)})
	a := f.agent("shout", func(c *core.Card) { c.Capabilities = []string{"ui"} })
	url, received := target(t)
	s := f.hub.Connect(hubIdentity("local")) // that the task was opened in another dialect changes nothing
	defer s.Close(nil)
	opened, err := s.Open(core.Request{Intent: core.IntentAsk, To: core.ToAgent("shout"), Thread: "t", Content: "paint"}, hub.OpenOptions{Unwatched: true})
	if err != nil {
		t.Fatal(err)
	}
	task, _ := a.next(core.KindAssigned)
	if _, _, failed := f.call(rpc, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":%q}`, opened.ID(), url)); failed != nil {
		t.Fatalf("create: got %v, want a configuration", failed)
	}
	answer := a.ask(`{"question":"Which colour?","options":[{"label":"red"},{"label":"blue"}]}`)
	if u := next(t, received, wire.StateInputRequired).StatusUpdate; u == nil || u.Status.Message == nil || wire.Text(u.Status.Message.Parts) != "Which colour?" {
		t.Errorf("got %+v posted, want the question", u)
	}
	if _, _, failed := f.call(rpc, "shout", wire.MethodSend, strings.TrimSuffix(partsMessage("m1", string(opened.ID()), `{"text":"red"}`), "}")+`,"configuration":{"returnImmediately":true}}`); failed != nil {
		t.Fatalf("answer: got %v, want it taken", failed)
	}
	<-answer
	next(t, received, wire.StateWorking)
	a.say(task, core.Done{})
	next(t, received, wire.StateCompleted)
}

func TestAConfigurationThatCannotBeWatchedIsNotKept(t *testing.T) {
	f := start(t, a2a.Options{Webhooks: sender(t, webhook.TargetsAny)})
	a := f.agent("shout")
	id := f.send(rpc, "shout", strings.TrimSuffix(message("m1", "go", ""), "}")+`,"configuration":{"returnImmediately":true}}`).ID
	task, _ := a.next(core.KindAssigned)
	f.server.Close()
	for range 2 {
		if _, _, failed := f.call(rpc, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":"http://127.0.0.1:1/"}`, id)); failed == nil {
			t.Error("got a configuration, want an error, as nothing will be posted")
		}
	}
	_, result, _ := f.call(rpc, "shout", wire.MethodListPush, fmt.Sprintf(`{"taskId":%q}`, id))
	if want := `{"configs":[],"nextPageToken":""}`; string(result) != want {
		t.Errorf("got %s, want %s", result, want)
	}
	a.say(task, core.Done{})
}

func TestNotificationsGoOnAfterAGap(t *testing.T) {
	f := start(t, a2a.Options{Webhooks: sender(t, webhook.TargetsAny)})
	a := f.agent("shout")
	url, received := target(t)
	id := f.send(rpc, "shout", strings.TrimSuffix(message("m1", "go", ""), "}")+`,"configuration":{"returnImmediately":true}}`).ID
	task, _ := a.next(core.KindAssigned)
	if _, _, failed := f.call(rpc, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":%q}`, id, url)); failed != nil {
		t.Fatalf("create: got %v, want a configuration", failed)
	}
	f.server.Miss(task)
	a.say(task, core.ApprovalRequested{ID: "c", Name: "rm", Input: "{}"})
	f.server.Missed(task)
	next(t, received, wire.StateInputRequired)
	f.server.Missed(task) // nothing has changed
	a.say(task, core.Text{Text: "HI"}, core.Done{})
	f.server.Missed(task)
	if whole := next(t, received, wire.StateCompleted).Task; whole == nil || answerOf(*whole) != "HI" {
		t.Errorf("got %+v posted at the end, want the whole task", whole)
	}
	f.server.Missed(task)
	select {
	case p := <-received:
		t.Errorf("got %+v posted after the end", p.item)
	default:
	}
}

func TestNotificationsGoOnlyWhereTheyMay(t *testing.T) {
	for targets, want := range map[webhook.Targets]string{webhook.TargetsPublic: "INVALID_PARAMS", 0: wire.ReasonPushNotSupported} {
		var opts a2a.Options
		if targets != 0 {
			opts.Webhooks = sender(t, targets)
		}
		f := start(t, opts)
		a := f.agent("shout")
		id := f.send(rpc, "shout", strings.TrimSuffix(message("m1", "go", ""), "}")+`,"configuration":{"returnImmediately":true}}`).ID
		for _, b := range bindings {
			if _, _, failed := f.call(b, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":"http://127.0.0.1:1/"}`, id)); failed.reason() != want {
				t.Errorf("create: got %v, want %s", failed, want)
			}
			if _, _, failed := f.call(b, "shout", wire.MethodSend, strings.TrimSuffix(message("m2", "go", ""), "}")+`,"configuration":{"taskPushNotificationConfig":{"url":"http://127.0.0.1:1/"}}}`); failed.reason() != want {
				t.Errorf("send: got %v, want %s", failed, want)
			}
		}
		task, _ := a.next(core.KindAssigned)
		a.say(task, core.Done{})
		if _, _, failed := f.call(rpc, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":"https://example.com/"}`, id)); targets != 0 && failed.reason() != wire.ReasonUnsupportedOperation {
			t.Errorf("an ended task: got %v, want UNSUPPORTED_OPERATION", failed)
		}
		if _, _, failed := f.call(rest, "shout", wire.MethodExtendedCard, `{}`); failed.reason() != wire.ReasonNoExtendedCard {
			t.Errorf("got %v, want no extended card", failed)
		}
	}
}

// Each text becomes a part of a header of every notification: what cannot be one is refused when it is named.
func TestAConfigurationWhoseTextsAreNoHeadersIsRefused(t *testing.T) {
	f := start(t, a2a.Options{Webhooks: sender(t, webhook.TargetsPublic)})
	a := f.agent("shout")
	id := f.send(rpc, "shout", strings.TrimSuffix(message("m1", "go", ""), "}")+`,"configuration":{"returnImmediately":true}}`).ID
	for _, b := range bindings {
		for members, want := range map[string]string{
			`"token":"x\r\nX-Forged: y"`: "token", `"token":"x\n"`: "token", `"token":"\u0000"`: "token", `"token":"` + strings.Repeat("x", 4097) + `"`: "token",
			`"authentication":{"scheme":"Bearer\r\nX: y"}`:                          "authentication.scheme",
			`"authentication":{"scheme":"Bearer","credentials":"x\r\nX-Forged: y"}`: "authentication.credentials",
		} {
			if _, _, failed := f.call(b, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":"https://example.com/",%s}`, id, members)); failed.reason() != "INVALID_PARAMS" || !strings.Contains(fmt.Sprint(failed), want) {
				t.Errorf("%s: create with %.60s: got %v, want INVALID_PARAMS for %s", b, members, failed, want)
			}
			if _, _, failed := f.call(b, "shout", wire.MethodSend, strings.TrimSuffix(message("m2", "go", ""), "}")+`,"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"url":"https://example.com/",`+members+`}}}`); failed.reason() != "INVALID_PARAMS" {
				t.Errorf("%s: send with %.60s: got %v, want INVALID_PARAMS", b, members, failed)
			}
		}
		if _, _, failed := f.call(b, "shout", wire.MethodCreatePush, fmt.Sprintf(`{"taskId":%q,"url":"https://[::ffff:0:127.0.0.1]/"}`, id)); failed.reason() != "INVALID_PARAMS" {
			t.Errorf("%s: an address in another form: got %v, want INVALID_PARAMS", b, failed)
		}
	}
	task, _ := a.next(core.KindAssigned)
	a.say(task, core.Done{})
}

// A push configuration says where the requester is told, with a secret of its own.
func TestWhoMayReadATaskDoesNotSeeOrChangeWhereOthersAreTold(t *testing.T) {
	f := start(t, a2a.Options{Webhooks: sender(t, webhook.TargetsAny)})
	a := f.agent("shout")
	url, received := target(t)
	id := f.send(rpc, "shout", strings.TrimSuffix(message("m1", "go", ""), "}")+
		fmt.Sprintf(`,"configuration":{"returnImmediately":true,"taskPushNotificationConfig":{"id":"c","url":%q}}}`, url), "X-User: ann").ID
	task, _ := a.next(core.KindAssigned)
	elsewhere, others := target(t)
	reader := func(method, params string) json.RawMessage { // an operator
		t.Helper()
		_, result, failed := f.call(rpc, "shout", method, fmt.Sprintf(params, id))
		if failed != nil {
			t.Fatalf("%s: got %v, want an answer", method, failed)
		}
		return result
	}
	if got := reader(wire.MethodListPush, `{"taskId":%q}`); strings.Contains(string(got), url) {
		t.Errorf("got %s, want none that is ann's", got)
	}
	reader(wire.MethodDeletePush, `{"taskId":%q,"id":"c"}`)
	reader(wire.MethodCreatePush, `{"taskId":%q,"id":"c","url":"`+elsewhere+`"}`)
	a.say(task, core.Done{})
	next(t, received, wire.StateCompleted)
	next(t, others, wire.StateCompleted)
}

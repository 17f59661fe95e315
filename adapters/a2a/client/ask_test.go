package client_test

import (
	"context"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/adapters/a2a/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/coretest"
	"github.com/dragoman-hub/dragoman/core/question"
)

// answers makes people answer every question with a text.
func answers(text string) func(context.Context, question.Question) (question.Outcome, error) {
	return func(context.Context, question.Question) (question.Outcome, error) {
		return question.Outcome{Answered: true, Text: text}, nil
	}
}

func TestAQuestionThatEndsTheStreamIsAnsweredWithTheNextMessage(t *testing.T) {
	n := 0
	rest := []string{`{"task":` + snapshot("WORKING", "to ") + `}`, chunk("Ulm"), status("COMPLETED")}
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) {
			if n++; n == 1 {
				x.say(task("WORKING"), chunk("to "), statusSaying("INPUT_REQUIRED", "q1", "Which city?"))
				return
			}
			x.say(rest...)
		},
		// An answer that comes before the client has noticed the end of the stream is sent so:
		"SendMessage":     func(x *exchange) { x.result(`{"task":` + snapshot("WORKING", "to ") + `}`) },
		"SubscribeToTask": func(x *exchange) { x.say(rest...) },
	})
	c := newTurn(t, "x")
	c.ask = func(_ context.Context, q question.Question) (question.Outcome, error) {
		if q.Text != "Which city?" || q.Options != nil {
			t.Errorf("the people were asked %+v, want which city", q)
		}
		return question.Outcome{Answered: true, Text: "Ulm"}, nil
	}
	run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\ntext to Ulm\ndone")
	want := `{"tenant":"t 1","message":{"messageId":"task-1.1","contextId":"C","taskId":"T","role":"ROLE_USER","parts":[{"text":"Ulm"}]},"configuration":{`
	if _, params, _ := strings.Cut(f.called()[1], " "); !strings.HasPrefix(params, want) {
		t.Errorf("the client sent:\n%s\nwant:\n%s", params, want)
	}
}

func TestAQuestionBesideTheStreamIsAnsweredBesideIt(t *testing.T) {
	answered := make(chan struct{})
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) {
			x.say(task("WORKING"), chunk("to "), statusSaying("INPUT_REQUIRED", "q1", "Which city?"))
			<-answered
			x.say(status("WORKING"), chunk("Ulm"), status("COMPLETED"))
		},
		"SendMessage": func(x *exchange) {
			x.result(`{"task":` + snapshot("WORKING", "to ") + `}`)
			close(answered)
		},
	})
	c := newTurn(t, "x")
	c.ask = answers("Ulm")
	run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\ntext to Ulm\ndone")
}

func TestAQuestionThatTheRemoteSettledItselfIsWithdrawn(t *testing.T) {
	asked, withdrawn := make(chan struct{}), make(chan struct{})
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		x.say(task("WORKING"), statusSaying("INPUT_REQUIRED", "q1", "Which city?"))
		<-asked
		x.say(status("WORKING"))
		<-withdrawn
		x.say(chunk("Ulm"), status("COMPLETED"))
	}})
	c := newTurn(t, "x")
	c.ask = func(ctx context.Context, _ question.Question) (question.Outcome, error) {
		close(asked)
		<-ctx.Done()
		close(withdrawn)
		return question.Outcome{}, context.Cause(ctx)
	}
	run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\ntext Ulm\ndone")
}

func TestWithoutPeopleAQuestionIsTheAnswerAndTheNextTurnContinuesTheTask(t *testing.T) {
	log := &coretest.MemoryLog{}
	n := 0
	f := remote(t, map[string]func(*exchange){"SendStreamingMessage": func(x *exchange) {
		if n++; n == 1 {
			x.say(task("WORKING"), statusSaying("INPUT_REQUIRED", "q1", "Which city?"))
			return
		}
		x.say(`{"task":{"id":"T","contextId":"C","status":{"state":"TASK_STATE_WORKING"}}}`, chunk("Ulm it is"), status("COMPLETED"))
	}})
	run(t, client.Options{URL: f.URL, Sessions: log}).does(newTurn(t, "x"), "accepted\nsession_started C\ntext Which city?\ndone")
	next := newTurn(t, "Ulm")
	next.id = "task-2"
	again := run(t, client.Options{URL: f.URL, Sessions: log}) // after a restart of the hub
	again.does(next, "accepted\ntext Ulm it is\ndone")
	want := `SendStreamingMessage {"tenant":"t 1","message":{"messageId":"task-2","contextId":"C","taskId":"T","role":"ROLE_USER","parts":[{"text":"Ulm"}]},"configuration":{}}`
	if got := f.called()[1]; got != want {
		t.Errorf("the client sent:\n%s\nwant:\n%s", got, want)
	}
}

func TestAnApprovalOfAHubIsOneHere(t *testing.T) {
	decided, sent := make(chan string, 1), make(chan struct{})
	f := remote(t, map[string]func(*exchange){
		"SendStreamingMessage": func(x *exchange) {
			x.say(task("WORKING"), `{"statusUpdate":{"taskId":"T","contextId":"C","status":{"state":"TASK_STATE_INPUT_REQUIRED","message":{"messageId":"q","role":"ROLE_AGENT","parts":[{"text":"May it write?"},{"data":{"approval":{"id":"t1","name":"write","input":"{\"to\":\"x\"}"}}}]}}}}`)
			x.say(status("WORKING"), chunk("written"), status(<-decided))
		},
		"SendMessage": func(x *exchange) {
			x.result(`{"task":` + snapshot("WORKING", "") + `}`)
			if !strings.Contains(string(x.params), `"parts":[{"data":{"approval":{"id":"t1","approved":true}}}]`) {
				x.Errorf("the client sent %s, want the approval", x.params)
			}
			decided <- "COMPLETED"
			close(sent)
		},
	})
	c := newTurn(t, "x")
	c.ask = func(context.Context, question.Question) (question.Outcome, error) {
		t.Error("the people were asked a question, want an approval alone")
		return question.Outcome{}, nil
	}
	c.reported = func(b core.Body) {
		if r, ok := b.(core.ApprovalRequested); ok {
			c.heard <- core.ApprovalDecided{ID: r.ID, Approved: true, By: "user"}
			select { // somebody may decide at once
			case <-sent:
			case <-t.Context().Done():
			case <-time.After(watchdog):
				t.Error("the decision was not sent, want it sent although the report has not returned")
			}
		}
	}
	run(t, client.Options{URL: f.URL}).does(c, "accepted\nsession_started C\n"+`approval_requested {"id":"t1","name":"write","input":"{\"to\":\"x\"}"}`+"\ntext written\ndone")
}

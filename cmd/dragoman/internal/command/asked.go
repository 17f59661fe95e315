package command

import (
	"context"
	"errors"
	"fmt"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// questionsEvery is how often a person who waits for a task is shown what agents ask meanwhile.
const questionsEvery = 500 * time.Millisecond

// Headers of the request that opens a task. Hubs that do not know them ignore them.
const (
	// questionsHeader says that its questions are read, so that an agent which asks at once waits for an answer.
	questionsHeader = "Dragoman-Questions"
	// asksHeader says that it is sent again until an agent is here, so that a refusal for want of one leaves no task.
	asksHeader = "Dragoman-Asks"
)

// questionNotes shows what agents ask people for the tasks of a thread, and for what these have caused.
type questionNotes struct {
	hub   *client.Client
	again string // the flag that names the hub in another command
	note  func(text string)

	desk      *desk // where they are answered in place of the notes; nil for notes
	decisions decisions

	cancel  context.CancelFunc
	running sync.WaitGroup
}

// begin prints questions until ctx ends, or stop. A hub that refuses to list them, such as an older one, is not
// asked again. It is called once.
func (n *questionNotes) begin(ctx context.Context, thread core.ThreadID) {
	ctx, n.cancel = context.WithCancel(ctx)
	n.running.Go(func() {
		shown, told := map[string]bool{}, false
		for {
			var list questionList
			err := n.hub.Get(ctx, "/v1/questions?thread="+url.QueryEscape(string(thread)), &list)
			if errors.As(err, new(client.Refusal)) {
				return
			}
			if err == nil {
				shown = n.show(list.Questions, shown)
			}
			if len(list.Missing) > 0 && !told {
				told = true
				n.note("[" + missingHubs(list.Missing) + "]")
			}
			select {
			case <-time.After(questionsEvery):
			case <-ctx.Done():
				return
			}
		}
	})
}

// show shows the open questions that were not shown before, and returns all that are open.
func (n *questionNotes) show(list []question.Question, before map[string]bool) (open map[string]bool) {
	open = map[string]bool{}
	for _, q := range list {
		open[q.ID] = true
	}
	if n.desk != nil {
		n.desk.settle(func(id string) bool { return before[id] && !open[id] })
	}
	for _, q := range list {
		switch {
		case before[q.ID]:
		case n.desk != nil:
			n.desk.put(n.decisions.question(q))
		default:
			n.note(asked(q, n.again))
		}
	}
	return open
}

// stop ends the notes, and waits for that. It may be called more than once.
func (n *questionNotes) stop() {
	if n.cancel != nil {
		n.cancel()
	}
	n.running.Wait()
}

// The most of a question that is shown beside an answer.
const (
	askedLines = 24
	askedBytes = 2 << 10
)

// asked says who asks what, and with which command to answer; hub is as in howToAnswer. The
// command comes first, since the rest is what an agent says.
func asked(q question.Question, hub string) string {
	who := "a question"
	if q.Agent != "" {
		who += " of " + visible(string(q.Agent))
	}
	text := strings.TrimSpace(linesOf(q))
	lines := strings.Split(text[:min(len(text), askedBytes)], "\n")
	if short := strings.Join(lines[:min(len(lines), askedLines)], "\n"); len(short) < len(text) {
		text = strings.ToValidUTF8(short, "") + "\n…: 'dragoman questions " + q.ID + "' shows the rest"
	}
	return fmt.Sprintf("[%s, which '%s' answers, in another terminal, within %s:\n  %s]", who, howToAnswer(q, hub), timeLeft(q.Until), block(text))
}

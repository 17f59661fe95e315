package command

import (
	"context"
	"fmt"
	"io"
	"net/url"
	"strings"
	"sync"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

// questionsEvery is how often a person who waits for a task is shown what agents ask meanwhile: they wait for a
// minute.
const questionsEvery = time.Second

// noteQuestions prints the questions that agents ask people for a task, once its thread is known, until stop. It is
// for somebody at a terminal: whoever reads the list of questions counts as present, so that from now on an agent
// that asks waits for an answer.
func noteQuestions(ctx context.Context, hub *client.Client, note io.Writer) (opened func(core.ThreadID), stop func()) {
	ctx, cancel := context.WithCancel(ctx)
	read := func(thread core.ThreadID) []question.Question {
		var list questionList
		_ = hub.Get(ctx, "/v1/questions?thread="+url.QueryEscape(string(thread)), &list) // the task itself tells of a hub that does not answer
		return list.Questions
	}
	read("")
	var running sync.WaitGroup
	opened = func(thread core.ThreadID) {
		running.Go(func() {
			shown := map[string]bool{}
			for {
				for _, q := range read(thread) {
					if !shown[q.ID] {
						shown[q.ID] = true
						fmt.Fprintf(note, "[%s]\n", asked(q))
					}
				}
				select {
				case <-time.After(questionsEvery):
				case <-ctx.Done():
					return
				}
			}
		})
	}
	stop = func() {
		cancel()
		running.Wait()
	}
	return opened, stop
}

// asked says who asks what, and how to answer.
func asked(q question.Question) string {
	who, answer := "a question", "OPTION"
	if q.Agent != "" {
		who += " of " + visible(string(q.Agent))
	}
	if len(q.Options) == 0 {
		answer = "--text TEXT"
	}
	return fmt.Sprintf("%s: %s\n  'dragoman answer %s %s' answers it within %s", who, block(strings.TrimSpace(linesOf(q))), quoted(q.ID), answer, timeLeft(q.Until))
}

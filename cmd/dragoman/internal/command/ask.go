package command

import (
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"sync"
	"syscall"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/core"
)

// errLeft says that the user interrupted the command.
var errLeft = errors.New("interrupted")

// interruption is the reason that a task cancelled by an interrupt is given.
const interruption = "interrupted"

func askCommand(io Streams) *cobra.Command {
	var a client.TaskRequest
	var data, branch string
	var files []string
	var thinking, noInput bool
	c := &cobra.Command{
		Use: "ask TO [WORD...]", Short: "Ask an agent and print its answer as it arrives",
		Long: `Ask an agent and print its answer as it arrives. TO is an agent id, capability:NAME
(or capability:A,B), domain:NAME, or * for any agent.

Without words, or with "-" or @-, the question is read from stdin; @FILE, as the only word,
reads a file. A question that begins with @ is written with @@. --data takes @FILE and @-
too; with --data @- and no words, the data alone is sent. The hub's limits.request_bytes says
how long a question may be, attachments included.

At a terminal, without --json, one line shows what the agent does, and what waits for you
is decided there: tool calls that want approval, and the questions that agents ask people
for this task. With --no-input, and where stdin is no terminal, the command that decides is
shown instead. Where stderr is none either, such a question fails at once, unless somebody
has the console open or has just run 'dragoman questions'.

The first interrupt cancels the task and waits for its end, the second one exits.
Exit codes: 0 done, 1 failed, 2 usage, 3 timeout, 130 interrupted.`,
		Example: `  dragoman ask shout "hello"
  dragoman ask capability:translate "Guten Tag" --timeout 20s
  dragoman ask bob @question.md
  dragoman ask claude "How would you do it?" --option mode=plan
  dragoman ask claude "And the other way?" --branch 3f9a1c
  git diff | dragoman ask reviewer`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print every event as a line of JSON")
	c.ValidArgsFunction = withContent(fromHub(to, addressees))
	f.StringVar(&a.Thread, "thread", "", "`id` of the conversation to continue")
	f.StringVar(&branch, "branch", "", "`id` of a task: a new conversation begins with what was said up to it")
	f.StringVar(&data, "data", "", "`JSON` data to send with the question, or @file")
	f.StringArrayVar(&files, "file", nil, "`file` to attach; may be repeated")
	timeout := timeFlag(f, "timeout", 0, "`time` that the answer may take, such as 20s, not counting --wait; default: the hub's setting")
	f.Int64Var(&a.MaxTokens, "max-tokens", 0, "maximum `number` of tokens of the answer")
	wait := waitFlag(f, "a hub or an agent")
	f.Lookup("wait").Usage += "; --timeout begins after that"
	options := optionFlag(f, "the agent is set to for this question")
	f.BoolVar(&thinking, "thinking", false, "print the agent's thinking and tool calls on stderr")
	noInputFlag(f, &noInput)
	completeFlag(c, "thread", fromHub(to, threadIDs))
	completeFlag(c, "branch", fromHub(to, taskIDs))
	completeFlag(c, "data", completeAtFile)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := refuseEmpty(c, "thread", "branch", "data", "file"); err != nil {
			return err
		}
		if err := checkWait(c, args, "the agent to ask"); err != nil {
			return err
		}
		a.To, a.Intent = args[0], "ask"
		if a.Options, err = optionsOf(*options); err != nil {
			return err
		}
		if a.Content, err = contentBeside("data", data, args[1:], io.In); err != nil {
			return err
		}
		if data != "" {
			if a.Data, err = jsonOf(data, "--data", io.In); err != nil {
				return err
			}
		}
		if a.Attachments, err = attach(files); err != nil {
			return err
		}
		if a.DeadlineMS, err = deadline(c, *timeout); err != nil {
			return err
		}
		if a.Branch, err = branchOf(c, to, branch); err != nil {
			return err
		}
		keep := false
		a.Keep = &keep
		return ask(c.Context(), to, a, *wait, thinking, noInput)
	}
	return c
}

// branchOf returns the task that --branch means; "" without it.
func branchOf(c *cobra.Command, to *hubFlags, given string) (core.TaskID, error) {
	switch {
	case given == "":
		return "", nil
	case c.Flags().Changed("thread"):
		return "", usagef("--branch begins a new conversation: leave out --thread")
	}
	return findTask(c.Context(), to.client(), given)
}

func attach(paths []string) ([]core.File, error) {
	var files []core.File
	for _, p := range paths {
		from, err := config.ExpandHome(p)
		if err != nil {
			return nil, usagef("--file %s: %w", quoted(p), err)
		}
		b, err := os.ReadFile(from)
		if err != nil {
			return nil, usagef("--file %s: %w; name a file that you may read", quoted(p), cause(err))
		}
		files = append(files, core.File{Name: filepath.Base(p), MediaType: mime.TypeByExtension(filepath.Ext(p)), Data: b})
	}
	return files, nil
}

// deadline returns --timeout in milliseconds; with 0 the hub decides.
func deadline(c *cobra.Command, timeout time.Duration) (int64, error) {
	if c.Flags().Changed("timeout") && timeout < time.Millisecond {
		return 0, usagef("--timeout %s: want at least 1ms, such as 20s; leave it out for the hub's setting", config.FormatTime(timeout))
	}
	return timeout.Milliseconds(), nil
}

// ask opens a task and prints its events until it ends. It waits up to wait for a hub or an
// agent that is not running yet.
func ask(ctx context.Context, to *hubFlags, a client.TaskRequest, wait time.Duration, thinking, noInput bool) error {
	t := newTalk(to, thinking)
	if to.attended(noInput) {
		t.attend(newPlainTerminal(to.In.(*os.File), to.Err))
		defer t.terminal.close()
	}
	ctx, u := t.begin(ctx)
	defer onInterrupt(u.interrupt)()
	var decided sync.WaitGroup
	defer decided.Wait()
	if t.desk != nil {
		decided.Go(func() { t.takeLines(ctx) })
	}
	return u.run(ctx, a, wait)
}

// interruptTask cancels a task, and reports whether the hub has taken that.
func interruptTask(ctx context.Context, hub *client.Client, id core.TaskID, note io.Writer) bool {
	_, err := hub.Cancel(ctx, id, interruption)
	if err != nil && ctx.Err() == nil {
		fmt.Fprintf(note, "dragoman: not cancelled: %s; the end of a task is shown once it is recorded (GET /readyz says whether that is possible)\n", inLine(err))
	}
	return err == nil
}

// openTask opens a task, once its agent has arrived if the command waits, and returns its events.
func openTask(ctx context.Context, hub *client.Client, a client.TaskRequest, arrival *client.Retry, waits bool) (resp *http.Response, err error) {
	var absent error // the last refusal for want of an agent
	err = arrival.Do(ctx, func() (err error) {
		if waits { // the question may be large: it is sent again once somebody is here for it
			if err := findAgent(ctx, hub, a.To, absent); err != nil {
				return err
			}
		}
		resp, err = hub.Do(ctx, http.MethodPost, "/v1/tasks", client.NDJSON, a) //nolint:bodyclose // the caller follows it
		if client.IsUnknownAgent(err) {
			absent = err
		}
		return err
	})
	return resp, err
}

// noteThread prints a note if a thread is new: its id may be mistyped.
func noteThread(ctx context.Context, hub *client.Client, id string, note io.Writer) error {
	if id == "" {
		return nil
	}
	isNew, err := hub.ThreadIsNew(ctx, id)
	if isNew {
		fmt.Fprintf(note, "[the thread %s is new: it has no earlier turns]\n", quoted(id))
	}
	return err
}

// onInterrupt calls fn for every interrupt, with its number, until stop is called.
func onInterrupt(fn func(nth int)) (stop func()) {
	signals := make(chan os.Signal, 2)
	signal.Notify(signals, os.Interrupt, syscall.SIGTERM)
	done := make(chan struct{})
	ended := make(chan struct{})
	go func() {
		defer close(ended)
		for n := 1; ; n++ {
			select {
			case <-signals:
				fn(n)
			case <-done:
				return
			}
		}
	}()
	return func() {
		signal.Stop(signals)
		close(done)
		<-ended
	}
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"io"
	"mime"
	"net/http"
	"os"
	"os/signal"
	"path/filepath"
	"strings"
	"sync"
	"sync/atomic"
	"syscall"
	"time"
	"unicode/utf8"

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
	var data string
	var files []string
	var thinking bool
	c := &cobra.Command{
		Use: "ask TO [WORD...]", Short: "Ask an agent and print its answer as it arrives",
		Long: `Ask an agent and print its answer as it arrives. TO is an agent id, capability:NAME
(or capability:A,B), domain:NAME, or * for any agent.

Without words, or with "-" or @-, the question is read from stdin; @FILE, as the only word,
reads a file. A question that begins with @ is written with @@. --data takes @FILE and @-
too; with --data @- and no words, the data alone is sent. The hub's limits.request_bytes says
how long a question may be, attachments included.

At a terminal, questions of agents to people are shown as well; 'dragoman answer' answers them.

The first interrupt cancels the task and waits for its end, the second one exits.
Exit codes: 0 done, 1 failed, 2 usage, 3 timeout, 130 interrupted.`,
		Example: `  dragoman ask shout "hello"
  dragoman ask capability:translate "Guten Tag" --timeout 20s
  dragoman ask bob @question.md
  git diff | dragoman ask reviewer`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := addHubFlags(f, io, "print every event as a line of JSON")
	c.ValidArgsFunction = withContent(fromHub(to, addressees))
	f.StringVar(&a.Thread, "thread", "", "`id` of the conversation to continue")
	f.StringVar(&data, "data", "", "`JSON` data to send with the question, or @file")
	f.StringArrayVar(&files, "file", nil, "`file` to attach; may be repeated")
	timeout := timeFlag(f, "timeout", 0, "`time` that the answer may take, such as 20s, not counting --wait; default: the hub's setting")
	f.Int64Var(&a.MaxTokens, "max-tokens", 0, "maximum `number` of tokens of the answer")
	wait := waitFlag(f, "a hub or an agent")
	f.Lookup("wait").Usage += "; --timeout begins after that"
	f.BoolVar(&thinking, "thinking", false, "print the agent's thinking and tool calls on stderr")
	completeFlag(c, "thread", fromHub(to, threadIDs))
	completeFlag(c, "data", completeAtFile)
	c.RunE = func(c *cobra.Command, args []string) (err error) {
		if err := refuseEmpty(c, "thread", "data", "file"); err != nil {
			return err
		}
		if err := checkWait(c, args, "the agent to ask"); err != nil {
			return err
		}
		a.To, a.Intent = args[0], "ask"
		if a.Content, err = contentBeside("data", data, args[1:], io.In); err != nil {
			return err
		}
		if data != "" {
			if a.Data, err = jsonOf(data, "data", io.In); err != nil {
				return err
			}
		}
		if a.Attachments, err = attach(files); err != nil {
			return err
		}
		if a.DeadlineMS, err = deadline(c, *timeout); err != nil {
			return err
		}
		keep := false
		a.Keep = &keep
		return ask(c.Context(), to, a, *wait, thinking)
	}
	return c
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
func ask(ctx context.Context, to *hubFlags, a client.TaskRequest, wait time.Duration, thinking bool) error {
	hub := to.client()
	var cancelling sync.WaitGroup
	defer cancelling.Wait()
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	opened := make(chan core.TaskID, 1)
	var cancelled atomic.Bool // by this command
	stop := onInterrupt(func(nth int) {
		if nth > 1 {
			leave(errLeft)
			return
		}
		select {
		case id := <-opened:
			fmt.Fprintln(to.Err, "cancelling: interrupt again to leave")
			cancelling.Go(func() {
				_, err := hub.Cancel(ctx, id, interruption)
				cancelled.Store(err == nil)
				if err != nil && ctx.Err() == nil {
					fmt.Fprintf(to.Err, "dragoman: not cancelled: %s; the end of a task is shown once it is recorded (GET /readyz says whether that is possible)\n", inLine(err))
				}
			})
		default:
			leave(errLeft)
		}
	})
	defer stop()

	arrival := client.NewRetry(wait, client.IsAbsent, func(err error) { fmt.Fprintf(to.Err, "[waiting up to %s: %s]\n", config.FormatTime(wait), inLine(err)) })
	err := arrival.Do(ctx, func() error { return noteThread(ctx, hub, a.Thread, to.Err) })
	threadKnown, stopQuestions := func(core.ThreadID) {}, func() {}
	if !to.json && isTerminal(to.Err) {
		threadKnown, stopQuestions = noteQuestions(ctx, hub, to.Err)
	}
	defer stopQuestions()
	var resp *http.Response
	if err == nil {
		var absent error // the last refusal for want of an agent
		err = arrival.Do(ctx, func() (err error) {
			if wait > 0 { // a refused task is in the list of tasks, too: one is enough
				if err := findAgent(ctx, hub, a.To, absent); err != nil {
					return err
				}
			}
			resp, err = hub.Do(ctx, http.MethodPost, "/v1/tasks", client.NDJSON, a) //nolint:bodyclose // follow closes it
			if client.IsUnknownAgent(err) {
				absent = err
			}
			return err
		})
	}
	switch {
	case errors.Is(context.Cause(ctx), errLeft):
		return &exit{ExitInterrupted, errLeft}
	case err != nil:
		return err
	}
	p := &printer{io: to.Streams, json: to.json, thinking: thinking}
	event, stopNote := noteQuiet(ctx, hub, a.To, to.Err)
	err = client.Follow(resp, func(l client.Line, raw []byte) error {
		event(l)
		if b, ok := l.Body.(core.Opened); ok {
			opened <- b.Task
			threadKnown(cmp.Or(b.Request.Thread, core.ThreadID(b.Task)))
		}
		return p.print(l, raw)
	})
	stopNote()
	stopQuestions()
	cancelling.Wait() // the end may overtake the answer to the cancel
	switch {
	case errors.Is(context.Cause(ctx), errLeft):
		return &exit{ExitInterrupted, errLeft}
	case err != nil || p.end == nil:
		p.breakLine()
		if p.task == "" {
			return client.CutOff(err, "no event of the task was received: 'dragoman tail' shows what the hub does")
		}
		return client.CutOff(err, client.TailHint(p.task))
	}
	return p.outcome(cancelled.Load())
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

// printer prints the events of one task, for a person or as JSON.
type printer struct {
	io             Streams
	json, thinking bool
	task           core.TaskID
	printed        bool   // some text was printed
	newline        bool   // and it ended with a line break
	last           string // the last character of it, which may belong together with the next
	end            core.Body
}

func (p *printer) print(l client.Line, raw []byte) error {
	if l.Body != nil && l.Body.Kind().Ends() {
		p.end = l.Body
	}
	if b, ok := l.Body.(core.Opened); ok {
		p.task = b.Task
	}
	if p.json {
		_, err := fmt.Fprintln(p.io.Out, jsonText(raw))
		return err
	}
	if l.Gap != nil {
		fmt.Fprintf(p.io.Err, "[events %d to %d are no longer kept]\n", l.Gap.From, l.Gap.To)
	}
	switch b := l.Body.(type) {
	case core.Text:
		p.printed, p.newline = true, strings.HasSuffix(b.Text, "\n")
		_, err := fmt.Fprint(p.io.Out, p.shown(b.Text))
		return err
	case core.File:
		fmt.Fprintf(p.io.Err, "[file %s, %s, %d bytes: --json has it]\n", visible(b.Name), visible(orDash(b.MediaType)), len(b.Data))
	case core.Retrying:
		if b.Hub != "" {
			fmt.Fprintf(p.io.Err, "[it goes on at hub %s: %s]\n", visible(b.Hub), visible(b.Fault.Message))
			break
		}
		fmt.Fprintf(p.io.Err, "[%s failed: %s; trying another]\n", visible(string(b.Agent)), visible(b.Fault.Message))
	case core.ApprovalRequested:
		call := decisionArgs(p.task, b.ID, b.InputSHA256)
		fmt.Fprintf(p.io.Err, "[%s waits for approval: %s; 'dragoman approve %[3]s' or 'dragoman deny %[3]s' decides]\n", visible(b.Name), visible(b.Input), call)
	case core.ApprovalDecided:
		fmt.Fprintf(p.io.Err, "[%s]\n", visible(verdict(b)))
	case core.ToolState:
		if p.thinking {
			fmt.Fprintf(p.io.Err, "[%s is %s%s]\n", visible(b.ID), b.State, visible(because(b.Detail)))
		}
	case core.Thinking:
		if p.thinking {
			fmt.Fprintf(p.io.Err, "[%s]\n", block(strings.TrimSpace(b.Text)))
		}
	case core.ToolCall:
		if p.thinking {
			fmt.Fprintf(p.io.Err, "[%s %s]\n", visible(b.Name), visible(b.Input))
		}
	case core.Done:
		return p.done(b)
	}
	return nil
}

// shown returns an agent's text as a terminal may show it; elsewhere it stays as it is.
func (p *printer) shown(text string) string {
	if !isTerminal(p.io.Out) {
		return text
	}
	before := p.last
	if _, size := utf8.DecodeLastRuneInString(text); size > 0 {
		p.last = text[len(text)-size:]
	}
	return visibleLines(before + text)[len(visibleLines(before)):]
}

func (p *printer) done(b core.Done) error {
	switch {
	case !p.printed && b.Text != "":
		fmt.Fprintln(p.io.Out, p.shown(strings.TrimSuffix(b.Text, "\n")))
	case !p.printed && len(b.Data) > 0:
		fmt.Fprintln(p.io.Out, jsonText(b.Data))
	case p.printed && !p.newline:
		fmt.Fprintln(p.io.Out)
	}
	return nil
}

// outcome makes an exit code of the end of the task. interrupted means that this program
// cancelled it; it does not depend on the texts of others.
func (p *printer) outcome(interrupted bool) error {
	if p.end.Kind() != core.KindDone {
		p.breakLine()
	}
	switch b := p.end.(type) {
	case core.Failed:
		failure := fmt.Errorf("the task failed (%s): %s", b.Fault.Code, b.Fault.Message)
		if interrupted {
			return &exit{ExitInterrupted, fmt.Errorf("cancelled, and %w", failure)}
		}
		if b.Fault.Code == core.CodeTooLarge {
			failure = fmt.Errorf("%w; put what is long into a file that the agent can read, or let the agent join by native, which takes more", failure)
		}
		return &exit{codeOf(b.Fault), failure}
	case core.Cancelled:
		switch {
		case interrupted && b.Reason == interruption:
			return &exit{ExitInterrupted, errors.New("cancelled")}
		case interrupted:
			return &exit{ExitInterrupted, errors.New("cancelled" + because(b.Reason))}
		}
		return &exit{ExitFailed, errors.New("the task was cancelled" + because(b.Reason))}
	}
	return nil
}

// breakLine ends the line of an unfinished answer.
func (p *printer) breakLine() {
	if p.printed && !p.newline {
		fmt.Fprintln(p.io.Out)
		p.newline = true
	}
}

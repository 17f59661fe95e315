package command

import (
	"context"
	"errors"
	"fmt"
	"os"
	"strings"
	"sync"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
)

func chatCommand(io Streams) *cobra.Command {
	var thread string
	var thinking bool
	c := &cobra.Command{
		Use: "chat AGENT", Short: "Talk with an agent",
		Long: `Talk with an agent: each line is asked in the same conversation, and the answer is printed
as it arrives. AGENT is anything that 'dragoman ask' takes.

What waits for you is decided in place, as in 'dragoman ask'. A pasted text is one question,
once you press Enter. Arrows move in the line and through those before. Ctrl-C cancels the
answer, a second one leaves; Ctrl-D leaves too. Lines that begin with / are for the command:

` + slashHelp + `

Without a terminal every line of stdin is asked, one after the other, and the first failure
ends the command.`,
		Example: `  dragoman chat claude
  printf 'hello\nand now in French\n' | dragoman chat claude`,
		Args: cobra.ExactArgs(1),
	}
	f := c.Flags()
	to := addHubFlags(f, io, "")
	c.ValidArgsFunction = inOrder(fromHub(to, addressees))
	f.StringVar(&thread, "thread", "", "`id` of the conversation to continue")
	f.BoolVar(&thinking, "thinking", false, "print the agent's thinking and tool calls on stderr")
	given := optionFlag(f, "the agent is set to for each question")
	completeFlag(c, "thread", fromHub(to, threadIDs))
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := refuseEmpty(c, "thread"); err != nil {
			return err
		}
		options, err := optionsOf(*given)
		if err != nil {
			return err
		}
		chat := &chat{talk: newTalk(to, thinking), agent: args[0], options: options, thread: core.ThreadID(thread), ended: make(chan error)}
		chat.asksAgain = func(core.TaskID) string { return "/again" }
		return chat.run(c.Context())
	}
	return c
}

const slashHelp = `  /agent NAME   go on with another agent in the same conversation
  /branch       go on in a new conversation, which begins with this one so far
  /again        ask again what you asked last
  /inject TEXT  give the agent more context while it answers
  /usage        the tokens of this conversation since you came
  /help         this list
  //TEXT        ask /TEXT`

// chat is a conversation at a terminal, or in lines from stdin.
type chat struct {
	*talk
	agent     string
	options   core.Options // of every question
	thread    core.ThreadID
	from      core.TaskID // the task from which the next question branches, until a turn is done
	latest    core.TaskID // that has ended
	turn      *turn       // nil while nothing is asked
	ended     chan error
	next      []string // lines to ask after this turn
	last      string   // that was asked
	nth       int      // interrupt since the last turn began, or line
	done      bool     // there are no more lines
	injecting sync.WaitGroup
}

// run asks what is typed until there is no more.
func (t *chat) run(ctx context.Context) error {
	lines, interrupts, leave := t.open()
	defer leave()
	ctx, stop := context.WithCancel(ctx)
	defer t.injecting.Wait()
	defer stop()
	for {
		if t.turn == nil && !t.goOn(ctx) {
			return nil
		}
		in := lines
		if t.done || t.turn != nil && t.terminal == nil { // a pipe waits for the answer
			in = nil
		}
		select {
		case line := <-in:
			t.hear(ctx, line)
		case <-interrupts:
			t.interrupt()
		case err := <-t.ended:
			if err := t.end(err); err != nil {
				return err
			}
		}
	}
}

// goOn asks the next question, or for one. It reports whether there may be any.
func (t *chat) goOn(ctx context.Context) bool {
	switch {
	case len(t.next) > 0:
		t.ask(ctx)
	case t.done:
		return false
	case t.terminal != nil:
		t.terminal.ask(visible(t.agent) + "> ")
	}
	return true
}

// hear takes a line. Where there are no more, the person has left.
func (t *chat) hear(ctx context.Context, line typed) {
	t.nth = 0
	if line.text != "" {
		t.take(ctx, line)
	}
	if line.err == nil {
		return
	}
	t.done = true
	if t.terminal != nil && t.turn != nil {
		t.next = nil
		t.turn.interrupt(1)
	}
}

// open returns what is typed, or written to stdin, and the interrupts. leave ends both.
func (t *chat) open() (lines <-chan typed, interrupts <-chan struct{}, leave func()) {
	signals := make(chan struct{}, 1)
	signal := func(int) {
		select {
		case signals <- struct{}{}:
		default:
		}
	}
	stop := onInterrupt(signal)
	switch whole := isTerminal(t.to.In) && isTerminal(t.to.Err); {
	case !whole:
		piped := newPlainTerminal(t.to.In, t.to.Err)
		piped.listen()
		return piped.lines(), signals, func() { stop(); close(piped.closed) }
	case isTerminal(t.to.Out) && os.Getenv("TERM") != "dumb":
		t.attend(newLineEditor(t.to.In.(*os.File), t.to.Err, func() { signal(0) }))
	default:
		t.attend(newPlainTerminal(t.to.In, t.to.Err))
	}
	return t.terminal.lines(), signals, func() {
		stop()
		t.terminal.close()
		if t.thread != "" {
			fmt.Fprintf(t.to.Err, "[to go on: dragoman chat%s %s --thread %s]\n", t.to.again(), quoted(t.agent), quoted(string(t.thread)))
		}
	}
}

// say prints a line for the person.
func (t *chat) say(text string) {
	if t.turn != nil {
		t.turn.note(text)
		return
	}
	t.printer().note(text)
}

// take does what a line says: it decides on what waits, is for the command, or is a question.
func (t *chat) take(ctx context.Context, line typed) {
	if t.terminal != nil && t.desk.busy() {
		t.desk.take(ctx, line)
		return
	}
	word, rest, _ := strings.Cut(strings.TrimSpace(line.text), " ")
	rest = strings.TrimSpace(rest)
	switch {
	case word == "":
	case strings.HasPrefix(word, "//"):
		t.later(strings.TrimSpace(line.text)[1:])
	case !strings.HasPrefix(word, "/"):
		t.later(line.text)
	default:
		t.do(ctx, word, rest)
	}
}

// do does what a line for the command says.
func (t *chat) do(ctx context.Context, word, rest string) {
	switch {
	case word == "/agent" && rest != "":
		t.agent = rest
		t.say("[you talk with " + visible(rest) + " now, in the same conversation]")
	case word == "/branch" && rest == "":
		t.branch(ctx)
	case word == "/again" && rest == "" && t.last != "":
		t.later(t.last)
	case word == "/inject" && rest != "":
		t.inject(ctx, rest)
	case word == "/usage":
		t.say(t.usage())
	default:
		t.say(slashHelp)
	}
}

// branchTime is how long the hub may take to say where a conversation has got to.
const branchTime = 5 * time.Second

// branch goes on in a new conversation.
func (t *chat) branch(ctx context.Context) {
	if t.turn != nil {
		t.say("[wait for the answer: a conversation branches where a question has ended]")
		return
	}
	var err error
	if t.latest == "" && t.thread != "" { // it goes on with one of before
		ctx, cancel := context.WithTimeout(ctx, branchTime) // nothing else is heard meanwhile
		defer cancel()
		t.latest, err = newest(ctx, t.hub, client.TaskQuery{Thread: string(t.thread)})
	}
	switch {
	case err != nil:
		t.say("dragoman: " + inLine(err))
	case t.latest == "":
		t.say("[nothing has been asked yet]")
	default:
		t.from, t.thread = t.latest, ""
		t.say("[you go on in a new conversation, which begins with this one so far]")
	}
}

// later asks once nothing else is asked.
func (t *chat) later(text string) {
	t.next = append(t.next, text)
	if t.turn != nil {
		t.say("[it is asked after this answer: /inject gives it to the agent now]")
	}
}

// inject sends context to the agent that answers.
func (t *chat) inject(ctx context.Context, text string) {
	if t.turn == nil || t.turn.id() == "" {
		t.say("[nobody answers now: just ask]")
		return
	}
	u := t.turn
	t.injecting.Go(func() {
		answer, err := t.hub.Inject(ctx, u.id(), map[string]any{"id": core.NewID(), "content": text, "priority": "normal"}, injectWait)
		switch {
		case ctx.Err() != nil:
		case err != nil:
			u.note("dragoman: " + inLine(err))
		case answer.Accepted != nil && *answer.Accepted:
			u.note("[the agent has taken it]")
		default:
			u.note("[the agent has not taken it" + visible(because(answer.Reason)) + "]")
		}
	})
}

// usage tells the tokens of all turns, and what they cost as far as that is known.
func (t *chat) usage() string {
	u := t.spent()
	cost := ""
	if u.Cost.Known() {
		cost = "; cost: " + u.Cost.String()
	}
	return fmt.Sprintf("[%d tokens: %d input, %d output, %d thinking; cache: %d read, %d written%s]", u.Total(), u.Input, u.Output, u.Thinking, u.CacheRead, u.CacheWrite, cost)
}

// ask begins a turn with the next question.
func (t *chat) ask(ctx context.Context) {
	if t.terminal != nil {
		t.terminal.ask("")
	}
	no := false
	request := client.TaskRequest{To: t.agent, Intent: "ask", Content: t.next[0], Thread: string(t.thread), Branch: t.from, Options: t.options, Keep: &no}
	t.last, t.next, t.nth = t.next[0], t.next[1:], 0
	ctx, u := t.begin(ctx)
	t.turn = u
	go func() { t.ended <- u.run(ctx, request, 0) }()
}

// interrupt cancels the answer. The second time the person leaves.
func (t *chat) interrupt() {
	t.nth++
	if t.nth > 1 {
		t.done, t.next = true, nil
	}
	switch {
	case t.turn != nil:
		t.turn.interrupt(t.nth)
	case t.nth == 1:
		t.say("interrupt again to leave")
	}
}

// end ends the turn. It returns an error if that ends the conversation.
func (t *chat) end(err error) error {
	u := t.turn
	_, done := u.end.(core.Done)
	if t.turn = nil; u.thread != "" && (t.from == "" || done) { // else the next question branches once more
		t.thread, t.latest, t.from = u.thread, u.task, ""
	}
	switch {
	case err != nil && (t.terminal == nil || errors.Is(err, errLeft) && t.nth > 1):
		return err
	case err != nil:
		t.say("dragoman: " + inLine(err))
	}
	return nil
}

package command

import (
	"cmp"
	"context"
	"errors"
	"fmt"
	"os"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/mcp/wire"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	corehub "github.com/dragoman-hub/dragoman/core/hub"
	"github.com/dragoman-hub/dragoman/core/question"
	"github.com/dragoman-hub/dragoman/core/strictjson"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

func callCommand(io Streams) *cobra.Command {
	var noInput bool
	c := &cobra.Command{
		Use: "call PACK.TOOL [JSON]", Short: "Call a tool of a pack and print its result", Args: cobra.RangeArgs(1, 2),
		Long: `Call a tool of a pack on the hub and print its result. JSON is the input, an object; @FILE
reads a file, - or @- stdin. Without it the input is {}. 'dragoman packs ID' lists the tools
of a pack.

Text is printed; of files and other contents a note on stderr tells, and -o json has all. At
a terminal one line shows what the tool says meanwhile, and its questions are answered there.
With --no-input, and where stdin is no terminal, it is told that nobody answers. An
interrupt cancels the call.`,
		Example: `  dragoman call files.read '{"path":"README.md"}'
  dragoman call search.find @query.json -o json`,
	}
	to := addHubFlags(c.Flags(), io, "print the whole result as JSON")
	addOutputFlag(c, to)
	noInputFlag(c.Flags(), &noInput)
	c.ValidArgsFunction = inOrder(fromHub(to, toolNames), completeAtFile)
	c.RunE = func(c *cobra.Command, args []string) error {
		given := "{}"
		if len(args) > 1 {
			given = args[1]
		}
		if given == "-" {
			given = fromStdin
		}
		text, err := jsonOf(given, "JSON", io.In)
		if err != nil {
			return err
		}
		input, err := strictjson.Parse(text, strictjson.Limits{Bytes: len(text)})
		switch {
		case err != nil:
			return usagef("JSON: %w", err)
		case input.Kind() != strictjson.Object:
			return usagef(`JSON is no object: write the input of a tool as '{"path":"README.md"}'`)
		}
		result, err := callTool(c.Context(), to, args[0], input, noInput)
		if err != nil {
			return err
		}
		return printResult(to, result)
	}
	return c
}

// callTool calls a tool, and shows a person at the terminal what it says and asks.
func callTool(ctx context.Context, to *hubFlags, name string, input strictjson.Value, noInput bool) (result strictjson.Value, err error) {
	ctx, leave := context.WithCancelCause(ctx)
	defer leave(nil)
	defer onInterrupt(func(int) { leave(errLeft) })()
	hub := to.client()
	list, err := hub.Tools(ctx)
	if err != nil {
		return result, err
	}
	call := client.ToolCall{Tool: client.Tool{Name: name}, Input: input}
	i := slices.IndexFunc(list, func(t client.Tool) bool { return t.Name == name })
	if i >= 0 {
		call.Tool = list[i]
	}
	if to.attended(noInput) {
		at := newPlainTerminal(to.In.(*os.File), to.Err)
		defer at.close()
		p := newProgress(at.status, func() int { return widthOf(to.Err) }, name)
		defer p.end()
		call.Told, call.Ask = toldIn(p, name), asksAt(at, to, p)
	} else {
		p := startProgress(to.Err, name)
		defer p.end()
		call.Told = toldIn(p, name)
	}
	result, err = hub.CallTool(ctx, call)
	switch refused := (client.Refusal{}); {
	case errors.Is(context.Cause(ctx), errLeft):
		return result, &exit{ExitInterrupted, errors.New("cancelled")}
	case i < 0 && errors.As(err, &refused) && refused.Fault.Code == core.CodeInvalid:
		return result, unknownTool(ctx, hub, name)
	case err == nil:
		return result, nil
	}
	return result, client.CutOff(err, "the tool may have run to its end")
}

// toldIn shows what a tool says in the line of a progress.
func toldIn(p *progress, name string) func(text string) {
	return func(text string) { p.say(name, brief(text)) }
}

// asksAt puts the questions of a tool before the person at a terminal, until ctx ends.
func asksAt(at *plainTerminal, to *hubFlags, p *progress) func(context.Context, question.Question) (question.Outcome, error) {
	d := &desk{say: func(text string) { fmt.Fprintln(stream{at, to.Err}, text) }, ask: at.ask, size: func() (int, int) { return sizeOf(to.Err) }}
	return func(ctx context.Context, q question.Question) (question.Outcome, error) {
		answered := make(chan core.Reply, 1)
		d.put(matterOf(q, func(_ context.Context, answer core.Reply) (string, error) {
			answered <- answer
			return "", nil
		}))
		for {
			select {
			case line := <-at.lines():
				if line.err != nil {
					return question.Outcome{}, line.err
				}
				d.take(ctx, line)
			case a := <-answered:
				return question.Outcome{Answered: true, Selected: a.Selected, Text: a.Text, Content: a.Content}, nil
			case <-ctx.Done():
				return question.Outcome{}, ctx.Err()
			}
		}
	}
}

// mostNamed is how many packs or tools an error names.
const mostNamed = 20

// unknownTool says which packs and tools there are instead of one that is not there.
func unknownTool(ctx context.Context, hub *client.Client, name string) error {
	var here packList
	if err := hub.Get(ctx, "/v1/packs", &here); err != nil {
		return err
	}
	pack, _, _ := strings.Cut(name, ".")
	ids := idsOf(here.Packs, func(p corehub.PackStatus) string { return p.ID })
	if i := slices.Index(ids, pack); i >= 0 {
		return fmt.Errorf("pack %s has no tool %s: %s", quoted(pack), quoted(name), instead(name, here.Packs[i].Tools))
	}
	return fmt.Errorf("no pack %s is here: %s", quoted(pack), instead(pack, ids))
}

// instead says which name was probably meant, or which there are.
func instead(name string, names []string) string {
	if near := suggest.Nearest(name, names); near != "" {
		return "did you mean " + quoted(near) + "?"
	}
	more := ""
	if n := len(names) - mostNamed; n > 0 {
		names, more = names[:mostNamed], fmt.Sprintf(" and %d more", n)
	}
	shown := make([]string, len(names))
	for i, one := range names {
		shown[i] = quoted(one)
	}
	return "there is " + cmp.Or(strings.Join(shown, ", "), "none") + more
}

// printResult prints the result of a tool. That of a failure is the error.
func printResult(to *hubFlags, result strictjson.Value) error {
	var failure error
	var failed bool
	_ = result.Get("isError").Decode(&failed) // absent for most
	out := &printer{out: to.Out, err: to.Err, screen: isTerminal(to.Out)}
	var texts []string
	for block := range result.Get("content").Items() {
		if text, ok := textOfBlock(block); ok {
			texts = append(texts, strings.TrimSuffix(text, "\n"))
		} else if !to.json {
			out.note("[" + visible(aboutBlock(block)) + ": -o json has it]")
		}
	}
	if data := result.Get("structuredContent"); len(texts) == 0 && data.Exists() {
		texts = append(texts, jsonText(data.Raw()))
	}
	text := strings.Join(texts, "\n")
	if failed {
		failure = errors.New(cmp.Or(text, "the tool failed, and does not say why"))
	}
	if to.json {
		return errors.Join(printJSON(to.Out, result.Raw()), failure)
	}
	if failed || text == "" {
		return failure
	}
	_, err := fmt.Fprintln(to.Out, out.shown(text))
	return err
}

// textOfBlock returns the text of a content that is one.
func textOfBlock(block strictjson.Value) (string, bool) {
	if text, ok := wire.TextOf(block); ok {
		return text, true
	}
	return block.Get("resource", "text").Text()
}

// aboutBlock describes a content that is no text.
func aboutBlock(block strictjson.Value) string {
	kind, _ := block.Get("type").Text()
	at := block
	if in := block.Get("resource"); in.Exists() {
		at = in
	}
	name, _ := at.Get("uri").Text()
	media, _ := at.Get("mimeType").Text()
	return brief(strings.Join(strings.Fields(kind+" "+name+" "+media), " "))
}

package command

import (
	"context"
	"fmt"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/question"
)

func questionsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "questions [QUESTION]", Short: "List the open questions of agents", Args: cobra.MaximumNArgs(1),
		Long: `List the questions of agents, and of tools, that wait for an answer, the longest waiting
first, or show one as a whole. 'dragoman answer' answers them. The first answer counts.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	addOutputFlag(c, to)
	c.ValidArgsFunction = fromHub(to, questionIDs)
	c.RunE = func(c *cobra.Command, args []string) error {
		var list questionList
		if err := to.client().Get(c.Context(), "/v1/questions", &list); err != nil {
			return err
		}
		if len(args) > 0 {
			return showQuestion(to, list.Questions, args[0])
		}
		var ids []string
		for _, q := range list.Questions {
			ids = append(ids, q.ID)
			for _, id := range q.Tasks {
				ids = append(ids, string(id))
			}
		}
		short := to.shortened(ids)
		heads := []string{"QUESTION", "AGENT", "TASK", "LEFT", "TEXT", "OPTIONS"}
		err := printList(to, list, list.Questions, "there are no open questions", heads, func(q question.Question) []string {
			var options []string
			for _, o := range q.Options {
				options = append(options, quoted(o.Label))
			}
			var tasks []string
			for _, id := range q.Tasks {
				tasks = append(tasks, short(string(id)))
			}
			return []string{short(q.ID), orDash(string(q.Agent)), orDash(strings.Join(tasks, ",")), timeLeft(q.Until), brief(q.Text), brief(strings.Join(options, ", "))}
		})
		tellMissing(io, list.Missing)
		return err
	}
	return c
}

// showQuestion prints the question that a person means.
func showQuestion(to *hubFlags, open []question.Question, given string) error {
	id, err := named(given, idsOf(open, questionID))
	if err != nil {
		return err
	}
	i := slices.IndexFunc(open, func(q question.Question) bool { return q.ID == id })
	if i < 0 {
		return noQuestion(id)
	}
	q := open[i]
	if to.json {
		return printJSON(to.Out, q)
	}
	of := ""
	for _, id := range q.Tasks {
		of += " for task " + visible(string(id))
	}
	_, err = fmt.Fprintf(to.Out, "%s asks%s:\n\n%s\n\nTo answer within %s: %s\n", visible(orDash(string(q.Agent))), of, visibleLines(linesOf(q)), timeLeft(q.Until), howToAnswer(q, to.again()))
	return err
}

func noQuestion(id string) error {
	return fmt.Errorf("no question %q waits for an answer: run 'dragoman questions'", id)
}

// howToAnswer returns a command that answers a question; hub is its flag that names the hub, with a blank before, or "".
func howToAnswer(q question.Question, hub string) string {
	answer := "OPTION"
	switch declines := len(q.Options) == 1 && q.Form != nil && q.Options[0].Label == q.Form.Decline; {
	case fieldsOf(q) > 1:
		answer = `"FIELD: VALUE"...`
	case len(q.Options) == 0, declines:
		answer = "--text TEXT"
	case q.Several:
		answer = "OPTION..."
	}
	return "dragoman answer" + hub + " " + quoted(q.ID) + " " + answer
}

// linesOf returns a question with its options, a line for each.
func linesOf(q question.Question) string {
	lines := []string{q.Text}
	for _, o := range q.Options {
		line := "- " + o.Label
		if o.Description != "" {
			line += ": " + o.Description
		}
		lines = append(lines, line)
	}
	return strings.Join(lines, "\n")
}

func answerCommand(io Streams) *cobra.Command {
	var text, content string
	var dismiss, noInput bool
	c := &cobra.Command{
		Use: "answer [QUESTION [OPTION...]]", Short: "Answer a question of an agent",
		Long: `Answer a question of an agent with one of its options, with several if the question
accepts that, with your own text (--text), or both. A question with several fields takes a
"field: value" for each; --content takes the JSON object that its form describes. An answer
that does not fit is refused, and the question stays open. 'dragoman questions' lists the
questions, and shows one.

At a terminal, without QUESTION, each open question is shown, and you are asked.`,
		Example: `  dragoman answer 0198f3c2-... Friday
  dragoman answer 0198f3c2-... --text "none of these"
  dragoman answer 0198f3c2-... "name: Ann" "seats: 2"`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.Args = orAsked(to, &noInput, cobra.MinimumNArgs(1))
	c.ValidArgsFunction = fromHub(to, questionIDs)
	noInputFlag(c.Flags(), &noInput)
	c.Flags().StringVar(&text, "text", "", "answer with this `text`, or that of @file")
	c.Flags().StringVar(&content, "content", "", "answer a form with this `JSON` object, or that of @file")
	c.Flags().BoolVar(&dismiss, "dismiss", false, "refuse to answer")
	completeFlag(c, "text", completeAtFile)
	completeFlag(c, "content", completeAtFile)
	c.RunE = func(c *cobra.Command, args []string) error {
		if err := refuseEmpty(c, "text", "content"); err != nil {
			return err
		}
		if len(args) == 0 {
			if err := refuseFlags(c, "without QUESTION", "text", "content", "dismiss"); err != nil {
				return err
			}
			return answerHere(c.Context(), to, decisions{hub: to.client(), tell: true})
		}
		answer := core.Reply{Question: args[0], Selected: args[1:], Dismissed: dismiss}
		err := readAnswer(&answer, text, content, io)
		if err == nil {
			err = fillIn(c.Context(), to.client(), &answer)
		}
		if err != nil {
			return err
		}
		outcome, err := sendAnswer(c.Context(), to.client(), answer)
		if err != nil {
			return err
		}
		return to.print(outcome, fmt.Sprint(outcome))
	}
	return c
}

// readAnswer reads --text and --content into an answer. It returns a usage error for what does not go together.
func readAnswer(answer *core.Reply, text, content string, io Streams) (err error) {
	words := len(answer.Selected) > 0 || text != ""
	switch {
	case !words && content == "" && !answer.Dismissed:
		return usagef("say what to answer: an option, --text or --content; --dismiss refuses to answer")
	case words && content != "", answer.Dismissed && (words || content != ""):
		return usagef("--content and --dismiss stand alone: leave the rest out")
	case content != "":
		answer.Content, err = jsonOf(content, "--content", io.In)
	case text != "":
		answer.Text, err = textOf(text, "@@ for an @", io.In)
	}
	return err
}

// questionID returns the id of a question.
func questionID(q question.Question) string { return q.ID }

// fillIn finds the question that a person means, and reads the words of an answer to a form as its content, so that what
// does not fit is told at once.
func fillIn(ctx context.Context, hub *client.Client, answer *core.Reply) (err error) {
	words := answer.Content == nil && !answer.Dismissed
	if !words && isWhole(answer.Question) {
		return nil
	}
	var list questionList
	if err := hub.Get(ctx, "/v1/questions", &list); err != nil {
		return err
	}
	if answer.Question, err = named(answer.Question, idsOf(list.Questions, questionID)); err != nil {
		return err
	}
	i := slices.IndexFunc(list.Questions, func(q question.Question) bool { return q.ID == answer.Question })
	if i < 0 || !words {
		return nil
	}
	if err = readForm(list.Questions[i], answer); err != nil {
		return fmt.Errorf("the answer does not fit: %s; 'dragoman questions %s' shows what is asked", visible(err.Error()), quoted(answer.Question))
	}
	return nil
}

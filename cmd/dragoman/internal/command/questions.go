package command

import (
	"fmt"
	"net/url"
	"slices"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/question"
)

func questionsCommand(io Streams) *cobra.Command {
	c := &cobra.Command{
		Use: "questions [QUESTION]", Short: "List the open questions of agents", Args: cobra.MaximumNArgs(1),
		Long: `List the questions of agents, and of tools, that wait for an answer, the longest waiting
first, or show one as a whole. 'dragoman answer' answers them. The first answer counts.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = fromHub(to, questionIDs)
	c.RunE = func(c *cobra.Command, args []string) error {
		var list questionList
		if err := to.client().Get(c.Context(), "/v1/questions", &list); err != nil {
			return err
		}
		if len(args) > 0 {
			return showQuestion(to, list.Questions, args[0])
		}
		heads := []string{"QUESTION", "AGENT", "LEFT", "OPTIONS", "TEXT"}
		err := printList(to, list, list.Questions, "there are no open questions", heads, func(q question.Question) []string {
			var options []string
			for _, o := range q.Options {
				options = append(options, quoted(o.Label))
			}
			return []string{q.ID, string(q.Agent), timeLeft(q.Until), strings.Join(options, ", "), brief(q.Text)}
		})
		tellMissing(io, list.Missing)
		return err
	}
	return c
}

// showQuestion prints the question with the id.
func showQuestion(to *hubFlags, open []question.Question, id string) error {
	i := slices.IndexFunc(open, func(q question.Question) bool { return q.ID == id })
	if i < 0 {
		return fmt.Errorf("no question %q waits for an answer: run 'dragoman questions'", id)
	}
	q := open[i]
	if to.json {
		return printJSON(to.Out, q)
	}
	_, err := fmt.Fprintln(to.Out, visibleLines(linesOf(q)))
	return err
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
	var text string
	var dismiss bool
	c := &cobra.Command{
		Use: "answer QUESTION [OPTION...]", Short: "Answer a question of an agent",
		Long: `Answer a question of an agent with one of its options, with several if the question
accepts that, or with your own text (--text). A question with several fields takes lines of
"field: value", or a JSON object. 'dragoman questions' lists the questions, and shows one.`,
		Example: `  dragoman answer 0198f3c2-... Friday
  dragoman answer 0198f3c2-... --text "none of these"`,
		Args: cobra.MinimumNArgs(1),
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.ValidArgsFunction = fromHub(to, questionIDs)
	c.Flags().StringVar(&text, "text", "", "answer with this `text`")
	c.Flags().BoolVar(&dismiss, "dismiss", false, "refuse to answer")
	c.RunE = func(c *cobra.Command, args []string) error {
		if answered := len(args) > 1 || text != ""; answered == dismiss {
			return usagef("use exactly one of options, --text and --dismiss")
		}
		var outcome question.Outcome
		body := map[string]any{"selected": args[1:], "custom_text": text, "dismissed": dismiss}
		if err := to.client().Post(c.Context(), "/v1/questions/"+url.PathEscape(args[0])+"/answer", body, &outcome); err != nil {
			return err
		}
		return to.print(outcome, fmt.Sprint(outcome))
	}
	return c
}

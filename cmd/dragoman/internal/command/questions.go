package command

import (
	"errors"
	"fmt"
	"net/url"
	"strings"
	"time"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/core/question"
)

func questionsCommand(io Streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use: "questions", Short: "List the questions that agents have put to people", Args: cobra.NoArgs,
		Long: `List the questions of agents that wait for an answer, the longest waiting first.
'dragoman answer' answers; the first answer counts, whoever gives it.`,
	}
	f := c.Flags()
	to := hubFlags(f)
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, _ []string) error {
		var list struct {
			Questions []question.Question `json:"questions"`
		}
		err := to.client().Get(c.Context(), "/v1/questions", &list)
		switch {
		case err != nil:
			return err
		case asJSON:
			return printJSON(io.Out, list)
		case len(list.Questions) == 0:
			fmt.Fprintln(io.Err, "there are no open questions")
			return nil
		}
		t := newTable(io.Out, "QUESTION", "AGENT", "LEFT", "OPTIONS", "TEXT")
		for _, q := range list.Questions {
			var options []string
			for _, o := range q.Options {
				options = append(options, quoted(o.Label))
			}
			t.row(q.ID, string(q.Agent), time.Until(q.Until).Round(time.Second).String(), strings.Join(options, ", "), brief(q.Text))
		}
		return t.flush()
	}
	return c
}

func answerCommand(io Streams) *cobra.Command {
	var text string
	var dismiss, asJSON bool
	c := &cobra.Command{
		Use: "answer QUESTION [OPTION...]", Short: "Answer a question of an agent",
		Long: `Answer a question that an agent has put to people: with one of its options, with
several where it takes that, or with words of your own (--text). 'dragoman questions'
lists them.`,
		Example: `  dragoman answer 0198f3c2-... Friday
  dragoman answer 0198f3c2-... --text "none of these"`,
		Args: cobra.MinimumNArgs(1),
	}
	f := c.Flags()
	to := hubFlags(f)
	f.StringVar(&text, "text", "", "an answer in `words` of your own")
	f.BoolVar(&dismiss, "dismiss", false, "say that there will be no answer")
	f.BoolVar(&asJSON, "json", false, "print JSON")
	c.RunE = func(c *cobra.Command, args []string) error {
		if said := len(args) > 1 || text != ""; said == dismiss {
			return &exit{ExitUsage, errors.New("use exactly one of options, --text and --dismiss")}
		}
		var given question.Outcome
		body := map[string]any{"selected": args[1:], "custom_text": text, "dismissed": dismiss}
		if err := to.client().Post(c.Context(), "/v1/questions/"+url.PathEscape(args[0])+"/answer", body, &given); err != nil {
			return err
		}
		if asJSON {
			return printJSON(io.Out, given)
		}
		_, err := fmt.Fprintln(io.Out, given)
		return err
	}
	return c
}

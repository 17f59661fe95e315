package command

import (
	"fmt"
	"io"
	"os"
	"slices"
	"strings"
	"time"

	"github.com/spf13/cobra"
	"golang.org/x/term"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
	"github.com/dragoman-hub/dragoman/core/usage"
)

// usageKeys are what token usage is grouped by.
var usageKeys = []string{"agent", "thread", "requester", "day", "task"}

func usageCommand(io Streams) *cobra.Command {
	var by string
	c := &cobra.Command{
		Use: "usage", Short: "Show the usage of tokens, its cost, and budgets", Args: cobra.NoArgs,
		Long: `Show the tokens used by agent, thread, requester, day or task, and what they cost, as far
back as the hub keeps them, and the state of the budgets. A terminal also shows a bar for
each of the latest days. Usage is unpriced where neither its agent tells the cost nor
usage.prices has the model.`,
	}
	to := addHubFlags(c.Flags(), io, "print JSON")
	c.Flags().StringVar(&by, "by", "agent", "`key` to group by: agent, thread, requester, day or task")
	completeFlag(c, "by", fixed(usageKeys...))
	c.RunE = func(c *cobra.Command, _ []string) error {
		if !slices.Contains(usageKeys, by) {
			return usagef("--by %q: use agent, thread, requester, day or task", by)
		}
		hub := to.client()
		u, err := hub.Usage(c.Context(), by)
		if err != nil {
			return err
		}
		defer tellMissing(io, u.Missing)
		if to.json {
			return printJSON(io.Out, u)
		}
		if len(u.Totals) == 0 {
			fmt.Fprintln(io.Err, "no agent has reported any tokens yet")
			return printBudgets(io.Out, u.Budgets)
		}
		err = printTotals(io.Out, u)
		if err == nil && len(u.Budgets) > 0 {
			fmt.Fprintln(io.Out)
			err = printBudgets(io.Out, u.Budgets)
		}
		if err != nil || !isTerminal(io.Out) {
			return err
		}
		days, err := hub.Usage(c.Context(), string(usage.ByDay))
		if err != nil {
			return err
		}
		fmt.Fprintln(io.Out)
		return printDays(io.Out, days.Totals, widthOf(io.Out))
	}
	return c
}

// printTotals prints a table of token totals.
func printTotals(out io.Writer, u client.UsageTotals) error {
	t := newTable(out, strings.ToUpper(u.By), "INPUT", "OUTPUT", "THINKING", "CACHE READ", "CACHE WRITE", "TOTAL", "COST")
	for _, x := range u.Totals {
		n := x.Tokens
		t.row(orDash(x.Key), fmt.Sprint(n.Input), fmt.Sprint(n.Output), fmt.Sprint(n.Thinking), fmt.Sprint(n.CacheRead), fmt.Sprint(n.CacheWrite), fmt.Sprint(n.Total()), costOf(x))
	}
	return t.flush()
}

// costOf returns what a total cost, and how many of its events have no price.
func costOf(x usage.Total) string {
	switch {
	case x.Unpriced == 0 || !x.Cost.Known() && x.Unpriced < x.Events: // of an older hub nothing is known
		return orDash(strings.Replace(x.Cost.String(), "unknown", "", 1))
	case x.Cost.Known():
		return fmt.Sprintf("%s, %d unpriced", x.Cost, x.Unpriced)
	}
	return "unpriced"
}

// printBudgets prints a table of budgets, if there are any.
func printBudgets(out io.Writer, budgets []client.BudgetStatus) error {
	if len(budgets) == 0 {
		return nil
	}
	t := newTable(out, "BUDGET OF", "USED", "LIMIT", "PER", "%", "RESETS")
	for _, b := range budgets {
		resets := ""
		if b.Resets != nil {
			resets = b.Resets.UTC().Format(time.RFC3339)
		}
		used, limit := fmt.Sprint(b.Used), fmt.Sprint(b.Tokens)
		if b.Cost.Known() {
			used, limit = b.UsedCost.String(), b.Cost.String()
		}
		t.row(b.By+" "+b.Key, used, limit, b.Per, fmt.Sprint(b.Percent), orDash(resets))
	}
	return t.flush()
}

// shownDays is the number of days that have a bar.
const shownDays = 14

// printDays prints a bar for each of the latest days with usage; the longest fills the
// width.
func printDays(out io.Writer, days []usage.Total, width int) error {
	days = days[max(0, len(days)-shownDays):]
	most := int64(1)
	for _, d := range days {
		most = max(most, d.Tokens.Total())
	}
	const day, least = len("2026-01-02  "), 10
	room := max(least, width-day-len(fmt.Sprint(most))-len("  "))
	t := newTable(out, "DAY", "TOTAL")
	for _, d := range days {
		n := d.Tokens.Total()
		t.row(d.Key, fmt.Sprint(n), bar(n, most, room))
	}
	return t.flush()
}

// eighths are the parts of a cell that a bar may end in.
var eighths = []rune(" ▏▎▍▌▋▊▉")

// bar draws n of most in room cells. Anything above zero is visible.
func bar(n, most int64, room int) string {
	parts := int(float64(n) / float64(most) * float64(room) * 8)
	if n > 0 {
		parts = max(1, parts)
	}
	text := strings.Repeat("█", parts/8)
	if parts%8 > 0 {
		text += string(eighths[parts%8])
	}
	return text
}

// widthOf returns the width of a terminal.
func widthOf(w any) int {
	width, _ := sizeOf(w)
	return width
}

// sizeOf returns the columns and rows of a terminal.
func sizeOf(w any) (width, height int) {
	const usualWidth, usualHeight = 80, 24
	f, ok := w.(*os.File)
	if !ok {
		return usualWidth, usualHeight
	}
	width, height, err := term.GetSize(int(f.Fd()))
	if err != nil || width <= 0 || height <= 0 {
		return usualWidth, usualHeight
	}
	return width, height
}

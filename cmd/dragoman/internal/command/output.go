package command

import (
	"errors"

	"github.com/spf13/cobra"
)

// addOutputFlag declares --output for a command that lists something.
func addOutputFlag(c *cobra.Command, to *hubFlags) {
	c.Flags().VarP(&outputFormat{to: to}, "output", "o", "`format`: wide (whole ids and texts, more columns), or json")
	completeFlag(c, "output", fixed("wide", "json"))
}

// outputFormat is the value of --output.
type outputFormat struct {
	to   *hubFlags
	text string
}

// Set implements pflag.Value.
func (o *outputFormat) Set(text string) error {
	switch text {
	case "wide":
		o.to.wide = true
	case "json":
		o.to.json = true
	default:
		return errors.New("use wide or json")
	}
	o.text = text
	return nil
}

// String implements pflag.Value.
func (o *outputFormat) String() string { return o.text }

// Type implements pflag.Value.
func (o *outputFormat) Type() string { return "string" }

// fits reports whether tables have to fit the terminal that they are printed to.
func (to *hubFlags) fits() bool { return isTerminal(to.Out) && !to.wide }

// shortened returns how ids are shown: by their endings where the table has to fit.
func (to *hubFlags) shortened(ids []string) func(id string) string {
	if !to.fits() {
		return func(id string) string { return id }
	}
	return shortened(ids)
}

// idsOf returns the ids of items.
func idsOf[T any](items []T, id func(T) string) []string {
	all := make([]string, len(items))
	for i, item := range items {
		all[i] = id(item)
	}
	return all
}

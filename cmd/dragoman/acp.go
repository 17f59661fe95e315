package main

import (
	"fmt"
	"strings"

	"github.com/spf13/cobra"

	"github.com/dragoman-hub/dragoman/adapters/acp"
	"github.com/dragoman-hub/dragoman/schemas"
)

// acpCommand is what there is to know of a dialect that language models write
// themselves.
func acpCommand(io streams) *cobra.Command {
	c := &cobra.Command{Use: "acp", Short: "Show how the envelopes of ACP look"}
	c.AddCommand(acpExamplesCommand(io))
	return c
}

func acpExamplesCommand(io streams) *cobra.Command {
	var asJSON bool
	c := &cobra.Command{
		Use:   "examples [KIND...]",
		Short: "Print an example of each kind of envelope, with a comment on every member",
		Long: `Print an example of each kind of ACP envelope, or of the kinds named, with a comment
on every member: enough for a language model to write them.

  dragoman acp examples query response error`,
		RunE: func(_ *cobra.Command, kinds []string) error {
			examples, err := acpExamples(kinds)
			if err != nil {
				return &exit{exitUsage, err}
			}
			if asJSON {
				return printJSON(io.out, examples)
			}
			for i, e := range examples {
				if i > 0 {
					fmt.Fprintln(io.out)
				}
				fmt.Fprint(io.out, e.Annotated())
			}
			return nil
		},
	}
	c.Flags().BoolVar(&asJSON, "json", false, "print them as a JSON array, without comments")
	return c
}

// acpExamples returns an example of each of the kinds, or of all.
func acpExamples(kinds []string) ([]schemas.Example, error) {
	var known []string
	for _, k := range acp.Kinds() {
		known = append(known, string(k))
	}
	if len(kinds) == 0 {
		kinds = known
	}
	var all []schemas.Example
	for _, kind := range kinds {
		e, ok := schemas.ACPExample(kind)
		if !ok {
			return nil, fmt.Errorf("there is no kind %q: name some of %s", kind, strings.Join(known, ", "))
		}
		all = append(all, e)
	}
	return all, nil
}

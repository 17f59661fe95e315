package command

import (
	"fmt"
	"io"
	"strings"

	acpwire "github.com/dragoman-hub/dragoman/adapters/acp/wire"
	"github.com/dragoman-hub/dragoman/schemas"
)

// printEnvelopes prints an annotated example of each of the kinds of ACP envelopes, or of all.
func printEnvelopes(out io.Writer, kinds []string, asJSON bool) error {
	examples, err := envelopes(kinds)
	if err != nil {
		return &exit{ExitUsage, err}
	}
	if asJSON {
		return printJSON(out, map[string]any{"envelopes": examples})
	}
	for i, e := range examples {
		if i > 0 {
			fmt.Fprintln(out)
		}
		fmt.Fprint(out, e.Annotated())
	}
	return nil
}

// envelopeKinds are the kinds of ACP envelopes.
func envelopeKinds() (all []string) {
	for _, k := range acpwire.Kinds() {
		all = append(all, string(k))
	}
	return all
}

// envelopes returns an example of each of the kinds, or of all.
func envelopes(kinds []string) ([]schemas.Example, error) {
	known := envelopeKinds()
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

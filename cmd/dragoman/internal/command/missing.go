package command

import (
	"fmt"
	"strings"
)

// tellMissing says which hubs of a cluster are missing in a list that was printed.
func tellMissing(io Streams, missing []string) {
	if len(missing) > 0 {
		fmt.Fprintln(io.Err, missingHubs(missing))
	}
}

func missingHubs(missing []string) string {
	return fmt.Sprintf("hubs that are missing here: %s; 'dragoman hubs' shows their state", visible(strings.Join(missing, ", ")))
}

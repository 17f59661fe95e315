package command

import (
	"fmt"
	"strings"
)

// tellMissing says which hubs of a cluster are missing in a list that was printed.
func tellMissing(io Streams, missing []string) {
	if len(missing) > 0 {
		fmt.Fprintf(io.Err, "hubs that are missing here: %s; 'dragoman hubs' shows their state\n", visible(strings.Join(missing, ", ")))
	}
}

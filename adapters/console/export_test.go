package console

import (
	"maps"
	"slices"
)

// Names returns the names of the embedded files, in order.
func Names() []string { return slices.Sorted(maps.Keys(assets())) }

package childenv

import (
	"slices"
	"strings"
)

// Has reports whether a list of names has a name.
func Has(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return Same(n, name) })
}

// Value returns the value of a variable in an environment, where the last one counts; "" without it.
func Value(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, is := strings.Cut(v, "="); is && Same(n, name) {
			return value
		}
	}
	return ""
}

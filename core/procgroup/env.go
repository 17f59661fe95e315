package procgroup

import (
	"slices"
	"strings"
)

// HasEnv reports whether a list of names has a name.
func HasEnv(names []string, name string) bool {
	return slices.ContainsFunc(names, func(n string) bool { return SameEnv(n, name) })
}

// EnvValue returns the value of a variable in an environment, where the last one counts; "" without it.
func EnvValue(env []string, name string) string {
	for _, v := range slices.Backward(env) {
		if n, value, is := strings.Cut(v, "="); is && SameEnv(n, name) {
			return value
		}
	}
	return ""
}

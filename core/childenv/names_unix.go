//go:build unix

package childenv

// System are the variables without which programs of this system do not work: none.
var System []string

// Same reports whether two names are those of one variable.
func Same(a, b string) bool { return a == b }

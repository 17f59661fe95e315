// Package suggest finds the known name that is closest to an unknown one, for error
// messages.
//
//	if near := suggest.Nearest("cnotent", []string{"content", "context"}); near != "" {
//		return fmt.Errorf("unknown key %q: did you mean %q?", "cnotent", near)
//	}
//
// Callers with a ranking of their own use [Distance].
package suggest

//go:build !linux

package firstprocess

// Run does nothing: there are containers of Linux only.
func Run() (code int, ran bool) { return 0, false }

package command

import "testing"

func TestTheEndOfInputIsThatOfTheOperatingSystem(t *testing.T) {
	for goos, want := range map[string]string{"windows": "Ctrl-Z and Enter", "linux": "Ctrl-D", "darwin": "Ctrl-D"} {
		if got := endOfInput(goos); got != want {
			t.Errorf("on %s: got %q, want %q", goos, got, want)
		}
	}
}

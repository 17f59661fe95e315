package e2e

import (
	"context"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core"
)

// toolErrorCode returns the code at the beginning of a tool's error; "" for no error.
func toolErrorCode(text string) string {
	code, _, _ := strings.Cut(text, ": ")
	if text != "" && !slices.Contains(core.Codes(), core.Code(code)) {
		return text
	}
	return code
}

// eventually polls until a condition holds that has no signal.
func eventually(t *testing.T, what string, holds func() error) {
	t.Helper()
	ctx, cancel := context.WithTimeout(t.Context(), watchdog)
	defer cancel()
	tick := time.NewTicker(10 * time.Millisecond)
	defer tick.Stop()
	for {
		err := holds()
		if err == nil {
			return
		}
		select {
		case <-tick.C:
		case <-ctx.Done():
			t.Fatalf("waited until %s: %v", what, err)
		}
	}
}

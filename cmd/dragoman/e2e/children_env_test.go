package e2e

import (
	"encoding/json"
	"os"
	"slices"
	"strings"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/service"
)

// withoutVariables returns an environment without the variables of the program.
func withoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, config.VariablePrefix) })
}

// awaitReady waits until a child has written its ready file.
func awaitReady(t testing.TB, path string) (a service.Addresses) {
	t.Helper()
	tick := time.NewTicker(time.Millisecond) // the file appears whole
	defer tick.Stop()
	for {
		if text, err := os.ReadFile(path); err == nil {
			if err := json.Unmarshal(text, &a); err != nil {
				t.Fatal(err)
			}
			return a
		}
		select {
		case <-tick.C:
		case <-t.Context().Done():
			t.Fatal("the child was not ready in time")
		}
	}
}

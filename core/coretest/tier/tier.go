package tier

import "testing"

// Full leaves a test to make test-full and says why: because it takes long, waits for real time, or
// plays programs of others. It skips t under -short.
func Full(t testing.TB, why string) {
	t.Helper()
	if testing.Short() {
		t.Skip("left to make test-full: " + why)
	}
}

// Pick returns test under -short, as in make test, and otherwise full.
func Pick[T any](test, full T) T {
	if testing.Short() {
		return test
	}
	return full
}

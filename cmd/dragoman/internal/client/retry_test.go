package client_test

import (
	"errors"
	"testing"
	"testing/synctest"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/client"
)

// The time is written as flags and settings have it.
func TestARetryThatGivesUpSaysAfterWhichTimeAndWhy(t *testing.T) {
	for limit, want := range map[time.Duration]string{
		5 * time.Minute:  "gave up after 5m: nobody is here",
		90 * time.Minute: "gave up after 1h30m: nobody is here",
		time.Millisecond: "gave up after 1ms: nobody is here",
	} {
		synctest.Test(t, func(t *testing.T) {
			absent, noted := errors.New("nobody is here"), 0
			retry := client.NewRetry(limit, func(error) bool { return true }, func(error) { noted++ })
			began := time.Now()
			err := retry.Do(t.Context(), func() error { return absent })
			if took := time.Since(began); err == nil || err.Error() != want || !errors.Is(err, absent) || took != limit || noted != 1 {
				t.Errorf("got %v after %s with %d notes, want %q after %s with 1", err, took, noted, want, limit)
			}
		})
	}
}

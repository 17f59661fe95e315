package nats_test

import (
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/nats"
)

func TestAnAddressIsShownWithoutItsSecrets(t *testing.T) {
	for url, want := range map[string]string{
		"":                                      "",
		"nats://host:4222":                      "nats://host:4222",
		"nats://user:s3cret@host:4222":          "nats://xxxxx@host:4222",
		"user:s3cret@host":                      "xxxxx@host",
		"tls://token@a:1, nats://u:p@b:2,c:3":   "tls://xxxxx@a:1, nats://xxxxx@b:2,c:3",
		"nats://host/path@not-a-secret":         "nats://host/path@not-a-secret",
		"nats://user:with:colons@[::1]:4222":    "nats://xxxxx@[::1]:4222",
		"nats://a:1,nats://user:s3cret@b:4222/": "nats://a:1,nats://xxxxx@b:4222/",
	} {
		if got := nats.Redacted(url); got != want {
			t.Errorf("%s: got %q, want %q", url, got, want)
		}
	}
}

func TestAServerThatCannotBeReachedIsNamedWithoutItsPassword(t *testing.T) {
	_, err := nats.Open(t.Context(), nats.Options{URL: "nats://user:s3cret@127.0.0.1:1"})
	if err == nil || strings.Contains(err.Error(), "s3cret") || !strings.Contains(err.Error(), "127.0.0.1:1") {
		t.Errorf("got %v, want an error that names the address and no password", err)
	}
}

package command_test

import (
	"os"
	"path/filepath"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/command"
)

func TestCheckRefusesAClusterThatCannotForm(t *testing.T) {
	dir := t.TempDir()
	settings, secret := filepath.Join(dir, "dragoman.yaml"), filepath.Join(dir, "secret")
	if err := os.WriteFile(secret, []byte("a secret of this test alone"), 0o600); err != nil {
		t.Fatal(err)
	}
	const three = "peers: [10.0.0.1:6222, 10.0.0.2:6222, 10.0.0.3:6222]"
	for _, tt := range []struct {
		name, cluster string
		want          string // "" for nothing wrong
	}{
		{"a", "listen: 127.0.0.1:6222, " + three, ""},
		{"a", "listen: 127.0.0.1:6222", "cluster.listen: this hub would look for no other one"},
		{"a", "listen: 127.0.0.1:6222, peers: [10.0.0.1:6222, 10.0.0.2]", "cluster.peers: 10.0.0.2: missing port in address; write it as host:port"},
		{"a", "listen: 127.0.0.1, " + three, "cluster.listen: 127.0.0.1: missing port in address"},
		{"a", "listen: 127.0.0.1:6222, advertise: hub-a, " + three, "cluster.advertise: hub-a: missing port in address"},
		{"a", three + "}\njournal: {nats_url: 'nats://127.0.0.1:4222'", "cluster.peers: with journal.nats_url the hubs meet at that server"},
		{"hüb", "listen: 127.0.0.1:6222, " + three, `has 'ü': use letters`},
	} {
		text := "hub_name: " + tt.name + "\ndata_dir: " + filepath.Join(dir, "data") + "\ncluster: {secret_file: " + secret + ", " + tt.cluster + "}\n"
		if err := os.WriteFile(settings, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		want := command.ExitUsage
		if tt.want == "" {
			want = command.ExitDone
		}
		if code, _, stderr := run(t, "check", "--config", settings); code != want || !strings.Contains(stderr, tt.want) {
			t.Errorf("%s: got %d and %q, want %d and %q", text, code, stderr, want, tt.want)
		}
	}
}

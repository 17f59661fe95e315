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

func TestCheckNamesWhatAHubOfAClusterLacks(t *testing.T) {
	dir := t.TempDir()
	file := func(name, text string) string {
		path := filepath.Join(dir, name)
		if err := os.WriteFile(path, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		return path
	}
	secret, short := file("secret", "a secret of this test alone"), file("short", "secret\n")
	const meets = "listen: 127.0.0.1:6222, peers: [10.0.0.1:6222]"
	named := "hub_name: a\ndata_dir: " + filepath.Join(dir, "data") + "\n"
	for text, want := range map[string]string{
		"data_dir: " + dir + "\ncluster: {" + meets + ", secret_file: " + secret + "}":                                    "cluster.listen: a hub of a cluster needs a name of its own: set hub_name (--hub-name)",
		"hub_name: a\ncluster: {" + meets + ", secret_file: " + secret + "}":                                              "cluster.listen: a hub of a cluster keeps its journal on disk: set data_dir (--data-dir)",
		named + "cluster: {" + meets + "}":                                                                                "cluster.listen: anybody could join: set cluster.secret_file",
		named + "cluster: {" + meets + ", secret_file: " + secret + "}\njournal: {nats_url: 'nats://127.0.0.1:4222'}":     "cluster.listen: with journal.nats_url the hubs meet at that server: leave one of the two out",
		named + "cluster: {peers: [10.0.0.1:6222]}":                                                                       "cluster.peers: this hub takes no connections of other hubs: set cluster.listen",
		named + "cluster: {" + meets + ", secret_file: " + short + "}":                                                    "cluster.secret_file: the secret has 6 bytes, want at least 16: make one with openssl rand -hex 32",
		named + "cluster: {" + meets + ", secret_file: " + secret + ".none}":                                              "cluster.secret_file: ",
		named + "cluster: {" + meets + ", secret_file: " + secret + ", tls: {cert: c}}":                                   "cluster.tls.cert: set cluster.tls.cert, cluster.tls.key and cluster.tls.ca, or none of them",
		named + "cluster: {" + meets + ", secret_file: " + secret + ", tls: {cert: none, key: none, ca: " + secret + "}}": "cluster.tls.cert: ",
	} {
		settings := file("dragoman.yaml", text+"\n")
		if code, _, stderr := run(t, "check", "--config", settings); code != command.ExitUsage || !strings.Contains(stderr, want) {
			t.Errorf("%s: got %d and %q, want %d and %q", text, code, stderr, command.ExitUsage, want)
		}
	}
}

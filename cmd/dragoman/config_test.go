package main

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"testing"
	"time"

	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/schemas"
)

// configOf loads the settings from a file, an environment and flags.
func configOf(t *testing.T, yaml string, environ []string, args ...string) (Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	serveFlags(fs)
	if yaml != "" {
		path := filepath.Join(t.TempDir(), "dragoman.yaml")
		if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
			t.Fatal(err)
		}
		args = append(args, "--config", path)
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return loadConfig(fs, environ)
}

func TestAFlagWinsOverTheEnvironmentWhichWinsOverTheFileWhichWinsOverTheDefault(t *testing.T) {
	yaml := "grpc_addr: file:1\nhttp_addr: file:2\npi_addr: file:3\nlimits:\n  hops: 5\n  cancel_grace: 2s\n"
	c, err := configOf(t, yaml, []string{"DRAGOMAN_HTTP_ADDR=env:2", "DRAGOMAN_PI_ADDR=env:3", "DRAGOMAN_LIMITS_QUEUE_LENGTH=7", "DRAGOMAN_HOSTS=a.example,b.example"}, "--pi-addr", "flag:3")
	if err != nil {
		t.Fatal(err)
	}
	if c.GRPCAddr != "file:1" || c.HTTPAddr != "env:2" || c.PiAddr != "flag:3" {
		t.Errorf("got %s, %s, %s, want file:1, env:2, flag:3", c.GRPCAddr, c.HTTPAddr, c.PiAddr)
	}
	if c.Limits.Hops != 5 || c.Limits.CancelGrace != 2*time.Second || c.Limits.QueueLength != 7 || c.Limits.SlotGrace != 5*time.Second {
		t.Errorf("got the limits %+v, want 5 hops, 2s, 7 and the default of 5s", c.Limits)
	}
	if len(c.Hosts) != 2 || c.Hosts[1] != "b.example" {
		t.Errorf("got the hosts %q, want two", c.Hosts)
	}
}

func TestAnUnknownSettingIsAnErrorThatNamesTheNearest(t *testing.T) {
	for name, load := range map[string]func() (Config, error){
		"grpc_addr":             func() (Config, error) { return configOf(t, "grcp_addr: x:1", nil) },
		"limits.queue_length":   func() (Config, error) { return configOf(t, "limits: {queue_long: 3}", nil) },
		"DRAGOMAN_JOURNAL_SYNC": func() (Config, error) { return configOf(t, "", []string{"DRAGOMAN_JOURNAL_SINC=always"}) },
	} {
		_, err := load()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that names %s", err, name)
		}
	}
}

func TestASettingOfTheWrongKindIsAnErrorThatNamesIt(t *testing.T) {
	for yaml, want := range map[string]string{
		"log_level: loud":                "log_level",
		"limits: {hops: many}":           "hops",
		"limits: {queue_length: 0}":      "queue_length",
		"journal: {sync: sometimes}":     "sync",
		"limits: {cancel_grace: 5 bees}": "cancel_grace",
	} {
		if _, err := configOf(t, yaml, nil); err == nil || !strings.Contains(err.Error(), want) {
			t.Errorf("%s: got %v, want an error that names %s", yaml, err, want)
		}
	}
}

func TestTheSchemaOfTheConfigurationHasEverySetting(t *testing.T) {
	var schema struct{ Properties map[string]json.RawMessage }
	if err := json.Unmarshal(schemas.ConfigSource(), &schema); err != nil {
		t.Fatal(err)
	}
	described := koanf.New(".")
	var walk func(prefix string, props map[string]json.RawMessage)
	walk = func(prefix string, props map[string]json.RawMessage) {
		for name, raw := range props {
			var p struct {
				Description string
				Properties  map[string]json.RawMessage
			}
			if err := json.Unmarshal(raw, &p); err != nil {
				t.Fatal(err)
			}
			if p.Description == "" {
				t.Errorf("%s%s has no description", prefix, name)
			}
			if p.Properties != nil {
				walk(prefix+name+".", p.Properties)
				continue
			}
			if _, ok := defaults()[prefix+name]; !ok {
				t.Errorf("the schema has %s%s, which is no setting", prefix, name)
			}
			if err := described.Set(prefix+name, true); err != nil {
				t.Fatal(err)
			}
		}
	}
	walk("", schema.Properties)
	for name := range defaults() {
		if !described.Exists(name) {
			t.Errorf("the setting %s is not in the schema", name)
		}
	}
}

package config_test

import (
	"encoding/json"
	"os"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/cmd/dragoman/internal/config"
	"github.com/google/go-cmp/cmp"
	"github.com/google/go-cmp/cmp/cmpopts"
	"github.com/santhosh-tekuri/jsonschema/v5"
	"github.com/spf13/pflag"
)

// configOf loads the settings from a file, an environment and flags.
func configOf(t *testing.T, yaml string, environ []string, args ...string) (config.Config, error) {
	t.Helper()
	fs := pflag.NewFlagSet("serve", pflag.ContinueOnError)
	config.AddFlags(fs)
	if yaml != "" {
		args = append(args, "--config", configFile(t, t.TempDir(), yaml))
	}
	if err := fs.Parse(args); err != nil {
		t.Fatal(err)
	}
	return config.Load(fs, environ)
}

// ignoreOrigins compares settings without their origins.
var ignoreOrigins = cmpopts.IgnoreFields(config.Config{}, "Places", "File")

// configFile writes a configuration file and returns its path.
func configFile(t *testing.T, dir, yaml string) string {
	t.Helper()
	path := filepath.Join(dir, "dragoman.yaml")
	if err := os.WriteFile(path, []byte(yaml), 0o600); err != nil {
		t.Fatal(err)
	}
	return path
}

func TestPrecedenceOfFlagEnvironmentFileAndDefault(t *testing.T) {
	yaml := "grpc_addr: file:1\nhttp_addr: file:2\npi_addr: file:3\nlimits:\n  hops: 5\n  cancel_grace: 2s\n"
	c, err := configOf(t, yaml, []string{"DRAGOMAN_HTTP_ADDR=env:2", "DRAGOMAN_PI_ADDR=env:3", "DRAGOMAN_LIMITS_QUEUE_LENGTH=7", "DRAGOMAN_HOSTS=a.example,b.example"}, "--pi-addr", "flag:3")
	if err != nil {
		t.Fatal(err)
	}
	if c.GRPCAddr != "file:1" || c.HTTPAddr != "env:2" || c.PiAddr != "flag:3" {
		t.Errorf("got %s, %s, %s, want file:1, env:2, flag:3", c.GRPCAddr, c.HTTPAddr, c.PiAddr)
	}
	if c.Limits.Hops != 5 || c.Limits.CancelGrace != 2*time.Second || c.Limits.QueueLength != 7 || c.Limits.Silence != 10*time.Minute {
		t.Errorf("got the limits %+v, want 5 hops, 2s, 7 and the default of 10m", c.Limits)
	}
	if len(c.Hosts) != 2 || c.Hosts[1] != "b.example" {
		t.Errorf("got the hosts %q, want two", c.Hosts)
	}
}

// The specifications of Coven and of Parallax name these ports, and the agents of their examples connect there.
func TestTheDefaultPortsAreThoseOfTheSpecifications(t *testing.T) {
	c, err := configOf(t, "", nil)
	if err != nil {
		t.Fatal(err)
	}
	if !strings.HasSuffix(c.GRPCAddr, ":50051") || !strings.HasSuffix(c.HTTPAddr, ":8080") {
		t.Errorf("got grpc_addr %s and http_addr %s, want the ports 50051 and 8080", c.GRPCAddr, c.HTTPAddr)
	}
}

func TestAnUnknownSettingIsAnErrorWithASuggestion(t *testing.T) {
	for name, load := range map[string]func() (config.Config, error){
		"grpc_addr":           func() (config.Config, error) { return configOf(t, "grcp_addr: x:1", nil) },
		"limits.queue_length": func() (config.Config, error) { return configOf(t, "limits: {queue_long: 3}", nil) },
	} {
		_, err := load()
		if err == nil || !strings.Contains(err.Error(), name) {
			t.Errorf("got %v, want an error that names %s", err, name)
		}
	}
}

func TestAnInvalidSettingIsAnErrorWithOriginValueAndLimits(t *testing.T) {
	for _, c := range []struct{ yaml, variable, flag, want string }{
		{yaml: "log_level: loud", want: `dragoman.yaml:1: log_level: want debug, info, warn or error, got "loud"`},
		{yaml: "limits: {hops: many}", want: `dragoman.yaml:1: limits.hops: want a whole number of at least 1, got "many"`},
		{yaml: "limits: {queue_length: 0}", want: `dragoman.yaml:1: limits.queue_length: want a whole number of at least 1, got 0`},
		{yaml: "limits: {hops: 1.5}", want: `dragoman.yaml:1: limits.hops: want a whole number of at least 1, got 1.5`},
		{yaml: "limits.hops: true", want: `dragoman.yaml:1: limits.hops: want a whole number of at least 1, got true`},
		{yaml: "limits: 3", want: `dragoman.yaml:1: limits: want settings below it, such as limits.memory, got 3`},
		{yaml: "limits: {hops: 2}\nlimits.hops: 3", want: `dragoman.yaml:2: limits.hops: it is set twice, by its whole name and below a group: remove one`},
		{yaml: "journal: {sync: sometimes}", want: `dragoman.yaml:1: journal.sync: want interval or always, got "sometimes"`},
		{yaml: "journal: {name: a b}", want: `dragoman.yaml:1: journal.name: want letters, digits, - and _, got "a b"`},
		{yaml: "limits: {cancel_grace: 5 bees}", want: `dragoman.yaml:1: limits.cancel_grace: want a time such as 30s, 1h30m, 7d or 2w, got "5 bees"`},
		{yaml: "limits: {cancel_grace: 0s}", want: `dragoman.yaml:1: limits.cancel_grace: want a time such as 30s, 1h30m, 7d or 2w, got "0s"`},
		{yaml: "stop_timeout: 30", want: `dragoman.yaml:1: stop_timeout: want a time such as 30s, 1h30m, 7d or 2w of at least 0s, got 30: write it with its unit, such as 30s`},
		{yaml: "stop_timeout: -5s", want: `dragoman.yaml:1: stop_timeout: want a time such as 30s, 1h30m, 7d or 2w of at least 0s, got "-5s"`},
		{yaml: "grpc: {ping_interval: 10ms}", want: `dragoman.yaml:1: grpc.ping_interval: want a time such as 30s, 1h30m, 7d or 2w of at least 1s, got "10ms"`},
		{yaml: "pi: {prompt_timeout: 200h}", want: `dragoman.yaml:1: pi.prompt_timeout: want a time such as 30s, 1h30m, 7d or 2w of at most 7d, got "200h"`},
		{yaml: "pi: {keep_tasks: perhaps}", want: `dragoman.yaml:1: pi.keep_tasks: want true or false, got "perhaps"`},
		{yaml: "hosts: [1]", want: `dragoman.yaml:1: hosts[0]: want text, got 1: put it in quotes`},
		{yaml: "data_dir: [a]", want: `dragoman.yaml:1: data_dir: want text, got a list`},
		{yaml: "rest: {body_bytes: 10}", want: `dragoman.yaml:1: rest.body_bytes: want a size such as 1GiB, 512MiB, 10MB or 64k of at least 1KiB, got 10`},
		{yaml: "rest: {body_bytes: 1KB}", want: `dragoman.yaml:1: rest.body_bytes: want a size such as 1GiB, 512MiB, 10MB or 64k of at least 1KiB, got "1KB"`},
		{yaml: "limits: {hops: 8kB}", want: `dragoman.yaml:1: limits.hops: want a whole number of at least 1, got "8kB"`},
		{yaml: "journal: {bytes: {a: 1}}", want: `dragoman.yaml:1: journal.bytes: want a size such as 1GiB, 512MiB, 10MB or 64k of at least 1MiB, got an object`},
		{yaml: "log_level: inof", want: `dragoman.yaml:1: log_level: want debug, info, warn or error, got "inof": did you mean info?`},
		{yaml: "\nstdio: yes", want: `dragoman.yaml:2: stdio: want true or false, got "yes": write true`},
		{variable: "DRAGOMAN_STOP_TIMEOUT=90", want: `DRAGOMAN_STOP_TIMEOUT: want a time such as 30s, 1h30m, 7d or 2w of at least 0s, got "90": write it with its unit, such as 90s`},
		{yaml: "journal: {age: 7 days}", want: `dragoman.yaml:1: journal.age: want a time such as 30s, 1h30m, 7d or 2w`},
		{variable: "DRAGOMAN_LIMITS_HOPS=many", want: `DRAGOMAN_LIMITS_HOPS: want a whole number of at least 1, got "many"`},
		{variable: "DRAGOMAN_STDIO=", want: `DRAGOMAN_STDIO: want true or false, got ""`},
		{flag: "--log-level=loud", want: `--log-level: want debug, info, warn or error, got "loud"`},
		{yaml: "limits: {hops: 2}\n---\nlimits: {hops: 3}", want: "dragoman.yaml:2: a second document begins here: write all in one, without ---"},
		{yaml: "limits: {hops: 2}\n---\n%x", want: "dragoman.yaml:3: found unknown directive name"},
		{yaml: "color: blue", want: "dragoman.yaml:1: color: unknown setting: 'dragoman check --all' without it lists all there are"},
		{yaml: "hops: 2", want: "dragoman.yaml:1: hops: unknown setting: did you mean limits.hops?"},
		{yaml: "[1]", want: "dragoman.yaml:1: want names with their values, got a list"},
		{yaml: "a: b: c", want: "dragoman.yaml:1: a second name with a colon in one line"},
		{yaml: "limits:\n\thops: 3", want: "dragoman.yaml:2: a value cannot begin with this character: put it in quotes, and indent with blanks, not with tabs"},
		{yaml: "x: 1\nhosts: *.example", want: `dragoman.yaml:2: a value that begins with * or & refers to another one: put it in quotes, such as "*"`},
		{yaml: "data_dir: *x", want: "dragoman.yaml: *x refers to a value that is marked with &x, and there is none: if it is text, put it in quotes"},
		{yaml: "agents:\n  - name: a\n    command: [x, y\n    dialect: text", want: "dragoman.yaml:3: a list is not closed: want , or ]"},
		{yaml: "limits: {hops: 1", want: "dragoman.yaml:1: an object is not closed"},
		{yaml: "\nlog_level: \"info", want: "dragoman.yaml:2: a quote is not closed"},
		{yaml: "a: 1\n{a: b}: c", want: "dragoman.yaml:2: want a name before the colon, got an object"},
		{yaml: "limits:\n  ? [1, 2]\n  : c", want: "dragoman.yaml:2: limits: want a name before the colon, got a list"},
		{yaml: "limits:\n  hops: !!int foo", want: `dragoman.yaml:2: limits.hops: want a whole number, as its mark !!int says, got "foo": remove the mark`},
		{yaml: "a: &a {b: 1}\nlimits:\n  <<: 3", want: "dragoman.yaml:3: limits: << takes over settings from elsewhere: want *NAME of an object after it"},
		{yaml: "hosts: &a [*a]", want: "dragoman.yaml:1: hosts[0]: *a stands within what it refers to"},
		{yaml: "data_dir: \"\\q\"", want: `dragoman.yaml:1: a \ in "..." begins an escape that there is not`},
		{yaml: "stdio: true\nstdio: false", want: `dragoman.yaml:2: stdio: it is set twice, first in line 1: remove one`},
	} {
		var environ, args []string
		if c.variable != "" {
			environ = append(environ, c.variable)
		}
		if c.flag != "" {
			args = append(args, c.flag)
		}
		if _, err := configOf(t, c.yaml, environ, args...); err == nil || !strings.Contains(err.Error(), c.want) {
			t.Errorf("%s%s%s:\ngot  %v\nwant %s", c.yaml, c.variable, c.flag, err, c.want)
		}
	}
}

func TestEveryNotationOfASettingIsRead(t *testing.T) {
	for yaml, want := range map[string]func(*config.Config){
		"":                                  func(*config.Config) {},
		"limits:\ndata_dir:":                func(*config.Config) {},
		"---\nlimits: {hops: 3}\n...":       func(c *config.Config) { c.Limits.Hops = 3 },
		"limits: {hops: 3}":                 func(c *config.Config) { c.Limits.Hops = 3 },
		"limits.hops: 3":                    func(c *config.Config) { c.Limits.Hops = 3 },
		"journal: {bytes: 2GiB}":            func(c *config.Config) { c.Journal.Bytes = 2 << 30 },
		"rest.body_bytes: 5 MB":             func(c *config.Config) { c.REST.BodyBytes = 5e6 },
		"journal: {age: 7d}":                func(c *config.Config) { c.Journal.Age = 168 * time.Hour },
		`limits: {hops: "3"}`:               func(c *config.Config) { c.Limits.Hops = 3 },
		"journal: {bytes: 1e9}":             func(c *config.Config) { c.Journal.Bytes = 1e9 },
		"hosts: a.example, b.example":       func(c *config.Config) { c.Hosts = []string{"a.example", "b.example"} },
		"hosts: [a.example, b.example]":     func(c *config.Config) { c.Hosts = []string{"a.example", "b.example"} },
		"limits: {cause_memory: 0s}":        func(c *config.Config) { c.Limits.CauseMemory = 0 },
		"journal: {lag: 0s}":                func(c *config.Config) { c.Journal.Lag = 0 },
		"pi: {keep_tasks: false}":           func(c *config.Config) { c.Pi.KeepTasks = false },
		"grpc: {ping_interval: 1m30s}":      func(c *config.Config) { c.GRPC.PingInterval = 90 * time.Second },
		"grpc_addr: \"\"\nhttp_addr: :8080": func(c *config.Config) { c.GRPCAddr, c.HTTPAddr = "", ":8080" },
	} {
		wanted := config.Default()
		want(&wanted)
		got, err := configOf(t, yaml, nil)
		if diff := cmp.Diff(wanted, got, ignoreOrigins); err != nil || diff != "" {
			t.Errorf("%s: got %v and (-want +got):\n%s", yaml, err, diff)
		}
	}
}

// FuzzConfig holds that a file is refused in lines that each name it, or gives
// settings that the schema allows and that are the same when they are written down
// and read again.
func FuzzConfig(f *testing.F) {
	for _, text := range []string{
		"", "grpc_addr: 127.0.0.1:0", "limits:\n  hops: 5\n  cancel_grace: 2s", "limits.hops: 5", "limits: {hops: 1}\nlimits.hops: 2", "hosts: [a, b]",
		"hosts: a,b", "stop_timeout: 30", "stop_timeout: 1h30m", "journal: {bytes: 1e9}", "journal: {age: 0x10}", "pi: {keep_tasks: yes}", "a: &a [*a]",
		"a: &a {b: *a}", "? [1]\n: 2", "1: 2", "<<: {limits: {hops: 1}}", "limits: {hops: .inf}", "limits: {hops: 18446744073709551615}",
		"log_level: !!binary aGk=", "data_dir: 2001-01-01", "--- {}\n--- {}", "\xff", "\x00", "limits: {queue_length: 0}", "rest: {body_bytes: 2_000_000}",
		"acp: {deadline: 168h}", "pi: {prompt_timeout: 1ns}", "websocket: {ping_interval: 1µs}", "\ufeffstdio: true",
		"budgets: [{agent: a, tokens: 1, per: total}, {thread: '*', tokens: 1e6}]", "budgets: '[{agent: a, tokens: 1}]'", "budgets: [{tokens: .inf}]",
	} {
		f.Add([]byte(text))
	}
	dir := f.TempDir() // one of each worker, since making them takes long
	f.Fuzz(func(t *testing.T, text []byte) {
		got, err := configOf(t, "", nil, "--config", configFile(t, dir, string(text)))
		if err != nil {
			for line := range strings.SplitSeq(err.Error(), "\n") {
				if !strings.Contains(line, "dragoman.yaml") || len(line) > 2000 {
					t.Fatalf("got %q, want the file named in each line", line)
				}
			}
			return
		}
		written, err := json.Marshal(got.Plain()) // which is YAML
		if err != nil {
			t.Fatal(err)
		}
		if err := schemaAllows(written); err != nil {
			t.Errorf("got settings that the schema does not allow: %v", err)
		}
		again, err := configOf(t, "", nil, "--config", configFile(t, dir, string(written)))
		if diff := cmp.Diff(got, again, ignoreOrigins); err != nil || diff != "" {
			t.Errorf("written down and read again: got %v and (-want +got):\n%s", err, diff)
		}
	})
}

// schema is the one that editors check a configuration against.
var schema = sync.OnceValue(func() *jsonschema.Schema { return jsonschema.MustCompile("../../../../schemas/config.json") })

// schemaAllows checks a configuration that is written as JSON.
func schemaAllows(written []byte) error {
	var value any
	if err := json.Unmarshal(written, &value); err != nil {
		return err
	}
	return schema().Validate(value)
}

func TestTheDefaultsAreValid(t *testing.T) {
	written, err := json.Marshal(config.Default().Plain())
	if err != nil {
		t.Fatal(err)
	}
	if err := schemaAllows(written); err != nil {
		t.Errorf("got defaults that the schema does not allow: %v", err)
	}
	c := config.Default()
	if got, err := configOf(t, string(written), nil); err != nil || cmp.Diff(c, got, ignoreOrigins) != "" {
		t.Errorf("written down and read again: got %v and (-want +got):\n%s", err, cmp.Diff(c, got, ignoreOrigins))
	}
}

func TestAnUnknownPiLifecycleIsRefused(t *testing.T) {
	if _, err := configOf(t, "pi: {lifecycle: mine}", nil); err == nil || !strings.Contains(err.Error(), "pi.lifecycle") {
		t.Errorf("got %v for the setting, want it refused by its name", err)
	}
}

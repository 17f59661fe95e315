package main

import (
	"cmp"
	"encoding/json"
	"fmt"
	"os"
	"reflect"
	"slices"
	"strings"
	"time"

	"github.com/knadh/koanf/parsers/yaml"
	"github.com/knadh/koanf/providers/confmap"
	"github.com/knadh/koanf/providers/env/v2"
	"github.com/knadh/koanf/providers/file"
	"github.com/knadh/koanf/providers/posflag"
	"github.com/knadh/koanf/v2"
	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/schemas"
)

// Config are the settings of a hub. A flag wins over the environment, which wins
// over the YAML file, which wins over the default. The names in the file are the
// koanf tags; a flag has dashes for underscores, a variable is in capitals with
// DRAGOMAN_ in front. schemas/config.json describes each.
type Config struct {
	GRPCAddr  string `koanf:"grpc_addr"`
	HTTPAddr  string `koanf:"http_addr"`
	PiAddr    string `koanf:"pi_addr"`
	PiSocket  string `koanf:"pi_socket"`
	DataDir   string `koanf:"data_dir"`
	Stdio     bool   `koanf:"stdio"`
	Insecure  bool   `koanf:"insecure"`
	LogLevel  string `koanf:"log_level"`
	LogFormat string `koanf:"log_format"`
	ReadyFile string `koanf:"ready_file"`

	// Hosts and Origins may use the HTTP surfaces beside the loopback names.
	Hosts   []string `koanf:"hosts"`
	Origins []string `koanf:"origins"`
	// StopTimeout is how long running tasks may take to finish at stop.
	StopTimeout time.Duration `koanf:"stop_timeout"`

	Journal JournalConfig `koanf:"journal"`
	Limits  LimitsConfig  `koanf:"limits"`

	Coven    CovenConfig    `koanf:"coven"`
	Parallax ParallaxConfig `koanf:"parallax"`
	ACP      ACPConfig      `koanf:"acp"`
	Pi       PiConfig       `koanf:"pi"`
}

// JournalConfig says where tasks are recorded and for how long.
type JournalConfig struct {
	Sync    string        `koanf:"sync"`
	NATSURL string        `koanf:"nats_url"`
	Name    string        `koanf:"name"`
	Age     time.Duration `koanf:"age"`
	Bytes   int64         `koanf:"bytes"`
}

// LimitsConfig are the numbers of the engine: see hub.Limits.
type LimitsConfig struct {
	Hops            int           `koanf:"hops"`
	QueueLength     int           `koanf:"queue_length"`
	Retries         int           `koanf:"retries"`
	CancelGrace     time.Duration `koanf:"cancel_grace"`
	SlotGrace       time.Duration `koanf:"slot_grace"`
	ApprovalTimeout time.Duration `koanf:"approval_timeout"`
	CauseMemory     time.Duration `koanf:"cause_memory"`
	TaskBytes       int           `koanf:"task_bytes"`
	HistoryBytes    int           `koanf:"history_bytes"`
}

// CovenConfig are the settings of the Coven dialect.
type CovenConfig struct {
	MaxConcurrent int           `koanf:"max_concurrent"`
	Deadline      time.Duration `koanf:"deadline"`
	OrphanGrace   time.Duration `koanf:"orphan_grace"`
}

// ParallaxConfig are the settings of the Parallax dialect.
type ParallaxConfig struct {
	TaskTimeout       time.Duration `koanf:"task_timeout"`
	HeartbeatInterval time.Duration `koanf:"heartbeat_interval"`
	MessageBytes      int           `koanf:"message_bytes"`
	MessagesPerSecond int           `koanf:"messages_per_second"`
}

// ACPConfig are the settings of the ACP dialect.
type ACPConfig struct {
	Deadline         time.Duration `koanf:"deadline"`
	DelegateDeadline time.Duration `koanf:"delegate_deadline"`
	EnvelopeBytes    int           `koanf:"envelope_bytes"`
	KeepResults      time.Duration `koanf:"keep_results"`
}

// PiConfig are the settings of the pi-server dialect.
type PiConfig struct {
	MessageBytes int `koanf:"message_bytes"`
	Sessions     int `koanf:"sessions"`
	Connections  int `koanf:"connections"`
	Pending      int `koanf:"pending"`
}

func defaults() map[string]any {
	return map[string]any{
		"grpc_addr": "127.0.0.1:50051", "http_addr": "127.0.0.1:8080", "pi_addr": "127.0.0.1:3141", "pi_socket": "",
		"data_dir": "", "stdio": false, "insecure": false, "log_level": "info", "log_format": "auto", "ready_file": "",
		"hosts": []string{}, "origins": []string{}, "stop_timeout": "30s",
		"journal.sync": "interval", "journal.nats_url": "", "journal.name": "dragoman", "journal.age": "168h", "journal.bytes": 1 << 30,
		"limits.hops": 8, "limits.queue_length": 64, "limits.retries": 2, "limits.cancel_grace": "5s", "limits.slot_grace": "5s",
		"limits.approval_timeout": "300s", "limits.cause_memory": "30s", "limits.task_bytes": 64 << 20, "limits.history_bytes": 64 << 10,
		"coven.max_concurrent": 1, "coven.deadline": "600s", "coven.orphan_grace": "2s",
		"parallax.task_timeout": "30s", "parallax.heartbeat_interval": "10s", "parallax.message_bytes": 1_000_000, "parallax.messages_per_second": 100,
		"acp.deadline": "30s", "acp.delegate_deadline": "1h", "acp.envelope_bytes": 1_000_000, "acp.keep_results": "10m",
		"pi.message_bytes": 10 << 20, "pi.sessions": 100, "pi.connections": 1000, "pi.pending": 100,
	}
}

const envPrefix = "DRAGOMAN_"

// clientVariables are read by the commands that talk to a hub.
var clientVariables = []string{"DRAGOMAN_HUB", "DRAGOMAN_TOKEN", "DRAGOMAN_CONFIG", "DRAGOMAN_THREAD", "DRAGOMAN_REQUEST"}

// serveFlags declares the flags of everything that starts a hub.
func serveFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "YAML `file` with the settings")
	fs.String("grpc-addr", "127.0.0.1:50051", "gRPC `address`, for Coven; port 0 picks a free one")
	fs.String("http-addr", "127.0.0.1:8080", "HTTP `address`, for Parallax, ACP and REST")
	fs.String("pi-addr", "127.0.0.1:3141", "pi-server `address`")
	fs.String("pi-socket", "", "`path` of a Unix socket for pi-server, a JSON object a line")
	fs.String("data-dir", "", "`directory` of the journal; without one tasks are remembered in memory only")
	fs.String("nats-url", "", "`address` of an external NATS server with JetStream for the journal")
	fs.Bool("stdio", false, "speak pi-server on stdin and stdout as well")
	fs.Bool("insecure", false, "listen beyond this machine although nobody has to authenticate")
	fs.String("log-level", "info", "`level` of the log: debug, info, warn or error")
	fs.String("log-format", "auto", "`format` of the log: auto, human or json")
	fs.String("ready-file", "", "`file` to write the bound addresses into once all listen")
}

// loadConfig reads the settings from everywhere.
func loadConfig(fs *pflag.FlagSet, environ []string) (Config, error) {
	k := koanf.New(".")
	if err := k.Load(confmap.Provider(defaults(), "."), nil); err != nil {
		return Config{}, err
	}
	known := k.Keys()
	path, _ := fs.GetString("config")
	if path == "" {
		path = valueOf(environ, envPrefix+"CONFIG")
	}
	if path != "" {
		given := koanf.New(".")
		if err := given.Load(file.Provider(path), yaml.Parser()); err != nil {
			return Config{}, fmt.Errorf("reading %s: %w", path, err)
		}
		for _, key := range given.Keys() {
			if !slices.Contains(known, key) {
				return Config{}, fmt.Errorf("%s: unknown setting %q: did you mean %q?", path, key, nearest(key, known))
			}
		}
		if err := k.Merge(given); err != nil {
			return Config{}, err
		}
	}
	if err := loadEnviron(k, known, environ); err != nil {
		return Config{}, err
	}
	flags := posflag.ProviderWithFlag(fs, ".", k, func(f *pflag.Flag) (string, any) {
		key := strings.ReplaceAll(f.Name, "-", "_")
		if key == "nats_url" {
			key = "journal.nats_url"
		}
		if !f.Changed || !slices.Contains(known, key) {
			return "", nil
		}
		return key, posflag.FlagVal(fs, f)
	})
	if err := k.Load(flags, nil); err != nil {
		return Config{}, err
	}
	return decodeConfig(k)
}

func loadEnviron(k *koanf.Koanf, known, environ []string) error {
	byName := map[string]string{}
	for _, key := range known {
		byName[variable(key)] = key
	}
	if err := checkVariables(environ); err != nil {
		return err
	}
	return k.Load(env.Provider(".", env.Opt{
		Prefix: envPrefix, EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) {
			key := byName[name]
			if _, list := defaults()[key].([]string); list {
				return key, strings.Split(value, ",")
			}
			return key, value
		},
	}), nil)
}

// checkVariables refuses variables of ours that nothing reads.
func checkVariables(environ []string) error {
	known := slices.Clone(clientVariables)
	for key := range defaults() {
		known = append(known, variable(key))
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if strings.HasPrefix(name, envPrefix) && !slices.Contains(known, name) {
			return fmt.Errorf("unknown variable %s: did you mean %s?", name, nearest(name, known))
		}
	}
	return nil
}

// variable is the name of the environment variable of a setting.
func variable(key string) string {
	return envPrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func decodeConfig(k *koanf.Koanf) (Config, error) {
	var c Config
	if err := k.Unmarshal("", &c); err != nil {
		_, list, _ := strings.Cut(err.Error(), "\n") // a headline, and a line for each
		return Config{}, fmt.Errorf("the settings do not fit: %s", strings.Join(strings.Fields(list), " "))
	}
	return c, c.check()
}

// defaultConfig is what a hub has when nothing is set.
func defaultConfig() Config {
	k := koanf.New(".")
	c, err := Config{}, k.Load(confmap.Provider(defaults(), "."), nil)
	if err == nil {
		c, err = decodeConfig(k)
	}
	if err != nil {
		panic(fmt.Sprintf("the default settings do not fit: %v", err)) // a test reads them
	}
	return c
}

// check holds the settings against schemas/config.json.
func (c Config) check() error {
	data, err := json.Marshal(c.plain())
	if err != nil {
		return err
	}
	if err := schemas.Config().Validate(data); err != nil {
		return fmt.Errorf("the settings do not fit: %w", err)
	}
	return nil
}

// plain returns the settings as the file has them.
func (c Config) plain() map[string]any {
	return plain(reflect.ValueOf(c)).(map[string]any)
}

func plain(v reflect.Value) any {
	switch x := v.Interface().(type) {
	case time.Duration:
		return x.String()
	case []string:
		return append([]string{}, x...)
	}
	if v.Kind() != reflect.Struct {
		return v.Interface()
	}
	m := map[string]any{}
	for i := range v.NumField() {
		m[v.Type().Field(i).Tag.Get("koanf")] = plain(v.Field(i))
	}
	return m
}

func valueOf(environ []string, name string) string {
	for _, v := range environ {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// nearest returns the known name that shares the most with name.
func nearest(name string, known []string) string {
	slices.Sort(known)
	return slices.MaxFunc(known, func(a, b string) int { return cmp.Compare(alike(name, a), alike(name, b)) })
}

// alike counts the pairs of letters that two names share.
func alike(a, b string) float64 {
	pairs := map[string]int{}
	for i := range len(a) - 1 {
		pairs[a[i:i+2]]++
	}
	shared := 0
	for i := range len(b) - 1 {
		if pairs[b[i:i+2]] > 0 {
			pairs[b[i:i+2]]--
			shared++
		}
	}
	return 2 * float64(shared) / float64(max(1, len(a)+len(b)-2))
}

// environ is the environment of the process.
func environ() []string { return os.Environ() }

package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
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

	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

const VariablePrefix = "DRAGOMAN_"

// clientVariables are read by the commands that talk to a hub.
var clientVariables = []string{"DRAGOMAN_HUB", "DRAGOMAN_TOKEN", "DRAGOMAN_CONFIG", "DRAGOMAN_THREAD", "DRAGOMAN_REQUEST"}

// The flags that have another name than their setting.
var otherFlags = map[string]string{"journal.nats_url": "nats-url"}

// source is a place where settings come from.
type source struct {
	name     string
	provider koanf.Provider
	parser   koanf.Parser // of what the provider yields as bytes
	// about is where a setting stands in it.
	about func(key string) origin
	// named is where the path of a file stands.
	named origin
}

// Load reads the settings from everywhere. An error is one line that names
// the place, the setting, what was given and what is allowed.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	if err := CheckVariables(environ); err != nil {
		return Config{}, err
	}
	c := Config{Places: origins{}}
	k := koanf.New(".")
	if _, err := fromDefaults().into(k); err != nil {
		return Config{}, err
	}
	sources := []source{fromEnviron(environ), fromFlags(fs)}
	path, _ := fs.GetString("config")
	named := origin{name: "--config"}
	if path == "" {
		path, named.name = valueOf(environ, VariablePrefix+"CONFIG"), VariablePrefix+"CONFIG"
	}
	if path != "" {
		path, err := ExpandHome(path)
		if err != nil {
			return Config{}, fmt.Errorf("%s: %w", named, err)
		}
		sources = append([]source{fromFile(path, named)}, sources...)
	}
	for _, s := range sources {
		keys, err := s.into(k)
		if err != nil {
			return Config{}, err
		}
		for _, key := range keys {
			c.Places[key] = s.about(key)
		}
	}
	if err := k.Unmarshal("", &c); err != nil {
		return Config{}, err
	}
	if _, given := c.Places["journal.bytes"]; !given {
		c.Journal.Bytes = c.DefaultJournalBytes()
	}
	if c.Limits.Memory == 0 {
		c.Limits.Memory = halfOfMemory(os.DirFS("/"))
	}
	return c, c.expandPaths()
}

// DefaultJournalBytes is the default of journal.bytes, which depends on where the journal is.
func (c Config) DefaultJournalBytes() int64 {
	if c.DataDir == "" && c.Journal.NATSURL == "" {
		return journal.MemoryBytes
	}
	return journal.Retention{}.Or().Bytes
}

// expandPaths puts the home directory in the place of ~ in the paths of settings. Those
// of pi are shown as they were written, and expanded where they are used.
func (c *Config) expandPaths() (err error) {
	for key, path := range map[string]*string{
		"data_dir": &c.DataDir, "pi_socket": &c.PiSocket, "ready_file": &c.ReadyFile,
		"auth.tokens": &c.Auth.Tokens, "coven.secrets": &c.Coven.Secrets, "parallax.secrets": &c.Parallax.Secrets,
	} {
		if *path, err = ExpandHome(*path); err != nil {
			return fmt.Errorf("%s: %w", c.At(key), err)
		}
	}
	return nil
}

// Default is what a hub has when nothing is set.
func Default() Config {
	c, err := Load(pflag.NewFlagSet("", pflag.ContinueOnError), nil)
	if err != nil {
		panic(err) // a test reads them
	}
	return c
}

func fromDefaults() source {
	return source{"the defaults", confmap.Provider(defaults(), "."), nil, func(key string) origin { return origin{name: "the default of " + key} }, origin{}}
}

// fromFile is a file of settings; named is where its path stands.
func fromFile(path string, named origin) source {
	return source{path, file.Provider(path), OneDocument{yaml.Parser()}, func(key string) origin { return origin{path, key} }, named}
}

func fromEnviron(environ []string) source {
	byName := map[string]string{}
	for _, s := range All() {
		byName[Variable(s.Key)] = s.Key
	}
	return source{"the environment", env.Provider(".", env.Opt{
		Prefix: VariablePrefix, EnvironFunc: func() []string { return environ },
		TransformFunc: func(name, value string) (string, any) { return byName[name], value },
	}), nil, func(key string) origin { return origin{name: Variable(key)} }, origin{}}
}

func fromFlags(fs *pflag.FlagSet) source {
	byName := map[string]string{}
	for _, s := range All() {
		byName[FlagOf(s.Key)] = s.Key
	}
	return source{"the flags", posflag.ProviderWithFlag(fs, ".", nil, func(f *pflag.Flag) (string, any) {
		if !f.Changed {
			return "", nil
		}
		return byName[f.Name], posflag.FlagVal(fs, f)
	}), nil, func(key string) origin { return origin{name: "--" + FlagOf(key)} }, origin{}}
}

// into reads a source into k, and returns the settings that stand there. What a source
// leaves empty (null) it does not set.
func (s source) into(k *koanf.Koanf) (set []string, err error) {
	given := koanf.New(".")
	if err := given.Load(s.provider, s.parser); err != nil {
		var unread *os.PathError
		if errors.As(err, &unread) {
			return nil, fmt.Errorf("%s %s: %w; name a YAML file, or leave it out ('dragoman check' shows every setting)", s.named, unread.Path, unread.Err)
		}
		return nil, fmt.Errorf("reading %s: %s", s.name, strings.Join(strings.Fields(err.Error()), " "))
	}
	values := map[string]any{}
	twice := ""
	eachLeaf("", given.Raw(), func(key string, value any) {
		if _, had := values[key]; had {
			twice = key
		}
		values[key] = value
	})
	if twice != "" {
		return nil, fmt.Errorf("%s: it is set twice, by its whole name and below a group: remove one", s.about(twice))
	}
	for _, key := range slices.Sorted(maps.Keys(values)) {
		value, err := readSetting(key, values[key])
		if err != nil {
			return nil, fmt.Errorf("%s: %w", s.about(key), err)
		}
		if values[key] = value; value == nil {
			delete(values, key)
		}
	}
	return slices.Sorted(maps.Keys(values)), k.Load(confmap.Provider(values, "."), nil)
}

// eachLeaf calls yield for everything in a nested map that is no map itself, by its
// dotted name.
func eachLeaf(prefix string, m map[string]any, yield func(key string, value any)) {
	for name, value := range m {
		if inner, ok := value.(map[string]any); ok {
			eachLeaf(prefix+name+".", inner, yield)
			continue
		}
		yield(prefix+name, value)
	}
}

// CheckVariables refuses variables of ours that nothing reads.
func CheckVariables(environ []string) error {
	known := slices.Clone(clientVariables)
	for _, s := range All() {
		known = append(known, Variable(s.Key))
	}
	for i, name := range known {
		known[i] = strings.TrimPrefix(name, VariablePrefix)
	}
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		if bare, ours := strings.CutPrefix(name, VariablePrefix); ours && !slices.Contains(known, bare) {
			// What all of them begin with makes no two of them alike.
			near := suggest.Nearest(bare, known)
			if near == "" {
				return fmt.Errorf("unknown variable %s: 'dragoman check' without it lists all there are", name)
			}
			return fmt.Errorf("unknown variable %s: did you mean %s?", name, VariablePrefix+near)
		}
	}
	return nil
}

// Variable is the name of the environment variable of a setting.
func Variable(key string) string {
	return VariablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// FlagOf is the name that the flag of a setting has, or would have.
func FlagOf(key string) string {
	return cmp.Or(otherFlags[key], strings.ReplaceAll(key, "_", "-"))
}

func valueOf(environ []string, name string) string {
	for _, v := range environ {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}

// Local is a hub on free ports of this machine that remembers nothing
// beyond its end.
func Local() Config {
	c := Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.StopTimeout, c.Pi.SessionDir = time.Second, ""
	return c
}

// WithoutVariables keeps the user's own hub out of what is measured.
func WithoutVariables(environ []string) []string {
	var kept []string
	for _, v := range environ {
		if !strings.HasPrefix(v, VariablePrefix) {
			kept = append(kept, v)
		}
	}
	return kept
}

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
	"unicode"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// VariablePrefix is what the name of every environment variable of ours begins with.
const VariablePrefix = "DRAGOMAN_"

// clientVariables are read by the commands that talk to a hub.
var clientVariables = []string{"DRAGOMAN_HUB", "DRAGOMAN_TOKEN", "DRAGOMAN_CONFIG", "DRAGOMAN_THREAD", "DRAGOMAN_REQUEST"}

// AddFlags declares the flags of everything that starts a hub.
func AddFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "YAML `file` with the settings")
	for _, s := range All() {
		switch standard := s.standard.(type) {
		case bool:
			if s.Flag != "" {
				fs.Bool(s.Flag, standard, s.usage())
			}
		default:
			if s.Flag != "" {
				fs.String(s.Flag, fmt.Sprint(standard), s.usage())
			}
		}
	}
}

// usage is the description as the help text of a flag.
func (s *Setting) usage() string {
	text := []rune(strings.TrimSuffix(s.Description, "."))
	if unicode.IsLower(text[1]) {
		text[0] = unicode.ToLower(text[0])
	}
	if s.Placeholder == "" {
		return string(text)
	}
	if strings.Contains(string(text), s.Placeholder) {
		return strings.Replace(string(text), s.Placeholder, "`"+s.Placeholder+"`", 1)
	}
	return "`" + s.Placeholder + "`: " + string(text)
}

// source is a place where settings come from.
type source struct {
	read func() (map[string]any, error)
	// place is where a setting stands in it.
	place func(key string) Origin
}

// Load reads the settings from everywhere. An error is one line that names the place, the
// setting, what was given and what is allowed.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	if err := CheckVariables(environ); err != nil {
		return Config{}, err
	}
	sources := []source{fromEnviron(environ), fromFlags(fs)}
	path, _ := fs.GetString("config")
	named := Origin{name: "--config"}
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
	c := Config{Places: origins{}}
	settings := c.settings()
	for _, s := range *settings.all {
		s.reset()
	}
	for _, s := range sources {
		values, err := s.read()
		if err != nil {
			return Config{}, err
		}
		for _, key := range slices.Sorted(maps.Keys(values)) {
			set, err := settings.read(key, values[key])
			if err != nil {
				return Config{}, fmt.Errorf("%s: %w", s.place(key), err)
			}
			if set {
				c.Places[key] = s.place(key)
			}
		}
	}
	if _, given := c.Places["journal.bytes"]; !given {
		c.Journal.Bytes = c.DefaultJournalBytes()
	}
	if c.Limits.Memory == 0 {
		c.Limits.Memory = halfOfMemory(os.DirFS("/"))
	}
	return c, settings.expandPaths(c.At)
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
func (t *table) expandPaths(at func(key string) Origin) (err error) {
	for _, s := range *t.all {
		if path, ok := s.field.(*string); ok && s.isPath {
			if *path, err = ExpandHome(*path); err != nil {
				return fmt.Errorf("%s: %w", at(s.Key), err)
			}
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

// Local is a hub on free ports of this machine that remembers nothing beyond its end.
func Local() Config {
	c := Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.StopTimeout, c.Pi.SessionDir = time.Second, ""
	return c
}

// fromFile is a file of settings; named is where its path stands.
func fromFile(path string, named Origin) source {
	place := func(key string) Origin { return Origin{path, key} }
	return source{place: place, read: func() (map[string]any, error) {
		data, err := os.ReadFile(path)
		var unread *os.PathError
		if errors.As(err, &unread) {
			return nil, fmt.Errorf("%s %s: %w; name a YAML file, or leave it out ('dragoman check' shows every setting)", named, unread.Path, unread.Err)
		}
		var all map[string]any
		if err == nil {
			all, err = ReadYAML(data)
		}
		if err != nil {
			return nil, fmt.Errorf("reading %s: %s", path, strings.Join(strings.Fields(err.Error()), " "))
		}
		values := map[string]any{}
		if twice := flatten("", all, values); twice != "" {
			return nil, fmt.Errorf("%s: it is set twice, by its whole name and below a group: remove one", place(twice))
		}
		return values, nil
	}}
}

// flatten puts everything in a nested map that is no map itself into another, by its dotted
// name, and returns a name that is there twice.
func flatten(prefix string, m, into map[string]any) (twice string) {
	for name, value := range m {
		if inner, ok := value.(map[string]any); ok {
			twice = cmp.Or(flatten(prefix+name+".", inner, into), twice)
			continue
		}
		if _, had := into[prefix+name]; had {
			twice = prefix + name
		}
		into[prefix+name] = value
	}
	return twice
}

func fromEnviron(environ []string) source {
	return source{place: func(key string) Origin { return Origin{name: Variable(key)} }, read: func() (map[string]any, error) {
		values := map[string]any{}
		for _, s := range All() {
			for _, v := range environ {
				if name, value, _ := strings.Cut(v, "="); name == Variable(s.Key) {
					values[s.Key] = value
				}
			}
		}
		return values, nil
	}}
}

func fromFlags(fs *pflag.FlagSet) source {
	return source{place: func(key string) Origin { return Origin{name: "--" + FlagOf(key)} }, read: func() (map[string]any, error) {
		values := map[string]any{}
		for _, s := range All() {
			if f := fs.Lookup(s.Flag); s.Flag != "" && f != nil && f.Changed {
				values[s.Key] = f.Value.String()
			}
		}
		return values, nil
	}}
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
			// The prefix that all share says nothing about which one is meant.
			near := suggest.Nearest(bare, known)
			if near == "" {
				return fmt.Errorf("unknown variable %s: 'dragoman check' without it lists all there are", name)
			}
			return fmt.Errorf("unknown variable %s: did you mean %s?", name, VariablePrefix+near)
		}
	}
	return nil
}

// WithoutVariables is an environment without what sets anything of a hub.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, VariablePrefix) })
}

// Variable is the name of the environment variable of a setting.
func Variable(key string) string {
	return VariablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

func valueOf(environ []string, name string) string {
	for _, v := range environ {
		if n, value, ok := strings.Cut(v, "="); ok && n == name {
			return value
		}
	}
	return ""
}

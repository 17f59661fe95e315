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

// VariablePrefix is the prefix of all environment variables of the program.
const VariablePrefix = "DRAGOMAN_"

// clientVariables are read by the commands that talk to a hub.
var clientVariables = []string{"DRAGOMAN_HUB", "DRAGOMAN_TOKEN", "DRAGOMAN_CONFIG", "DRAGOMAN_THREAD", "DRAGOMAN_REQUEST"}

// AddFlags declares the flags of everything that starts a hub.
func AddFlags(fs *pflag.FlagSet) {
	fs.String("config", "", "YAML `file` with the settings")
	for _, s := range All() {
		if s.Flag == "" {
			continue
		}
		if standard, is := s.standard.(bool); is {
			fs.Bool(s.Flag, standard, s.usage())
		} else {
			fs.String(s.Flag, fmt.Sprint(s.standard), s.usage())
		}
	}
}

// usage returns the description as the help text of a flag.
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

// source is a place that settings come from.
type source struct {
	read func() (map[string]any, error)
	// place returns the origin of a setting in it.
	place func(key string) Origin
}

// Load reads the settings from all sources. An error is one line that names the origin, the
// setting, the given value and the allowed ones.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	if err := CheckVariables(environ); err != nil {
		return Config{}, err
	}
	sources := []source{fromEnviron(environ), fromFlags(fs)}
	path, _ := fs.GetString("config")
	named := Origin{name: "--config"}
	if path == "" {
		named.name = VariablePrefix + "CONFIG"
		path, _ = lookup(environ, named.name)
	}
	if path != "" {
		path, err := ExpandHome(path)
		if err != nil {
			return Config{}, fmt.Errorf("%s: %w", named, err)
		}
		sources = append([]source{fromFile(path, named)}, sources...)
	}
	c := Config{Places: map[string]Origin{}}
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

// DefaultJournalBytes returns the default of journal.bytes, which depends on where the journal
// is.
func (c Config) DefaultJournalBytes() int64 {
	if c.DataDir == "" && c.Journal.NATSURL == "" {
		return journal.MemoryBytes
	}
	return journal.Retention{}.Or().Bytes
}

// expandPaths replaces ~ by the home directory in paths. Those of pi are expanded where they
// are used.
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

// Default returns the settings of a hub for which nothing is set.
func Default() Config {
	c, err := Load(pflag.NewFlagSet("", pflag.ContinueOnError), nil)
	if err != nil {
		panic(err) // the defaults are tested
	}
	return c
}

// Local returns the settings of a hub on free local ports that stores nothing on disk.
func Local() Config {
	c := Default()
	c.GRPCAddr, c.HTTPAddr, c.PiAddr = "127.0.0.1:0", "127.0.0.1:0", "127.0.0.1:0"
	c.StopTimeout, c.Pi.SessionDir = time.Second, ""
	return c
}

// fromFile is a settings file; named is the origin of its path.
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

// flatten copies the leaves of a nested map into another, by their dotted names, and returns a
// name that occurs twice.
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
			if value, set := lookup(environ, Variable(s.Key)); set {
				values[s.Key] = value
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

// CheckVariables refuses unknown variables with VariablePrefix.
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
			// Without the common prefix, which would make all names similar.
			near := suggest.Nearest(bare, known)
			if near == "" {
				return fmt.Errorf("unknown variable %s: 'dragoman check' without it lists all there are", name)
			}
			return fmt.Errorf("unknown variable %s: did you mean %s?", name, VariablePrefix+near)
		}
	}
	return nil
}

// WithoutVariables returns an environment without the variables of the program.
func WithoutVariables(environ []string) []string {
	return slices.DeleteFunc(slices.Clone(environ), func(v string) bool { return strings.HasPrefix(v, VariablePrefix) })
}

// Variable returns the environment variable of a setting.
func Variable(key string) string {
	return VariablePrefix + strings.ToUpper(strings.ReplaceAll(key, ".", "_"))
}

// lookup returns the last value of a variable, and whether it is set.
func lookup(environ []string, name string) (value string, set bool) {
	for _, v := range environ {
		if n, text, _ := strings.Cut(v, "="); n == name {
			value, set = text, true
		}
	}
	return value, set
}

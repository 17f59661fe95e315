package config

import (
	"cmp"
	"errors"
	"fmt"
	"maps"
	"os"
	"regexp"
	"slices"
	"strings"
	"time"
	"unicode"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/core/edge"
	"github.com/dragoman-hub/dragoman/core/journal"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// VariablePrefix is the prefix of all environment variables of the program.
const VariablePrefix = "DRAGOMAN_"

// clientVariables are read by the commands that talk to a hub.
var clientVariables = []string{"DRAGOMAN_HUB", "DRAGOMAN_TOKEN", "DRAGOMAN_CA", "DRAGOMAN_CERT", "DRAGOMAN_KEY", "DRAGOMAN_CONFIG", "DRAGOMAN_THREAD", "DRAGOMAN_REQUEST"}

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
	// read returns the settings in it by key; what cannot be read is added to the problems.
	read func(*problems) map[string]any
	// place returns the origin of a setting in it, or of a part of one.
	place func(path string) Origin
}

// Load reads the settings from all sources. The error has a line for everything that is wrong:
// each names the origin, the setting, the given value and what to write instead. The Config has
// what could still be read, so that more can be checked.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	var all problems
	sources := []source{fromEnviron(environ), fromFlags(fs)}
	path, _ := fs.GetString("config")
	named := Origin{name: "--config"}
	if path == "" {
		named.name = VariablePrefix + "CONFIG"
		path, _ = lookup(environ, named.name)
	}
	if path != "" {
		if path, err := ExpandHome(path); err != nil {
			all.add(named, "%s", err)
		} else {
			sources = append([]source{fromFile(path, named)}, sources...)
		}
	}
	c := Config{Places: map[string]Origin{}}
	settings := c.settings()
	for _, s := range *settings.all {
		s.reset()
	}
	for _, s := range sources {
		var wrong problems
		values := s.read(&wrong)
		for _, key := range slices.Sorted(maps.Keys(values)) {
			report := func(path, text string) { wrong.add(s.place(path), "%s", text) }
			settings.read(key, values[key], report)
			if values[key] != nil {
				c.Places[key] = s.place(key)
			}
		}
		wrong.sort()
		all = append(all, wrong...)
	}
	if _, given := c.Places["journal.bytes"]; !given {
		c.Journal.Bytes = c.DefaultJournalBytes()
	}
	if c.Limits.Memory == 0 {
		c.Limits.Memory = halfOfMemory(os.DirFS("/"))
	}
	settings.expandPaths(c.At, &all)
	c.checkTogether(func(path, text string) { all.add(c.At(path), "%s", text) })
	return c, all.err()
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
func (t *table) expandPaths(at func(key string) Origin, wrong *problems) {
	for _, s := range *t.all {
		if err := s.expandPath(); err != nil {
			wrong.add(at(s.Key), "%s", err)
		}
	}
}

// expandPath replaces ~ by the home directory in a path, of a command in its first word.
func (s *Setting) expandPath() (err error) {
	if !s.isPath {
		return nil
	}
	path, is := s.field.(*string)
	if words, several := s.field.(*[]string); several && len(*words) > 0 {
		path, is = &(*words)[0], true
	}
	if !is {
		return nil
	}
	*path, err = ExpandHome(*path)
	return err
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
	var lines map[string]int
	place := func(within string) Origin { return Origin{path, within, lines} }
	return source{place: place, read: func(wrong *problems) map[string]any {
		data, err := edge.ReadFile(path)
		if err != nil {
			var unread *os.PathError
			if errors.As(err, &unread) {
				err = unread.Err
			}
			wrong.add(Origin{name: named.name + " " + path}, "%s; name a YAML file, or leave it out ('dragoman check' shows every setting)", err)
			return nil
		}
		all, err := ReadYAML(data)
		if err != nil {
			wrong.unreadable(path, data, err)
			return nil
		}
		lines = linesOf(data)
		values := map[string]any{}
		for _, twice := range flatten("", all, values, new(Config).settings().has) {
			wrong.add(place(twice), "it is set twice, by its whole name and below a group: remove one")
		}
		return values
	}}
}

// flatten copies the leaves of a nested map into another, by their dotted names, and returns the
// names that occur twice. A map that is the value of a setting is a leaf.
func flatten(prefix string, m, into map[string]any, isSetting func(key string) bool) (twice []string) {
	for name, value := range m {
		key := prefix + name
		if inner, ok := value.(map[string]any); ok && !isSetting(key) {
			twice = append(twice, flatten(key+".", inner, into, isSetting)...)
			continue
		}
		if _, had := into[key]; had {
			twice = append(twice, key)
		}
		into[key] = value
	}
	return twice
}

func fromEnviron(environ []string) source {
	place := func(path string) Origin {
		key, part, inside := strings.Cut(path, "[")
		if inside {
			part = "[" + part
		}
		return Origin{name: Variable(key) + part}
	}
	return source{place: place, read: func(*problems) map[string]any {
		values := map[string]any{}
		for _, s := range All() {
			if value, set := lookup(environ, Variable(s.Key)); set {
				values[s.Key] = value
			}
		}
		return values
	}}
}

func fromFlags(fs *pflag.FlagSet) source {
	return source{place: func(key string) Origin { return Origin{name: "--" + FlagOf(key)} }, read: func(*problems) map[string]any {
		values := map[string]any{}
		for _, s := range All() {
			if f := fs.Lookup(s.Flag); s.Flag != "" && f != nil && f.Changed {
				values[s.Key] = f.Value.String()
			}
		}
		return values
	}}
}

// serviceVariable is what Kubernetes calls the variables of a Service, behind its name: that of a Service dragoman
// begins as ours do.
var serviceVariable = regexp.MustCompile(`^(.+_)?(SERVICE_(HOST|PORT(_.+)?)|PORT(_[0-9]+_(TCP|UDP|SCTP)(_(PROTO|PORT|ADDR))?)?)$`)

// UnknownVariables returns a line for each variable with VariablePrefix that nothing reads, and one for all that
// Kubernetes has set. They are no reason not to start: others use the prefix, too.
func UnknownVariables(environ []string) (lines []string) {
	known := slices.Clone(clientVariables)
	for _, s := range All() {
		known = append(known, Variable(s.Key))
	}
	for i, name := range known {
		known[i] = strings.TrimPrefix(name, VariablePrefix)
	}
	ofServices := ""
	for _, v := range environ {
		name, _, _ := strings.Cut(v, "=")
		bare, ours := strings.CutPrefix(name, VariablePrefix)
		switch {
		case !ours || slices.Contains(known, bare):
			continue
		case serviceVariable.MatchString(bare):
			ofServices = cmp.Or(ofServices, name)
			continue
		}
		// Without the common prefix, which would make all names similar.
		if near := suggest.Nearest(bare, known); near != "" {
			lines = append(lines, fmt.Sprintf("unknown variable %s: did you mean %s?", name, VariablePrefix+near))
		} else {
			lines = append(lines, fmt.Sprintf("unknown variable %s: 'dragoman check' lists all there are", name))
		}
	}
	if ofServices != "" {
		lines = append(lines, ofServices+" and its kin are of Kubernetes, for a Service whose name begins with dragoman, and not read: enableServiceLinks: false in the pod does without them")
	}
	return lines
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
			value, set = edge.Word(text), true
		}
	}
	return value, set
}

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
var clientVariables = []string{"DRAGOMAN_HUB", "DRAGOMAN_CONTEXT", "DRAGOMAN_TOKEN", "DRAGOMAN_CA", "DRAGOMAN_CERT", "DRAGOMAN_KEY", "DRAGOMAN_CONFIG", "DRAGOMAN_THREAD", "DRAGOMAN_REQUEST"}

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

// source has the settings of a place that they come from, by key, and what could not be read there.
type source struct {
	values map[string]any
	wrong  problems
	// place returns the origin of a setting in it, or of a part of one.
	place func(path string) Origin
}

// Load reads the settings from all sources. The error has a line for everything that is wrong:
// each names the origin, the setting, the given value and what to write instead. The Config has
// what could still be read, so that more can be checked.
func Load(fs *pflag.FlagSet, environ []string) (Config, error) {
	var all problems
	c := Config{Places: map[string]Origin{}}
	settings := c.settings()
	for _, s := range *settings.all {
		s.reset()
	}
	file, path := settings.fromFile(fs, environ)
	c.File = path
	for _, from := range []source{file, settings.fromEnviron(environ), settings.fromFlags(fs)} {
		for _, key := range slices.Sorted(maps.Keys(from.values)) {
			settings.read(key, from.values[key], func(path, text string) { from.wrong.add(from.place(path), "%s", text) })
			if from.values[key] != nil {
				c.Places[key] = from.place(key)
			}
		}
		from.wrong.sort()
		all = append(all, from.wrong...)
	}
	if _, given := c.Places["journal.bytes"]; !given {
		c.Journal.Bytes = c.DefaultJournalBytes()
	}
	if c.Limits.Memory == 0 {
		c.Limits.Memory = halfOfMemory(os.DirFS("/"))
	}
	for _, s := range *settings.all { // those of pi are expanded where they are used
		if err := s.expandPath(); err != nil {
			all.add(c.At(s.Key), "%s", err)
		}
	}
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

// fromFile reads the settings file, if one is named or found, and returns its path. One is found only for commands
// that have a flag to name it.
func (t *table) fromFile(fs *pflag.FlagSet, environ []string) (of source, path string) {
	path, name := NamedFile(fs, environ)
	if name == "" && fs.Lookup("config") != nil {
		path = FoundFile(environ)
	}
	if path == "" {
		return of, ""
	}
	named := Origin{name: name}
	path, err := ExpandHome(path)
	if err != nil {
		of.wrong.add(named, "%s", err)
		return of, path
	}
	data, err := edge.ReadFile(path)
	if err != nil {
		named.name = strings.TrimSpace(name + " " + path)
		of.wrong.add(named, "%s; name a YAML file, or leave it out ('dragoman check --all' shows every setting)", Bare(err))
		return of, path
	}
	d, wrong := readYAML(data)
	of.place = func(within string) Origin { return Origin{path, within, d.Lines} }
	of.values = map[string]any{}
	of.wrong.unreadable(path, data, wrong)
	for _, twice := range t.flatten("", d.Values, of.values) {
		of.wrong.add(of.place(twice), "it is set twice, by its whole name and below a group: remove one")
	}
	return of, path
}

// Bare returns an error without the path that the system puts before it.
func Bare(err error) error {
	var of *os.PathError
	if errors.As(err, &of) {
		return of.Err
	}
	return err
}

// flatten copies the leaves of a nested map into another, by their dotted names, and returns the
// names that occur twice. A map that is the value of a setting is a leaf.
func (t *table) flatten(prefix string, m, into map[string]any) (twice []string) {
	for name, value := range m {
		key := prefix + name
		if inner, ok := value.(map[string]any); ok && t.find(key) == nil {
			twice = append(twice, t.flatten(key+".", inner, into)...)
			continue
		}
		if _, had := into[key]; had {
			twice = append(twice, key)
		}
		into[key] = value
	}
	return twice
}

func (t *table) fromEnviron(environ []string) source {
	of := source{values: map[string]any{}, place: func(path string) Origin {
		key, _, _ := strings.Cut(path, "[")
		return Origin{name: Variable(key) + path[len(key):]}
	}}
	for _, s := range *t.all {
		if value, set := lookup(environ, Variable(s.Key)); set {
			of.values[s.Key] = value
		}
	}
	return of
}

func (t *table) fromFlags(fs *pflag.FlagSet) source {
	of := source{values: map[string]any{}, place: func(path string) Origin {
		key, _, _ := strings.Cut(path, "[")
		return Origin{name: "--" + t.find(key).Flag}
	}}
	for _, s := range *t.all {
		if f := fs.Lookup(s.Flag); s.Flag != "" && f != nil && f.Changed {
			of.values[s.Key] = f.Value.String()
		}
	}
	return of
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
			lines = append(lines, fmt.Sprintf("unknown variable %s: 'dragoman check --all' lists all there are", name))
		}
	}
	if ofServices != "" {
		lines = append(lines, ofServices+" and its kin are of Kubernetes, for a Service whose name begins with dragoman, and not read: enableServiceLinks: false in the pod does without them")
	}
	return lines
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

package config

import (
	"fmt"
	"strconv"
	"strings"
	"unicode"
)

// Origin is the place where a setting is set.
type Origin struct {
	file string // "" for a flag or a variable
	name string
	// lines has the lines of the file in which its values begin, by their paths.
	lines map[string]int
}

// String returns the origin as the prefix of an error: "dragoman.yaml:3: http_addr".
func (o Origin) String() string {
	if o.file == "" {
		return printed(o.name)
	}
	if n := o.line(); n > 0 {
		return fmt.Sprintf("%s:%d: %s", o.file, n, printed(o.name))
	}
	return o.file + ": " + printed(o.name)
}

// Where returns the origin as part of a sentence: "http_addr in dragoman.yaml".
func (o Origin) Where() string {
	if o.file == "" {
		return printed(o.name)
	}
	return printed(o.name) + " in " + o.file
}

// source returns where the setting is set without its name: the file, the flag or the variable.
func (o Origin) source() string {
	if o.file != "" {
		return o.file
	}
	return printed(o.name)
}

// line returns the line of the file, that of what the value is part of if it is not there
// itself; 0 if it is unknown.
func (o Origin) line() int {
	for path := o.name; path != ""; path = path[:max(0, strings.LastIndexAny(path, ".["))] {
		if n := o.lines[path]; n > 0 {
			return n
		}
	}
	return 0
}

// printed returns a path as it can be shown: names of a file may be anything.
func printed(path string) string {
	const most = 100
	if len(path) > most || strings.ContainsFunc(path, func(r rune) bool { return !unicode.IsPrint(r) }) {
		text := []rune(path)
		return strconv.Quote(string(text[:min(len(text), most)]))
	}
	return path
}

// At returns the origin of a setting, or where to set it if it has its default: its flag, else
// its key. It also takes the path of a part of a setting, such as agents[2].env[0].
func (c Config) At(path string) Origin {
	key, _, _ := strings.Cut(path, "[")
	if o, set := c.Places[key]; set {
		o.name += path[len(key):]
		return o
	}
	if flag := FlagOf(key); flag != "" {
		return Origin{name: "--" + flag}
	}
	return Origin{name: path}
}

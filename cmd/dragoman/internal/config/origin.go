package config

import (
	"fmt"
)

// Origin is where the value of a setting stands.
type Origin struct {
	file string // "" of a flag and a variable
	name string
}

// String is the origin before what is wrong with it: "dragoman.yaml: http_addr".
func (o Origin) String() string {
	if o.file == "" {
		return o.name
	}
	return o.file + ": " + o.name
}

// Where is the origin as a place where something else can be written: "http_addr in
// dragoman.yaml".
func (o Origin) Where() string {
	if o.file == "" {
		return o.name
	}
	return fmt.Sprintf("%s in %s", o.name, o.file)
}

// origins are where the values of settings stand, by key; of those that have their
// default nothing.
type origins map[string]Origin

// Equal makes nothing of where settings stand: those that say the same are the same.
func (origins) Equal(origins) bool { return true }

// At is where a setting stands, or where to write it when it has its default: its flag,
// else its key.
func (c Config) At(key string) Origin {
	if o, set := c.Places[key]; set {
		return o
	}
	if flag := FlagOf(key); flag != "" {
		return Origin{name: "--" + flag}
	}
	return Origin{name: key}
}

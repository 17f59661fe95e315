package config

import (
	"fmt"
)

// origin is where the value of a setting stands.
type origin struct {
	file string // "" of a flag and a variable
	name string
}

// String is the origin before what is wrong with it: "dragoman.yaml: http_addr".
func (o origin) String() string {
	if o.file == "" {
		return o.name
	}
	return o.file + ": " + o.name
}

// Where is the origin as a place where something else can be written: "http_addr in
// dragoman.yaml".
func (o origin) Where() string {
	if o.file == "" {
		return o.name
	}
	return fmt.Sprintf("%s in %s", o.name, o.file)
}

// origins are where the values of settings stand, by key; of those that have their
// default nothing.
type origins map[string]origin

// Equal makes nothing of where settings stand: those that say the same are the same.
func (origins) Equal(origins) bool { return true }

// At is where a setting stands, or where to write it when it has its default: its flag,
// else its key.
func (c Config) At(key string) origin {
	if o, set := c.Places[key]; set {
		return o
	}
	if flag := FlagOf(key); flag != "" {
		return origin{name: "--" + flag}
	}
	return origin{name: key}
}

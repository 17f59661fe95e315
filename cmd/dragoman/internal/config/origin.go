package config

// Origin is the place where a setting is set.
type Origin struct {
	file string // "" for a flag or a variable
	name string
}

// String returns the origin as the prefix of an error: "dragoman.yaml: http_addr".
func (o Origin) String() string {
	if o.file == "" {
		return o.name
	}
	return o.file + ": " + o.name
}

// Where returns the origin as part of a sentence: "http_addr in dragoman.yaml".
func (o Origin) Where() string {
	if o.file == "" {
		return o.name
	}
	return o.name + " in " + o.file
}

// At returns the origin of a setting, or where to set it if it has its default: its flag, else
// its key.
func (c Config) At(key string) Origin {
	if o, set := c.Places[key]; set {
		return o
	}
	if flag := FlagOf(key); flag != "" {
		return Origin{name: "--" + flag}
	}
	return Origin{name: key}
}

package config

import (
	"fmt"
	"slices"

	"go.yaml.in/yaml/v3"
)

// nodeCheck collects what is wrong with the nodes of a YAML file that the package would say in terms of Go, and their
// lines by their paths. It makes all keys text.
type nodeCheck struct {
	wrong []YAMLError
	lines map[string]int
	above []*yaml.Node // on the way to the node
}

func (c *nodeCheck) fail(n *yaml.Node, path, format string, args ...any) {
	if path != "" {
		path = printed(path) + ": "
	}
	c.wrong = append(c.wrong, YAMLError{n.Line, path + fmt.Sprintf(format, args...)})
}

// check checks a node and what is below it.
func (c *nodeCheck) check(n *yaml.Node, path string) {
	c.above = append(c.above, n)
	defer func() { c.above = c.above[:len(c.above)-1] }()
	switch n.Kind {
	case yaml.SequenceNode:
		for i, one := range n.Content {
			below := fmt.Sprintf("%s[%d]", path, i)
			c.lines[below] = one.Line
			c.check(one, below)
		}
	case yaml.MappingNode:
		c.checkMapping(n, path)
	case yaml.AliasNode:
		if slices.Contains(c.above, n.Alias) {
			c.fail(n, path, "*%s stands within what it refers to: write the value itself", n.Value)
		}
	case yaml.ScalarNode:
		var value any
		if n.Decode(&value) != nil {
			c.fail(n, path, "want %s, as its mark %s says, got %s: remove the mark", kindOfTag(n.ShortTag()), n.ShortTag(), shown(n.Value))
		}
	}
}

func (c *nodeCheck) checkMapping(n *yaml.Node, path string) {
	first := map[string]int{}
	for i := 0; i+1 < len(n.Content); i += 2 {
		key, value := n.Content[i], n.Content[i+1]
		below := key.Value
		if path != "" {
			below = path + "." + below
		}
		line, twice := first[key.Value]
		switch {
		case key.Kind == yaml.AliasNode:
			c.fail(key, path, "want a name before the colon, got *%s, which refers to another value: write the name itself", key.Value)
		case key.Kind != yaml.ScalarNode:
			c.fail(key, path, "want a name before the colon, got %s", map[yaml.Kind]string{yaml.MappingNode: "an object", yaml.SequenceNode: "a list"}[key.Kind])
		case key.ShortTag() == "!!merge" && !merges(value):
			c.fail(key, path, "<< takes over settings from elsewhere: want *NAME of an object after it")
		case twice:
			c.fail(key, below, "it is set twice, first in line %d: remove one", line)
		}
		if key.ShortTag() != "!!merge" {
			key.Tag = "!!str"
		}
		first[key.Value], c.lines[below] = key.Line, key.Line
		c.check(value, below)
	}
}

// merges reports whether a value can stand after <<.
func merges(n *yaml.Node) bool {
	switch n.Kind {
	case yaml.AliasNode:
		return n.Alias.Kind == yaml.MappingNode
	case yaml.SequenceNode:
		return !slices.ContainsFunc(n.Content, func(one *yaml.Node) bool { return !merges(one) || one.Kind == yaml.SequenceNode })
	}
	return n.Kind == yaml.MappingNode
}

// kindOfTag names what a tag of YAML stands for.
func kindOfTag(tag string) string {
	if kind := map[string]string{
		"!!int": "a whole number", "!!float": "a number", "!!bool": "true or false", "!!timestamp": "a date", "!!binary": "base64", "!!null": "nothing",
	}[tag]; kind != "" {
		return kind
	}
	return "another value"
}

package config

import (
	"bytes"
	"encoding/json"
	"errors"
	"reflect"
	"slices"
	"strings"

	"go.yaml.in/yaml/v3"
)

// ErrByHand says that a settings file is written in a way in which nothing can be added to it.
var ErrByHand = errors.New("the file cannot be extended as it is written")

// EntryText returns an [Agent] or a [Pack] as an entry of a list of YAML, in one line.
func EntryText(entry any) (string, error) {
	text, err := json.Marshal(entry)
	if err != nil {
		return "", err
	}
	node, err := ParseYAML(text) // JSON is YAML
	if err != nil {
		return "", err
	}
	plain(node)
	text, err = yaml.Marshal(node)
	return strings.TrimSpace(string(text)), err
}

// plain writes a node in one line, without quotes where it needs none.
func plain(n *yaml.Node) {
	n.Style = 0
	if n.Kind != yaml.ScalarNode {
		n.Style = yaml.FlowStyle
	}
	for _, below := range n.Content {
		plain(below)
	}
}

// AddEntry returns a settings file with one entry more in a list, which is agents or packs. Every other byte stays as
// it is. The file has been read without a mistake. [ErrByHand] says that it has to be added by hand.
func AddEntry(file []byte, list, entry string) ([]byte, error) {
	root, err := ParseYAML(file)
	if err != nil {
		return nil, err
	}
	at, text := len(file), list+":\n  - "+entry+"\n"
	if root != nil {
		at, text = place(file, root, list, entry)
	}
	if text == "" {
		return nil, ErrByHand
	}
	if at > 0 && file[at-1] != '\n' && strings.HasSuffix(text, "\n") {
		text = "\n" + text
	}
	extended := slices.Concat(file[:at], []byte(text), file[at:])
	if !extends(file, extended, list, entry) {
		return nil, ErrByHand
	}
	return extended, nil
}

// place returns the text that adds an entry to a list, and where it goes; "" if nobody knows.
func place(file []byte, root *yaml.Node, list, entry string) (at int, text string) {
	key := 0
	for key < len(root.Content) && root.Content[key].Value != list {
		key += 2
	}
	switch inline := root.Style&yaml.FlowStyle != 0; {
	case root.Kind != yaml.MappingNode:
		return 0, ""
	case key == len(root.Content) && inline:
		return opened(file, root, list+": ["+entry+"]")
	case key == len(root.Content):
		indent := strings.Repeat(" ", root.Column-1)
		return len(file), indent + list + ":\n" + indent + "  - " + entry + "\n"
	}
	name, value := root.Content[key], root.Content[key+1]
	switch {
	case value.Kind == yaml.SequenceNode && value.Style&yaml.FlowStyle != 0:
		return opened(file, value, entry)
	case value.Kind == yaml.SequenceNode:
		next := bytes.Count(file, []byte("\n")) + 2
		if key+2 < len(root.Content) {
			next = root.Content[key+2].Line
		}
		return endOf(file, value, next), strings.Repeat(" ", value.Column-1) + "- " + entry + "\n"
	case value.Tag == "!!null" && value.Value == "":
		return lineAt(file, name.Line+1), strings.Repeat(" ", name.Column+1) + "- " + entry + "\n"
	}
	return 0, ""
}

// opened returns the place behind the bracket that begins a node, and what is written there before what it has.
func opened(file []byte, n *yaml.Node, text string) (at int, _ string) {
	if len(n.Content) > 0 {
		text += ", "
	}
	return lineAt(file, n.Line) + n.Column, text
}

// endOf returns where the last entry of a list ends, before the line of what follows it: empty lines and comments that
// are not indented as the list is belong to that.
func endOf(file []byte, list *yaml.Node, next int) int {
	end := lineAt(file, next)
	for {
		begin := bytes.LastIndexByte(file[:max(0, end-1)], '\n') + 1
		line := string(file[begin:end])
		bare := strings.TrimSpace(line)
		comment := strings.HasPrefix(bare, "#") && strings.Index(line, "#") < max(1, list.Column-1)
		if begin == end || bare != "" && !comment {
			return end
		}
		end = begin
	}
}

// lineAt returns where a line of a file begins, or the end of the file.
func lineAt(file []byte, line int) (at int) {
	for ; line > 1 && at < len(file); line-- {
		end := bytes.IndexByte(file[at:], '\n')
		if end < 0 {
			return len(file)
		}
		at += end + 1
	}
	return at
}

// extends reports whether a file says the same as another one, and has one entry more in a list.
func extends(before, after []byte, list, entry string) bool {
	old, errOld := ReadYAML(before)
	got, errGot := ReadYAML(after)
	added, errAdded := ReadYAML([]byte("entry: " + entry))
	if errOld != nil || errGot != nil || errAdded != nil {
		return false
	}
	all, _ := got.Values[list].([]any)
	i := slices.IndexFunc(all, func(one any) bool { return reflect.DeepEqual(one, added.Values["entry"]) })
	if i < 0 {
		return false
	}
	had, _ := old.Values[list].([]any)
	rest := slices.Delete(slices.Clone(all), i, i+1)
	if old.Values == nil {
		old.Values = map[string]any{}
	}
	old.Values[list], got.Values[list] = append([]any{}, had...), rest
	return reflect.DeepEqual(old.Values, got.Values)
}

package config

import (
	"fmt"
	"maps"
	"slices"
	"strings"

	"github.com/dragoman-hub/dragoman/core/suggest"
)

// list is a setting that is a list of objects, or names with values.
type list interface {
	// read replaces what there is by a value of a source, or reports what is wrong with it.
	read(path string, raw any, report reporter)
}

// entry is an object of such a list.
type entry interface {
	// settings declares the members of the object.
	settings() *table
	// check reports what is wrong between the members, by their names.
	check(report reporter)
}

// readEntries reads a list of objects, or YAML text with one. It returns also those with which
// something is wrong, as far as they could be read, so that the indexes stay.
func readEntries[T any, E interface {
	*T
	entry
}](path string, raw any, report reporter,
) (all []T) {
	if text, is := raw.(string); is {
		d, wrong := readYAML([]byte("list: " + text))
		if len(wrong) > 0 || len(d.Values) > 1 {
			report(path, "want a list of objects, got "+shown(raw))
			return nil
		}
		if raw = d.Values["list"]; raw == nil {
			return nil
		}
	}
	items, is := raw.([]any)
	if !is {
		report(path, "want a list of objects, got "+shown(raw)+asList(E(new(T)).settings(), raw))
		return nil
	}
	for i, item := range items {
		one := E(new(T))
		readEntry(fmt.Sprintf("%s[%d]", path, i), one, item, report)
		all = append(all, *one)
	}
	return all
}

// asList says how to write an object as a list, as the end of an error; "" for other values.
func asList(members *table, raw any) string {
	object, is := raw.(map[string]any)
	if !is {
		return ""
	}
	for _, s := range *members.all {
		if _, one := object[s.Key]; one {
			return ": put a dash before each entry, such as - " + s.Key + ": ..."
		}
	}
	if members.find("name") == nil {
		return ": put a dash before each entry"
	}
	for name := range object {
		if len(object) == 1 && strings.Trim(name, letters) == "" {
			return fmt.Sprintf(": write - name: %s instead of %s:, and its members below name", name, name)
		}
	}
	return ": write - name: NAME instead of NAME:, and the members of each below its name"
}

// letters are those of names that need no quotes.
const letters = "ABCDEFGHIJKLMNOPQRSTUVWXYZabcdefghijklmnopqrstuvwxyz0123456789_-"

// readEntry reads one object of a list.
func readEntry(path string, into entry, raw any, report reporter) {
	members := into.settings()
	known := members.keys()
	object, is := raw.(map[string]any)
	if !is {
		report(path, "want an object such as {"+known[0]+": ...}, got "+shown(raw))
		return
	}
	wrong := map[string]bool{}
	refuse := func(member, text string) {
		name, _, _ := strings.Cut(member, "[")
		wrong[name] = true
		report(path+"."+member, text)
	}
	for _, key := range slices.Sorted(maps.Keys(object)) {
		switch s := members.find(key); {
		case s != nil && object[key] != nil:
			s.read(key, object[key], refuse)
		case s == nil:
			text := "unknown: use " + strings.Join(known, ", ")
			if near := suggest.Nearest(key, known); near != "" {
				text = "unknown: did you mean " + near + "?"
				wrong[near] = true // so that it is not missing too
			}
			report(path+"."+key, text)
		}
	}
	for _, s := range *members.all {
		if err := s.expandPath(); err != nil {
			refuse(s.Key, err.Error())
		}
	}
	into.check(func(member, text string) {
		if name, _, _ := strings.Cut(member, "["); !wrong[name] {
			report(path+"."+member, text)
		}
	})
}

// onlyOnce reports names that several entries have.
func onlyOnce(path string, names []string, report reporter) {
	for i, name := range names {
		if first := slices.Index(names, name); first < i && name != "" {
			report(fmt.Sprintf("%s[%d].name", path, i), fmt.Sprintf("%q is the name of %s[%d] too: choose another", name, path, first))
		}
	}
}

// absent reports members that are given although there is nothing that they are for.
func absent(report reporter, why string, given map[string]bool) {
	for _, name := range slices.Sorted(maps.Keys(given)) {
		if given[name] {
			report(name, why+": leave it out")
		}
	}
}

// each returns what a function says of each of a list.
func each[T any](list []T, of func(T) string) (all []string) {
	for _, one := range list {
		all = append(all, of(one))
	}
	return all
}

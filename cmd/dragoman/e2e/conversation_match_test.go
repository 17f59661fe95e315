package e2e

import (
	"encoding/json"
	"fmt"
	"maps"
	"regexp"
	"slices"
	"strconv"
	"strings"
	"time"
)

// placeholders match what a conversation has in place of values that vary:
//
//	$name      the same value wherever it occurs; the first value received there decides
//	$any       any value
//	$time      a point in time
//	$chars(9)  that many letters x
//	$$         a dollar sign
var placeholders = regexp.MustCompile(`\$\$|\$chars\([0-9]+\)|\$[a-z][a-zA-Z0-9]*`)

// ellipsis as a member of an object allows further members.
const ellipsis = "..."

const isoTimes = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})`

var isoTime = regexp.MustCompile("^" + isoTimes + "$")

// bindings are the known values of placeholders.
type bindings struct {
	values map[string]*jsonValue
	// writing replaces values that vary by placeholders, because the conversation is being
	// written.
	writing bool
}

func (n bindings) clone() bindings { return bindings{maps.Clone(n.values), n.writing} }

// fill replaces the placeholders in a value that is sent.
func (n bindings) fill(v *jsonValue) (*jsonValue, error) {
	return v.change(func(s *jsonValue) (*jsonValue, error) {
		if name := placeholders.FindString(s.text); name == s.text && n.values[name] != nil {
			return n.values[name], nil
		}
		text, err := n.fillText(s.text)
		return textValue(text), err
	})
}

func (n bindings) fillText(s string) (string, error) {
	var err error
	out := placeholders.ReplaceAllStringFunc(s, func(p string) string {
		if plain, ok := literalText(p); ok {
			return plain
		}
		if n.values[p] == nil {
			err = fmt.Errorf("%s has no value yet: an earlier step must receive it", p)
			return p
		}
		return n.values[p].text
	})
	return out, err
}

// literalText returns the text of a placeholder whose value does not vary.
func literalText(p string) (string, bool) {
	if p == "$$" {
		return "$", true
	}
	count, ok := strings.CutPrefix(p, "$chars(")
	if !ok {
		return "", false
	}
	many, err := strconv.Atoi(strings.TrimSuffix(count, ")"))
	if err != nil {
		panic(err) // the expression takes digits only
	}
	return strings.Repeat("x", many), true
}

// compare compares a received value with the wanted one. It returns the received value as the
// conversation would write it, with the placeholders of want where they match, and whether the two
// agree. New names are bound.
func (n bindings) compare(want, got *jsonValue) (*jsonValue, bool) {
	return n.merge(want, got)
}

// compareAll compares frames. An ellipsis among the wanted frames stands for any number of others.
func (n bindings) compareAll(want, received []*jsonValue) ([]*jsonValue, bool) {
	var shown []*jsonValue
	ok := true
	for i, w := range want {
		if w.open == '"' && w.text == ellipsis {
			next := n.resume(want[i+1:], received)
			shown, received = append(shown, w), received[next:]
			continue
		}
		if len(received) == 0 {
			return shown, false
		}
		frame, same := n.compare(w, received[0])
		shown, received, ok = append(shown, frame), received[1:], ok && same
	}
	for _, v := range received {
		shown, ok = append(shown, n.show(v)), false
	}
	return shown, ok
}

// resume returns the index at which the received frames match what follows an ellipsis.
func (n bindings) resume(want, received []*jsonValue) int {
	if len(want) == 0 {
		return len(received)
	}
	for i := range received {
		if _, ok := n.clone().compareAll(want, received[i:]); ok {
			return i
		}
	}
	return max(0, len(received)-len(want))
}

// reorder brings the wanted frames into the order in which they were received.
func (n bindings) reorder(want, received []*jsonValue) []*jsonValue {
	known, rest := n.clone(), slices.Clone(want)
	var out []*jsonValue
	for _, v := range received {
		for i, w := range rest {
			if try := known.clone(); try.agrees(w, v) {
				out, rest, known = append(out, w), slices.Delete(rest, i, i+1), try
				break
			}
		}
	}
	return append(out, rest...)
}

func (n bindings) agrees(want, got *jsonValue) bool {
	_, ok := n.merge(want, got)
	return ok
}

func (n bindings) merge(want, got *jsonValue) (*jsonValue, bool) {
	switch {
	case want == nil:
		return n.show(got), false
	case want.open == '"' && n.matches(want.text, got):
		return want, true
	case want.open != got.open:
		return n.show(got), false
	case want.open == '{':
		return n.mergeMembers(want, got)
	case want.open == '[':
		out, ok := &jsonValue{open: '['}, len(want.items) == len(got.items)
		for i, item := range got.items {
			var w *jsonValue
			if i < len(want.items) {
				w = want.items[i]
			}
			merged, same := n.merge(w, item)
			out.items, ok = append(out.items, merged), ok && same
		}
		return out, ok
	case want.open == 0 && sameScalar(want.text, got.text):
		return want, true
	}
	return n.show(got), false
}

// show returns how a received value is shown where it differs.
func (n bindings) show(got *jsonValue) *jsonValue {
	if !n.writing {
		return got
	}
	return n.generalize(got)
}

func (n bindings) mergeMembers(want, got *jsonValue) (*jsonValue, bool) {
	out, ok := &jsonValue{open: '{'}, true
	for i, key := range want.keys {
		if key == ellipsis {
			continue
		}
		item := got.member(key)
		if item == nil {
			ok = false
			continue
		}
		merged, same := n.merge(want.items[i], item)
		if !same && n.writing && isTimeKey(key) {
			merged = textValue("$time")
		}
		out.set(key, merged)
		ok = ok && same
	}
	open := want.member(ellipsis)
	for i, key := range got.keys {
		if want.member(key) == nil && open == nil {
			added := n.show(&jsonValue{open: '{', keys: []string{key}, items: []*jsonValue{got.items[i]}})
			out.set(key, added.items[0])
			ok = false
		}
	}
	if open != nil {
		out.set(ellipsis, open)
	}
	return out, ok
}

func sameScalar(a, b string) bool {
	if a == b {
		return true
	}
	x, err := strconv.ParseFloat(a, 64)
	y, err2 := strconv.ParseFloat(b, 64)
	return err == nil && err2 == nil && x == y
}

// matches reports whether a wanted string, which may hold placeholders, matches a received value.
func (n bindings) matches(want string, got *jsonValue) bool {
	switch name := placeholders.FindString(want); {
	case want == "$any":
		return true
	case want == "$time" && got.open == 0:
		ms, err := strconv.ParseInt(got.text, 10, 64)
		return err == nil && time.UnixMilli(ms).Year() >= 2000
	case name == want && n.values[name] != nil:
		return n.values[name].line() == got.line()
	case name == want && isName(name) && got.open != '{' && got.open != '[':
		n.values[name] = got
		return true
	}
	return got.open == '"' && n.matchesText(want, got.text)
}

// isName reports whether the value of a placeholder has to be learned.
func isName(p string) bool {
	_, plain := literalText(p)
	return p != "" && !plain && p != "$any" && p != "$time"
}

// matchesText is matches for a text that contains placeholders.
func (n bindings) matchesText(want, got string) bool {
	var e strings.Builder
	var learned []string
	e.WriteString("(?s)^")
	rest := want
	for {
		at := placeholders.FindStringIndex(rest)
		if at == nil {
			break
		}
		p := rest[at[0]:at[1]]
		e.WriteString(regexp.QuoteMeta(rest[:at[0]]))
		rest = rest[at[1]:]
		plain, isPlain := literalText(p)
		switch {
		case isPlain:
			e.WriteString(regexp.QuoteMeta(plain))
		case p == "$any":
			e.WriteString(".*")
		case p == "$time":
			e.WriteString(isoTimes)
		case n.values[p] != nil:
			e.WriteString(regexp.QuoteMeta(n.values[p].text))
		default:
			e.WriteString("(.+?)")
			learned = append(learned, p)
		}
	}
	e.WriteString(regexp.QuoteMeta(rest) + "$")
	m := regexp.MustCompile(e.String()).FindStringSubmatch(got)
	if m == nil {
		return false
	}
	for i, p := range learned {
		n.values[p] = textValue(m[i+1])
	}
	return true
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// generalize replaces what varies by placeholders when a conversation is written: times, ids that
// are bound, and UUIDs, which get a name.
func (n bindings) generalize(v *jsonValue) *jsonValue { return n.generalizeMember("", v) }

func (n bindings) generalizeMember(key string, v *jsonValue) *jsonValue {
	if isTimeKey(key) {
		return textValue("$time")
	}
	out := &jsonValue{open: v.open, text: v.text, keys: v.keys}
	if v.open == '"' {
		out.text = n.generalizeText(key, v.text)
	}
	for i, item := range v.items {
		if v.open == '{' {
			key = v.keys[i]
		}
		out.items = append(out.items, n.generalizeMember(key, item))
	}
	return out
}

func isTimeKey(key string) bool { return key == "ts" || key == "timestamp" || key == "serverTime" }

// idNames are the names of ids, by their key.
var idNames = map[string]string{
	"taskId": "task", "task_id": "task", "request_id": "task", "task": "task", "thread_id": "thread", "thread": "thread",
	"injection_id": "injection", "agentId": "agent",
}

func (n bindings) generalizeText(key, s string) string {
	if isoTime.MatchString(s) {
		return "$time"
	}
	s = strings.ReplaceAll(s, "$", "$$")
	for name, v := range n.values {
		const minLength = 8 // shorter texts may be equal by chance
		if len(v.text) >= minLength {
			s = strings.ReplaceAll(s, v.text, name)
		}
	}
	return uuids.ReplaceAllStringFunc(s, func(id string) string {
		kind := idNames[key]
		if kind == "" {
			kind = "id"
		}
		name := "$" + kind
		for i := 2; n.values[name] != nil; i++ {
			name = fmt.Sprintf("$%s%d", kind, i)
		}
		n.values[name] = textValue(id)
		return name
	})
}

// unpack parses the JSON text in members that end in _json, as Coven has it.
func unpack(v *jsonValue) *jsonValue {
	out := &jsonValue{open: v.open, text: v.text, keys: v.keys}
	for i, item := range v.items {
		item = unpack(item)
		if v.open == '{' && strings.HasSuffix(v.keys[i], "_json") && item.open == '"' {
			if inner, err := parseJSON([]byte(item.text)); err == nil && len(inner.items) > 0 && json.Valid([]byte(item.text)) {
				item = inner
			}
		}
		out.items = append(out.items, item)
	}
	return out
}

// pack is the inverse of unpack.
func pack(v *jsonValue) *jsonValue {
	out := &jsonValue{open: v.open, text: v.text, keys: v.keys}
	for i, item := range v.items {
		if v.open == '{' && strings.HasSuffix(v.keys[i], "_json") && item.open != '"' {
			item = textValue(item.line())
		} else {
			item = pack(item)
		}
		out.items = append(out.items, item)
	}
	return out
}

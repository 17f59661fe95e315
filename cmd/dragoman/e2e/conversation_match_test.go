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

// placeholders are what stands in a story for what varies:
//
//	$name      the same wherever it stands; what came first in its place decides
//	$any       anything
//	$time      a point in time
//	$chars(9)  so many letters x
//	$$         a dollar sign
var placeholders = regexp.MustCompile(`\$\$|\$chars\([0-9]+\)|\$[a-z][a-zA-Z0-9]*`)

// andSoOn as a member of an object in a story says that it may have others.
const andSoOn = "..."

const isoTimes = `[0-9]{4}-[0-9]{2}-[0-9]{2}T[0-9]{2}:[0-9]{2}:[0-9]{2}(?:\.[0-9]+)?(?:Z|[+-][0-9]{2}:[0-9]{2})`

var isoTime = regexp.MustCompile("^" + isoTimes + "$")

// names are what the placeholders of a story stand for, as far as that is known.
type names struct {
	known map[string]*jsonValue
	// writing says that a story is being written down: what came gets placeholders
	// where it plainly varies.
	writing bool
}

func (n names) clone() names { return names{maps.Clone(n.known), n.writing} }

// fill returns what a story sends with its placeholders filled in.
func (n names) fill(v *jsonValue) (*jsonValue, error) {
	return v.change(func(s *jsonValue) (*jsonValue, error) {
		if name := placeholders.FindString(s.text); name == s.text && n.known[name] != nil {
			return n.known[name], nil
		}
		text, err := n.fillText(s.text)
		return textValue(text), err
	})
}

func (n names) fillText(s string) (string, error) {
	var err error
	out := placeholders.ReplaceAllStringFunc(s, func(p string) string {
		if plain, ok := spelledOut(p); ok {
			return plain
		}
		if n.known[p] == nil {
			err = fmt.Errorf("nothing is called %s yet: it must have come in an earlier step", p)
			return p
		}
		return n.known[p].text
	})
	return out, err
}

// spelledOut is the text of a placeholder that stands for nothing that varies.
func spelledOut(p string) (string, bool) {
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

// compare holds what came against what a story wants. It returns what came as the
// story would write it, with the placeholders of want wherever they hold, and
// whether the two agree. Names that were new are known from then on.
func (n names) compare(want, got *jsonValue) (*jsonValue, bool) {
	return n.merge(want, got)
}

// compareAll is compare for frames. andSoOn among those that are wanted stands for
// any number of others.
func (n names) compareAll(want, came []*jsonValue) ([]*jsonValue, bool) {
	var shown []*jsonValue
	ok := true
	for i, w := range want {
		if w.open == '"' && w.text == andSoOn {
			next := n.resume(want[i+1:], came)
			shown, came = append(shown, w), came[next:]
			continue
		}
		if len(came) == 0 {
			return shown, false
		}
		frame, same := n.compare(w, came[0])
		shown, came, ok = append(shown, frame), came[1:], ok && same
	}
	for _, v := range came {
		shown, ok = append(shown, n.show(v)), false
	}
	return shown, ok
}

// resume finds where what came goes on with what is wanted behind an andSoOn.
func (n names) resume(want, came []*jsonValue) int {
	if len(want) == 0 {
		return len(came)
	}
	for i := range came {
		if _, ok := n.clone().compareAll(want, came[i:]); ok {
			return i
		}
	}
	return max(0, len(came)-len(want))
}

// arrange brings what is wanted into the order in which it came.
func (n names) arrange(want, came []*jsonValue) []*jsonValue {
	known, rest := n.clone(), slices.Clone(want)
	var out []*jsonValue
	for _, v := range came {
		for i, w := range rest {
			if try := known.clone(); try.agree(w, v) {
				out, rest, known = append(out, w), slices.Delete(rest, i, i+1), try
				break
			}
		}
	}
	return append(out, rest...)
}

func (n names) agree(want, got *jsonValue) bool {
	_, ok := n.merge(want, got)
	return ok
}

func (n names) merge(want, got *jsonValue) (*jsonValue, bool) {
	switch {
	case want == nil:
		return n.show(got), false
	case want.open == '"' && n.stands(want.text, got):
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

// show is how what came is shown where it is not what was wanted.
func (n names) show(got *jsonValue) *jsonValue {
	if !n.writing {
		return got
	}
	return n.veil(got)
}

func (n names) mergeMembers(want, got *jsonValue) (*jsonValue, bool) {
	out, ok := &jsonValue{open: '{'}, true
	for i, key := range want.keys {
		if key == andSoOn {
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
	open := want.member(andSoOn)
	for i, key := range got.keys {
		if want.member(key) == nil && open == nil {
			added := n.show(&jsonValue{open: '{', keys: []string{key}, items: []*jsonValue{got.items[i]}})
			out.set(key, added.items[0])
			ok = false
		}
	}
	if open != nil {
		out.set(andSoOn, open)
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

// stands reports whether a string of a story, which may hold placeholders, stands
// for what came.
func (n names) stands(want string, got *jsonValue) bool {
	switch name := placeholders.FindString(want); {
	case want == "$any":
		return true
	case want == "$time" && got.open == 0:
		ms, err := strconv.ParseInt(got.text, 10, 64)
		return err == nil && time.UnixMilli(ms).Year() >= 2000
	case name == want && n.known[name] != nil:
		return n.known[name].line() == got.line()
	case name == want && isName(name) && got.open != '{' && got.open != '[':
		n.known[name] = got
		return true
	}
	return got.open == '"' && n.standsWithin(want, got.text)
}

// isName reports whether a placeholder stands for something that has to be learned.
func isName(p string) bool {
	_, plain := spelledOut(p)
	return p != "" && !plain && p != "$any" && p != "$time"
}

// standsWithin is stands for a text with placeholders in its midst.
func (n names) standsWithin(want, got string) bool {
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
		plain, isPlain := spelledOut(p)
		switch {
		case isPlain:
			e.WriteString(regexp.QuoteMeta(plain))
		case p == "$any":
			e.WriteString(".*")
		case p == "$time":
			e.WriteString(isoTimes)
		case n.known[p] != nil:
			e.WriteString(regexp.QuoteMeta(n.known[p].text))
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
		n.known[p] = textValue(m[i+1])
	}
	return true
}

var uuids = regexp.MustCompile(`[0-9a-f]{8}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{4}-[0-9a-f]{12}`)

// veil puts placeholders where something plainly varies, in what a story is being
// written with: times, ids that have a name, and UUIDs, which get one.
func (n names) veil(v *jsonValue) *jsonValue { return n.veilMember("", v) }

func (n names) veilMember(key string, v *jsonValue) *jsonValue {
	if isTimeKey(key) {
		return textValue("$time")
	}
	out := &jsonValue{open: v.open, text: v.text, keys: v.keys}
	if v.open == '"' {
		out.text = n.veilText(key, v.text)
	}
	for i, item := range v.items {
		if v.open == '{' {
			key = v.keys[i]
		}
		out.items = append(out.items, n.veilMember(key, item))
	}
	return out
}

func isTimeKey(key string) bool { return key == "ts" || key == "timestamp" || key == "serverTime" }

// idNames are how ids are called that stand under these keys.
var idNames = map[string]string{
	"taskId": "task", "task_id": "task", "request_id": "task", "task": "task", "thread_id": "thread", "thread": "thread",
	"injection_id": "injection", "agentId": "agent",
}

func (n names) veilText(key, s string) string {
	if isoTime.MatchString(s) {
		return "$time"
	}
	s = strings.ReplaceAll(s, "$", "$$")
	for name, v := range n.known {
		const telling = 8 // letters; what is shorter may stand there by chance
		if len(v.text) >= telling {
			s = strings.ReplaceAll(s, v.text, name)
		}
	}
	return uuids.ReplaceAllStringFunc(s, func(id string) string {
		kind := idNames[key]
		if kind == "" {
			kind = "id"
		}
		name := "$" + kind
		for i := 2; n.known[name] != nil; i++ {
			name = fmt.Sprintf("$%s%d", kind, i)
		}
		n.known[name] = textValue(id)
		return name
	})
}

// unpack shows JSON that travels as text in members that end in _json, as Coven
// has it.
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

package strictjson

import (
	"bytes"
	"encoding"
	"encoding/base64"
	"encoding/json"
	"errors"
	"fmt"
	"math"
	"reflect"
	"strconv"
)

func (v Value) decode(into any, known bool) error {
	p := reflect.ValueOf(into)
	if p.Kind() != reflect.Pointer || p.IsNil() {
		return &json.InvalidUnmarshalError{Type: reflect.TypeOf(into)}
	}
	if v.in == nil {
		return nil
	}
	target := p.Elem()
	d, of := decoder{index: v.in, known: known}, planOf(target.Type())
	if target.IsZero() {
		err := d.value(of, v.at, target)
		if err != nil {
			target.SetZero()
		}
		return orNil(err)
	}
	draft := reflect.New(target.Type()).Elem()
	draft.Set(target)
	if err := d.value(of, v.at, draft); err != nil {
		return err
	}
	target.Set(draft)
	return nil
}

// decoder sets Go values from a checked text.
type decoder struct {
	*index
	known bool // unknown keys are errors
	// repeats are short strings of a list, which often repeat: the roles and agents of a
	// conversation.
	repeats *[64]string
}

// said returns the unescaped string at a node.
func (d decoder) said(at int) string {
	const short = 32
	n := &d.nodes[at]
	raw := d.text[n.from+1 : n.to-1]
	if d.repeats == nil || len(raw) > short || n.marks&escaped != 0 {
		return d.string(at)
	}
	visit(len(raw))
	hash := uint(len(raw))
	for _, c := range raw {
		hash = hash*31 + uint(c)
	}
	same := &d.repeats[hash%uint(len(d.repeats))]
	if *same != string(raw) {
		*same = string(raw)
	}
	return *same
}

// value decodes the value at a node.
func (d decoder) value(p *plan, at int, to reflect.Value) *Error {
	n := &d.nodes[at]
	if !p.takes(n.kind) {
		return &Error{Offset: int(n.from), Problem: "want " + p.want() + ", got " + n.kind.String()}
	}
	for to.Kind() == reflect.Pointer {
		if n.kind == Null {
			to.SetZero()
			return nil
		}
		if to.IsNil() {
			to.Set(reflect.New(to.Type().Elem()))
		}
		to = to.Elem()
	}
	switch p.form {
	case rawForm:
		to.SetBytes(bytes.Clone(d.raw(at)))
		return nil
	case valueForm:
		*to.Addr().Interface().(*Value) = Value{d.index, at}
		return nil
	case ownForm, timeForm:
		return d.leaf(p, at, to.Addr().Interface().(json.Unmarshaler).UnmarshalJSON(d.read(at)))
	case elseForm:
		d.read(at) // which encoding/json does twice
		return d.leaf(p, at, json.Unmarshal(d.read(at), to.Addr().Interface()))
	}
	if n.kind == Null {
		switch to.Kind() {
		case reflect.Interface, reflect.Map, reflect.Slice:
			to.SetZero()
		}
		return nil
	}
	switch p.form {
	case anyForm:
		v, err := d.any(at)
		if err == nil {
			to.Set(reflect.ValueOf(v))
		}
		return err
	case stringForm:
		to.SetString(d.said(at))
	case textForm:
		text := d.text[n.from+1 : n.to-1 : n.to-1]
		if visit(len(text)); n.marks&escaped != 0 {
			text = unescape(nil, text)
		}
		return d.leaf(p, at, to.Addr().Interface().(encoding.TextUnmarshaler).UnmarshalText(text))
	case bytesForm:
		b, err := base64.StdEncoding.DecodeString(d.string(at))
		to.SetBytes(b)
		return d.leaf(p, at, err)
	case numberForm:
		to.SetString(string(d.raw(at)))
	case wholeForm:
		return d.whole(at, to)
	case realForm:
		f, err := strconv.ParseFloat(string(d.read(at)), to.Type().Bits())
		if err != nil {
			return d.outOfRange(at)
		}
		to.SetFloat(f)
	case boolForm:
		to.SetBool(d.text[n.from] == 't')
	case listForm:
		return d.list(p, at, to)
	case structForm:
		return d.members(p, at, to)
	case mapForm:
		return d.table(p, at, to)
	}
	return nil
}

// read returns the text of the value at a node, for another reader.
func (d decoder) read(at int) []byte {
	raw := d.raw(at)
	visit(len(raw))
	return raw
}

// members decodes the object at a node into a struct.
func (d decoder) members(p *plan, at int, to reflect.Value) *Error {
	end := int(d.nodes[at].next)
	for at++; at < end; at = int(d.nodes[at].next) {
		key := d.key(at)
		f := p.fields[string(key)]
		if f == nil {
			if problem := unknownKey(key, p.names, d.known); problem != "" {
				return &Error{Offset: int(d.nodes[at].keyFrom) - 1, Problem: problem}
			}
			continue
		}
		if err := d.value(f.plan, at, f.in(to)); err != nil {
			return err.UnderKey(key)
		}
	}
	return nil
}

// list decodes the array at a node into a slice or an array.
func (d decoder) list(p *plan, at int, to reflect.Value) *Error {
	if to.Kind() == reflect.Array {
		to.SetZero()
	} else {
		count := d.count(at)
		to.Set(reflect.MakeSlice(to.Type(), count, count))
	}
	if d.repeats == nil && to.Len() > 1 && p.elem.form == structForm {
		d.repeats = new([64]string)
	}
	end := int(d.nodes[at].next)
	at++
	for i := 0; at < end && i < to.Len(); i++ {
		if err := d.value(p.elem, at, to.Index(i)); err != nil {
			return err.UnderIndex(i)
		}
		at = int(d.nodes[at].next)
	}
	return nil
}

// table decodes the object at a node into a map whose keys are strings.
func (d decoder) table(p *plan, at int, to reflect.Value) *Error {
	of := to.Type()
	if to.IsNil() {
		to.Set(reflect.MakeMapWithSize(of, d.count(at)))
	}
	end := int(d.nodes[at].next)
	for at++; at < end; at = int(d.nodes[at].next) {
		key, elem := d.key(at), reflect.New(of.Elem()).Elem()
		if err := d.value(p.elem, at, elem); err != nil {
			return err.UnderKey(key)
		}
		to.SetMapIndex(reflect.ValueOf(string(key)).Convert(of.Key()), elem)
	}
	return nil
}

// any decodes the value at a node as encoding/json does into an empty interface.
func (d decoder) any(at int) (any, *Error) {
	n := d.nodes[at]
	end := int(n.next)
	switch n.kind {
	case Object:
		object := make(map[string]any, d.count(at))
		for at++; at < end; at = int(d.nodes[at].next) {
			v, err := d.any(at)
			if err != nil {
				return nil, err.UnderKey(d.key(at))
			}
			object[string(d.key(at))] = v
		}
		return object, nil
	case Array:
		list := make([]any, 0, d.count(at))
		for at++; at < end; at = int(d.nodes[at].next) {
			v, err := d.any(at)
			if err != nil {
				return nil, err.UnderIndex(len(list))
			}
			list = append(list, v)
		}
		return list, nil
	case String:
		return d.said(at), nil
	case Number:
		f, err := strconv.ParseFloat(string(d.read(at)), 64)
		if err != nil {
			return nil, d.outOfRange(at)
		}
		return f, nil
	case Bool:
		return d.text[n.from] == 't', nil
	}
	return nil, nil
}

// whole decodes the number at a node into an integer.
func (d decoder) whole(at int, to reflect.Value) *Error {
	from, raw := int(d.nodes[at].from), d.read(at)
	if d.nodes[at].marks&fraction != 0 {
		const exact = 1 << 53 // beyond it a float is not exact
		f, err := strconv.ParseFloat(string(raw), 64)
		if err != nil || f != math.Trunc(f) || math.Abs(f) > exact {
			return &Error{Offset: from, Problem: fmt.Sprintf("want a whole number, got %s", cut(raw))}
		}
		raw = strconv.AppendInt(nil, int64(f), 10)
	}
	if to.CanInt() {
		if i, err := strconv.ParseInt(string(raw), 10, 64); err == nil && !to.OverflowInt(i) {
			to.SetInt(i)
			return nil
		}
	} else if u, err := strconv.ParseUint(string(raw), 10, 64); err == nil && !to.OverflowUint(u) {
		to.SetUint(u)
		return nil
	}
	low, high := rangeOf(to.Type())
	return &Error{Offset: from, Problem: fmt.Sprintf("want a whole number from %s to %s, got %s", low, high, cut(raw))}
}

func (d decoder) outOfRange(at int) *Error {
	return &Error{Offset: int(d.nodes[at].from), Problem: fmt.Sprintf("number %s is out of range", cut(d.raw(at)))}
}

// leaf returns the error of a value that a type's own method or encoding/json has read.
func (d decoder) leaf(p *plan, at int, err error) *Error {
	if err == nil {
		return nil
	}
	from := int(d.nodes[at].from)
	if p.form == timeForm || p.form == bytesForm {
		return &Error{Offset: from, Problem: fmt.Sprintf("want %s, got %s", p.want(), cut(d.raw(at)))}
	}
	var own *Error
	if errors.As(err, &own) {
		moved := *own
		moved.Offset += from
		return &moved
	}
	var worded interface{ PeerMessage() string }
	if errors.As(err, &worded) {
		return &Error{Offset: from, Problem: worded.PeerMessage()}
	}
	var mismatch *json.UnmarshalTypeError
	if errors.As(err, &mismatch) {
		return &Error{
			Offset:  from + int(mismatch.Offset),
			Path:    mismatch.Field,
			Problem: fmt.Sprintf("want %s, got %s", planOf(mismatch.Type).want(), mismatch.Value),
		}
	}
	return &Error{Offset: from, Problem: string(bytes.TrimPrefix([]byte(err.Error()), []byte("json: ")))}
}

// rangeOf returns the range of an integer type.
func rangeOf(t reflect.Type) (low, high string) {
	bits := t.Bits()
	if reflect.Zero(t).CanUint() {
		return "0", strconv.FormatUint(math.MaxUint64>>(64-bits), 10)
	}
	top := int64(math.MaxInt64) >> (64 - bits)
	return strconv.FormatInt(-top-1, 10), strconv.FormatInt(top, 10)
}

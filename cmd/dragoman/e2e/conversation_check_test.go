package e2e

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dragoman-hub/dragoman/adapters/pirpc"
	"github.com/dragoman-hub/dragoman/schemas"
)

// check compares received frames with those of a step.
func (p *player) check(st *step, received []*jsonValue, anyOrder bool) error {
	want := st.values()
	if anyOrder {
		want = p.bindings.reorder(want, received)
	}
	shown, ok := p.bindings.compareAll(want, received)
	switch {
	case ok:
		return nil
	case p.update:
		st.replace(shown)
		return nil
	}
	text := diff.Diff("want", []byte(prettyAll(want)), "got", []byte(prettyAll(shown)))
	return fmt.Errorf("the received frames differ:\n%s", text)
}

// replace replaces the frames of the step; comments stay.
func (st *step) replace(received []*jsonValue) {
	var frames []stepFrame
	for i, v := range received {
		f := stepFrame{value: v}
		if i < len(st.frames) {
			f.remarks = st.frames[i].remarks
		}
		frames = append(frames, f)
	}
	for _, f := range st.frames[min(len(received), len(st.frames)):] {
		if f.remarks != "" {
			frames = append(frames, stepFrame{remarks: f.remarks})
		}
	}
	st.frames = frames
}

func prettyAll(vs []*jsonValue) string {
	var b strings.Builder
	for _, v := range vs {
		b.WriteString(v.pretty() + "\n")
	}
	return b.String()
}

// checkSchema validates a frame against the schema of its type, if its dialect has one.
func checkSchema(peer string, v *jsonValue) error {
	var schema *schemas.Schema
	dialect, _, _ := strings.Cut(peer, " ")
	switch kind := v.member("kind"); {
	case dialect == "parallax" && v.member("type") != nil:
		schema = schemas.Parallax(v.member("type").text)
	case dialect == "native" && len(v.keys) > 0:
		schema = schemas.Native(v.keys[0])
	case strings.Contains(v.line(), `"sessionUpdate": "hologram"`): // what the protocol does not have passes as it is
	case strings.HasPrefix(dialect, "editor") && v.member("method") != nil && v.member("params") != nil:
		schema, v = schemas.Editor(v.member("method").text), v.member("params")
	case dialect == pirpc.Name && v.member("type") != nil:
		schema = schemas.PiRPC(v.member("type").text)
	case dialect == "acp" && kind != nil:
		schema = schemas.ACP(kind.text)
	}
	if schema == nil {
		return nil
	}
	if err := schema.Validate([]byte(v.line())); err != nil {
		return fmt.Errorf("a received frame violates its schema: %w", err)
	}
	return nil
}

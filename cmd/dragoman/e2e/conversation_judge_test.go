package e2e

import (
	"fmt"
	"strings"

	"github.com/rogpeppe/go-internal/diff"

	"github.com/dragoman-hub/dragoman/schemas"
)

// judge holds frames that came against those of a step.
func (p *storyPlayer) judge(st *storyStep, came []*jsonValue, anyOrder bool) error {
	want := st.values()
	if anyOrder {
		want = p.names.arrange(want, came)
	}
	shown, ok := p.names.compareAll(want, came)
	switch {
	case ok:
		return nil
	case p.update:
		st.replace(shown)
		return nil
	}
	text := diff.Diff("want, as the story tells it", []byte(pagesOf(want)), "got", []byte(pagesOf(shown)))
	return fmt.Errorf("it came otherwise:\n%s", text)
}

// replace puts what came into the step, each frame under the remarks that stood in
// its place.
func (st *storyStep) replace(came []*jsonValue) {
	var frames []storyFrame
	for i, v := range came {
		f := storyFrame{value: v}
		if i < len(st.frames) {
			f.remarks = st.frames[i].remarks
		}
		frames = append(frames, f)
	}
	for _, f := range st.frames[min(len(came), len(st.frames)):] {
		if f.remarks != "" {
			frames = append(frames, storyFrame{remarks: f.remarks})
		}
	}
	st.frames = frames
}

func pagesOf(vs []*jsonValue) string {
	var b strings.Builder
	for _, v := range vs {
		b.WriteString(v.page() + "\n")
	}
	return b.String()
}

// checkSchema holds a frame against the schema of its type, where its dialect has
// one.
func checkSchema(peer string, v *jsonValue) error {
	var schema *schemas.Schema
	dialect, _, _ := strings.Cut(peer, " ")
	switch kind := v.member("kind"); {
	case dialect == "parallax" && v.member("type") != nil:
		schema = schemas.Parallax(v.member("type").text)
	case dialect == "acp" && kind != nil:
		schema = schemas.ACP(kind.text)
	}
	if schema == nil {
		return nil
	}
	if err := schema.Validate([]byte(v.line())); err != nil {
		return fmt.Errorf("what came breaks its schema: %w", err)
	}
	return nil
}

package stdio

import (
	"bytes"
	"errors"
	"io"
	"math/rand/v2"
	"slices"
	"strings"
	"testing"
	"testing/iotest"

	"github.com/dragoman-hub/dragoman/core/link"
)

// lines returns all lines that a splitter returns for r, and the error of each line over the
// limit in angle brackets.
func lines(r io.Reader, limit int) (got []string, end error) {
	s := splitter{r: r, limit: limit}
	for {
		line, err := s.next()
		var over *link.Reject
		switch {
		case errors.As(err, &over):
			got = append(got, "<"+over.Error()+">")
		case err != nil:
			return got, err
		case line == nil:
			return got, errors.New("nil line without an error")
		default:
			got = append(got, string(line))
		}
	}
}

func TestALineEndsAtAnyLineBreak(t *testing.T) {
	for _, tt := range []struct {
		in   string
		want []string
	}{
		{"", nil},
		{"a\nb\n", []string{"a", "b"}},
		{"a\r\nb\r\n", []string{"a", "b"}},
		{"a\rb\r", []string{"a", "b"}},
		{"a\n\nb", []string{"a", "", "b"}},
		{"a\r\r\nb", []string{"a", "", "b"}},
		{"a\n\rb", []string{"a", "", "b"}},
		{"\n", []string{""}},
		{"\r\n", []string{""}},
		{"\n\r\n", []string{"", ""}},
		{"no end", []string{"no end"}},
		{"a\u2028b\u2029c\u0085d\n", []string{"a\u2028b\u2029c\u0085d"}},
		{"\ufeff{}\r\n\ufeff[]\n", []string{"{}", "\ufeff[]"}}, // some programs begin a stream with it
		{"\ufeff{}", []string{"{}"}},
		{"\ufeff", []string{""}},
		{" a \n", []string{" a "}},
		{"12345\n", []string{"12345"}},
		{"123456789\nb\n", []string{"<line of 9 bytes is over the limit of 8>", "b"}},
		{"123456789", []string{"<line of 9 bytes is over the limit of 8>"}},
		{"12345678\r\n", []string{"12345678"}},
	} {
		for name, r := range map[string]io.Reader{
			"at once":      strings.NewReader(tt.in),
			"byte by byte": iotest.OneByteReader(strings.NewReader(tt.in)),
			"with the end": iotest.DataErrReader(strings.NewReader(tt.in)),
		} {
			if got, end := lines(r, 8+9*min(1, strings.Count(tt.in, "\u2028"))); !slices.Equal(got, tt.want) || end != io.EOF {
				t.Errorf("%q %s: got %q and %v, want %q and EOF", tt.in, name, got, end, tt.want)
			}
		}
	}
}

func TestALineIsReturnedAsSoonAsItsEndWasRead(t *testing.T) {
	for _, in := range []string{"a\n", "a\r", "a\r\n"} {
		// Another read would block: the peer waits for an answer.
		s := splitter{r: io.MultiReader(strings.NewReader(in), iotest.ErrReader(errors.New("read on"))), limit: 8}
		if got, err := s.next(); string(got) != "a" || err != nil {
			t.Errorf("%q: got %q %v, want a without another read", in, got, err)
		}
	}
}

func TestALongLineSpansManyReads(t *testing.T) {
	const limit = 100_000
	for _, size := range []int{readBytes - 1, readBytes, readBytes + 1, limit} {
		in := strings.Repeat("x", size)
		if got, _ := lines(strings.NewReader(in+"\nnext\n"), limit); !slices.Equal(got, []string{in, "next"}) {
			t.Errorf("line of %d bytes: got %d lines, want it and the next", size, len(got))
		}
	}
}

func TestALineOverTheLimitIsNotKept(t *testing.T) {
	const limit = 10 << 10
	s := splitter{r: io.LimitReader(endless{}, 64<<20), limit: limit}
	_, err := s.next()
	var over *link.Reject
	if !errors.As(err, &over) || over.Size != 64<<20 || over.Limit != limit || over.Cause != link.TooLarge {
		t.Errorf("a line of 64 MiB: got %v, want it rejected with its size", err)
	}
	if kept := cap(s.line) + cap(s.buf); kept > 4*limit {
		t.Errorf("memory kept: got %d bytes, want about the limit of %d", kept, limit)
	}
}

// endless is a line that never ends.
type endless struct{}

func (endless) Read(p []byte) (int, error) { return len(p), nil }

func TestALostConnectionIsNotTheEndOfALine(t *testing.T) {
	lost := errors.New("lost")
	got, end := lines(io.MultiReader(strings.NewReader("whole\nhalf"), iotest.ErrReader(lost)), 100)
	if !slices.Equal(got, []string{"whole"}) || !errors.Is(end, lost) {
		t.Errorf("cut within a line: got %q and %v, want only the whole line and the error", got, end)
	}
}

func TestAStreamOfEmptyReadsIsAnError(t *testing.T) {
	if _, end := lines(nothing{}, 100); !errors.Is(end, io.ErrNoProgress) {
		t.Errorf("end: got %v, want no progress", end)
	}
}

type nothing struct{}

func (nothing) Read([]byte) (int, error) { return 0, nil }

// FuzzSplit compares the splitter with a simple implementation, for any sizes of reads.
func FuzzSplit(f *testing.F) {
	for _, s := range []string{"", "a\nb", "a\r\nb\rc\n\n", "\r\r\n\n\r", strings.Repeat("x", 20) + "\ny"} {
		f.Add([]byte(s), uint8(9), uint64(1))
	}
	f.Fuzz(func(t *testing.T, in []byte, maximum uint8, seed uint64) {
		limit := int(maximum) + 1
		want := plain(in, limit)
		got, end := lines(&randomReader{in, rand.New(rand.NewPCG(seed, 0))}, limit)
		if !slices.Equal(got, want) || end != io.EOF {
			t.Errorf("%q with limit %d: got %q and %v, want %q and EOF", in, limit, got, end, want)
		}
	})
}

// plain is the simple implementation.
func plain(in []byte, limit int) (want []string) {
	in = bytes.ReplaceAll(in, []byte("\r\n"), []byte("\n"))
	in = bytes.ReplaceAll(in, []byte("\r"), []byte("\n"))
	all := strings.Split(string(in), "\n")
	if last := len(all) - 1; all[last] == "" {
		all = all[:last]
	}
	for _, l := range all {
		if len(l) > limit {
			r := link.Reject{}
			_, err := (&splitter{r: strings.NewReader(l), limit: limit}).next()
			if e := (&r); errors.As(err, &e) {
				r = *e
			}
			if n := min(len(l), 256); r.Size != len(l) || r.Head != l[:n] || r.Tail != l[len(l)-n:] {
				return []string{"wrong size or ends"}
			}
			l = "<" + r.Text + ">"
		}
		want = append(want, l)
	}
	return want
}

// randomReader returns its bytes in random portions.
type randomReader struct {
	b   []byte
	rnd *rand.Rand
}

func (c *randomReader) Read(p []byte) (int, error) {
	if len(c.b) == 0 {
		return 0, io.EOF
	}
	n := copy(p, c.b[:1+c.rnd.IntN(len(c.b))])
	c.b = c.b[n:]
	return n, nil
}

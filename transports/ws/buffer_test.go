package ws

import (
	"bytes"
	"io"
	"math/rand/v2"
	"testing"
)

// portions is a socket that receives the given portions.
type portions struct {
	waiting [][]byte
	largest int // the largest buffer of a Read
}

func (p *portions) Read(b []byte) (int, error) {
	p.largest = max(p.largest, len(b))
	if len(p.waiting) == 0 {
		return 0, io.EOF
	}
	n := copy(b, p.waiting[0])
	if p.waiting[0] = p.waiting[0][n:]; len(p.waiting[0]) == 0 {
		p.waiting = p.waiting[1:]
	}
	return n, nil
}

func TestReceivedBytesAreReturnedUnchanged(t *testing.T) {
	rnd := rand.New(rand.NewPCG(1, 2))
	noise := make([]byte, 1<<20)
	for i := range noise {
		noise[i] = byte(rnd.Uint32())
	}
	for range 200 {
		var want []byte
		var s portions
		for range rnd.IntN(30) {
			from := rnd.IntN(len(noise) / 2)
			b := noise[from : from+1+rnd.IntN([]int{10, 600, 2000, 200_000}[rnd.IntN(4)])]
			s.waiting = append(s.waiting, b)
			want = append(want, b...)
		}
		var in intake
		early := min(len(want), rnd.IntN(100))
		if len(s.waiting) > 0 {
			early = min(early, len(s.waiting[0]))
			s.waiting[0] = s.waiting[0][early:]
		}
		in.early(want[:early])

		var got []byte
		for {
			p := make([]byte, []int{readerBytes, readerBytes, readerBytes, 5000}[rnd.IntN(4)])
			n, err := in.read(&s, p)
			got = append(got, p[:n]...)
			if err != nil {
				break
			}
		}
		if !bytes.Equal(got, want) {
			t.Fatalf("got %d bytes, want the %d that were received", len(got), len(want))
		}
		if in.buf != nil {
			t.Fatal("after the end: got a borrowed buffer, want none")
		}
	}
}

func TestALargeBufferIsBorrowedOnlyForManyBytes(t *testing.T) {
	var in intake
	p := make([]byte, readerBytes)
	read := func(s *portions) {
		for len(s.waiting) > 0 || in.buf != nil {
			if _, err := in.read(s, p); err != nil {
				t.Fatal(err)
			}
		}
	}
	s := &portions{waiting: [][]byte{make([]byte, 100), make([]byte, readerBytes), make([]byte, 200)}}
	read(s)
	if s.largest != readerBytes {
		t.Errorf("largest read of few bytes: got %d, want %d", s.largest, readerBytes)
	}
	s = &portions{waiting: [][]byte{make([]byte, 50_000)}}
	read(s)
	if s.largest < corkBytes {
		t.Errorf("largest read of many bytes: got %d, want %d", s.largest, corkBytes)
	}
	s = &portions{waiting: [][]byte{make([]byte, 100)}}
	read(s)
	if s.largest != readerBytes {
		t.Errorf("largest read after that: got %d, want %d", s.largest, readerBytes)
	}
}

package audit

import (
	"context"
	"time"
)

// Read calls yield for every line that is stored, oldest first, until it returns false: those
// with sequence numbers above after. A line has no line feed and belongs to yield. What was
// audited before the call is among them, unless the store fails.
func (l *Log) Read(ctx context.Context, after uint64, yield func(line []byte) bool) error {
	if err := l.settled(ctx); err != nil {
		return err
	}
	var c repeats
	return l.opts.Store.Replay(ctx, func(_ time.Time, line []byte) bool {
		seq, again := c.next(line)
		if again || seq <= after && after > 0 {
			return true
		}
		return yield(line)
	})
}

// end is the end of a chain.
type end struct {
	seq   uint64
	prev  hash
	clean bool // nothing is missing after it
}

// end finds the end of the chain in the store.
func (l *Log) end(ctx context.Context) (end, error) {
	at := end{clean: true}
	var last []byte
	var c repeats
	err := l.opts.Store.Replay(ctx, func(_ time.Time, line []byte) bool {
		if _, again := c.next(line); !again {
			last = line
		}
		return true
	})
	if err != nil || last == nil {
		return at, err
	}
	line, _ := parse(last)
	return end{c.last, hashOf(last), line.Act == ActStop}, nil
}

// repeats finds lines that are stored twice, because a write seemed to fail. The zero repeats
// is ready. Only the lines of one write are repeated.
type repeats struct {
	last   uint64 // the sequence number of the last line
	hashes [2 * batchLines]hash
}

// next returns the sequence number of the next line, and whether it was there before. A line
// that cannot be read has the number after the last.
func (r *repeats) next(line []byte) (seq uint64, again bool) {
	seq, h := seqOf(line), hashOf(line)
	if seq == 0 {
		seq = r.last + 1
	}
	kept := &r.hashes[seq%uint64(len(r.hashes))]
	if seq <= r.last && *kept == h {
		return seq, true
	}
	r.last, *kept = max(r.last, seq), h
	return seq, false
}

// seqOf returns the sequence number of a line; 0 if it cannot be read.
func seqOf(line []byte) (seq uint64) {
	const head = `{"seq":`
	if len(line) <= len(head) || string(line[:len(head)]) != head || line[len(line)-1] != '}' {
		return 0
	}
	for _, d := range line[len(head):] {
		if d < '0' || d > '9' {
			break
		}
		seq = 10*seq + uint64(d-'0')
	}
	return seq
}

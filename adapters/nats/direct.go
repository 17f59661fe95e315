package nats

import (
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"strconv"
	"time"

	"github.com/nats-io/nats.go"
	"github.com/nats-io/nats.go/jetstream"
)

// message is a message of a stream.
type message struct {
	place   uint64
	at      time.Time
	subject string
	header  nats.Header
	data    []byte
}

// getRequest asks for messages of a stream directly: any replica answers, without an election.
type getRequest struct {
	Seq   uint64    `json:"seq,omitempty"`
	Last  string    `json:"last_by_subj,omitempty"`
	Next  string    `json:"next_by_subj,omitempty"`
	At    time.Time `json:"start_time,omitzero"`
	Batch int       `json:"batch,omitempty"`
	Bytes int       `json:"max_bytes,omitempty"`
}

// from returns the request for one message at a place or after it, for which r asks, too.
func (r getRequest) from(place uint64) getRequest {
	if place == r.Seq {
		return getRequest{Seq: place, Next: r.Next, At: r.At}
	}
	return getRequest{Seq: place, Next: r.Next}
}

const directGet = jetstream.DefaultAPIPrefix + "DIRECT.GET."

// answerTimeout bounds a request to the server, as those of the library.
const answerTimeout = 5 * time.Second

// getFromLeader returns a message of a stream as its leader has it, with all that was acknowledged;
// jetstream.ErrMsgNotFound if there is none. A replica may be behind.
func (j *Journal) getFromLeader(ctx context.Context, stream string, r getRequest) (message, error) {
	ask, err := json.Marshal(r)
	if err != nil {
		return message{}, err
	}
	ctx, cancel := context.WithTimeout(ctx, answerTimeout)
	defer cancel()
	return retry(ctx, j, j.silence(), func(ctx context.Context) (message, error) {
		answer, err := j.conn.RequestWithContext(ctx, jetstream.DefaultAPIPrefix+"STREAM.MSG.GET."+stream, ask)
		if err != nil {
			return message{}, err
		}
		m, err := messageIn(answer.Data)
		return m, j.made(stream, err)
	})
}

// messageIn returns the message in an answer of a leader, or the error in it.
func messageIn(answer []byte) (m message, err error) {
	var found struct {
		Error   *jetstream.APIError `json:"error"`
		Message struct {
			Subject string    `json:"subject"`
			Place   uint64    `json:"seq"`
			Header  []byte    `json:"hdrs"`
			Data    []byte    `json:"data"`
			At      time.Time `json:"time"`
		} `json:"message"`
	}
	switch err := json.Unmarshal(answer, &found); {
	case err != nil:
		return m, fmt.Errorf("reading an answer of the NATS server: %w", err)
	case found.Error != nil && found.Error.ErrorCode == jetstream.JSErrCodeMessageNotFound:
		return m, jetstream.ErrMsgNotFound
	case found.Error != nil:
		return m, found.Error
	}
	m = message{place: found.Message.Place, at: found.Message.At, subject: found.Message.Subject, data: found.Message.Data}
	if len(found.Message.Header) > 0 {
		m.header, err = nats.DecodeHeadersMsg(found.Message.Header)
	}
	return m, err
}

// errTorn is that of a message whose header is not as it was written.
var errTorn = errors.New("the message has no place")

// messageOf returns the message in an answer.
func messageOf(m *nats.Msg) (message, error) {
	if status := m.Header.Get("Status"); status != "" && len(m.Data) == 0 {
		switch status {
		case "404":
			return message{}, jetstream.ErrMsgNotFound
		case "503":
			return message{}, nats.ErrNoResponders
		}
		return message{}, fmt.Errorf("the NATS server answers %s %s", status, m.Header.Get("Description"))
	}
	if m.Header.Get(jetstream.SequenceHeader) == "" {
		return message{}, errTorn
	}
	place, err := strconv.ParseUint(m.Header.Get(jetstream.SequenceHeader), 10, 64)
	at, err2 := time.Parse(time.RFC3339Nano, m.Header.Get(jetstream.TimeStampHeaer))
	if err := errors.Join(err, err2); err != nil {
		return message{}, fmt.Errorf("reading an answer of the NATS server: %w", err)
	}
	return message{place: place, at: at, subject: m.Header.Get(jetstream.SubjectHeader), header: m.Header, data: m.Data}, nil
}

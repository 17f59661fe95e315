package rest

import (
	"bytes"
	"errors"
	"io"
	"mime"
	"net/http"
	"os"
	"strings"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// read decodes the body of a request strictly: one JSON value without duplicate or unknown
// keys. Its error is a Fault that tells the client what to change.
func (a *api) read(c call, v any) error {
	body, err := a.body(c)
	if err != nil {
		return err
	}
	if len(bytes.TrimSpace(body)) == 0 {
		return core.NewFault(core.CodeInvalid, "the body is empty: send a JSON object")
	}
	return decode(body, a.opts.MaxBodyBytes, v)
}

// readIfAny is read for an optional body.
func (a *api) readIfAny(c call, v any) error {
	body, err := a.body(c)
	if err != nil || len(bytes.TrimSpace(body)) == 0 {
		return err
	}
	return decode(body, a.opts.MaxBodyBytes, v)
}

func decode(body []byte, maxBytes int, v any) error {
	if err := strictjson.DecodeKnown(body, strictjson.Limits{Bytes: maxBytes}, v); err != nil {
		return core.NewFault(core.CodeInvalid, "%s", err)
	}
	return nil
}

// body reads the whole body of a request. From then on the server notices when the client
// closes the connection.
func (a *api) body(c call) ([]byte, error) {
	if err := checkContentType(c.r.Header.Get("Content-Type")); err != nil {
		return nil, err
	}
	rc := http.NewResponseController(c.w)
	_ = rc.SetReadDeadline(time.Now().Add(a.opts.WriteTimeout)) // not every ResponseWriter supports it
	limit := int64(a.opts.MaxBodyBytes)
	var body []byte
	var err error
	var over *http.MaxBytesError
	if c.r.ContentLength > limit {
		err = &http.MaxBytesError{Limit: limit} // before a client that waits for 100 sends it
	} else {
		body, err = io.ReadAll(http.MaxBytesReader(c.w, c.r.Body, limit))
	}
	switch {
	case errors.As(err, &over):
		return nil, core.NewFault(core.CodeTooLarge, "the body has more than %d bytes: send less, attachments included, or say where it is (a path, a link); the setting rest.body_bytes sets the limit", over.Limit)
	case errors.Is(err, os.ErrDeadlineExceeded):
		return nil, &refusal{
			err:    core.NewFault(core.CodeTimeout, "the body took longer than %s: send it faster", a.opts.WriteTimeout),
			status: http.StatusRequestTimeout,
		}
	case err != nil:
		return nil, core.NewFault(core.CodeInvalid, "the body could not be read to its end").Because(err)
	}
	// The answer may take longer than the server allows for a request.
	_ = rc.SetReadDeadline(time.Time{})
	return body, nil
}

// checkContentType refuses a body with another content type than JSON. This also refuses
// forms of web pages.
func checkContentType(header string) error {
	if header == "" {
		return nil
	}
	media, _, err := mime.ParseMediaType(header)
	if err == nil && (media == jsonType || strings.HasSuffix(media, "+json")) {
		return nil
	}
	return &refusal{
		err:    core.NewFault(core.CodeUnsupported, "unsupported Content-Type %q: send JSON with Content-Type: application/json", header),
		status: http.StatusUnsupportedMediaType,
	}
}

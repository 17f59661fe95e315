package client

import (
	"bufio"
	"bytes"
	"cmp"
	"context"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
	"strings"
	"sync/atomic"
	"time"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/jsonrpc"
	"github.com/dragoman-hub/dragoman/core/strictjson"
)

// splitURLs returns the addresses in a URL of [Hub], one at least.
func splitURLs(text string) (all []string) {
	for one := range strings.SplitSeq(text, ",") {
		all = append(all, strings.TrimSuffix(strings.TrimSpace(one), "/"))
	}
	return all
}

// Each returns the hubs at the addresses in URL, in order.
func (p Hub) Each() (all []Hub) {
	for _, p.URL = range splitURLs(p.URL) {
		all = append(all, p)
	}
	return all
}

// hubURL parses the address of a hub, which was given in the flag or variable named.
func hubURL(text, named string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, AddressError{Err: fmt.Errorf("%s %q: write it as http://host:port or https://host:port", named, text)}
	}
	return u, nil
}

// CheckURL returns an [AddressError] for a URL that is not that of a hub or of several.
func (p Hub) CheckURL() error {
	wrong := []error{p.Wrong}
	for _, at := range splitURLs(p.URL) {
		_, err := hubURL(at, p.Named)
		wrong = append(wrong, err)
	}
	return cmp.Or(wrong...)
}

// AddressError means that the address of a hub is malformed.
type AddressError struct{ Err error }

// Error implements error.
func (e AddressError) Error() string { return e.Err.Error() }

// Unwrap returns the cause.
func (e AddressError) Unwrap() error { return e.Err }

// Client calls the REST interface of a hub, or of the first hub of several that answers.
type Client struct {
	URL    string // as in Hub
	hub    Hub
	HTTP   *http.Client
	Header http.Header  // sent with every request, besides those of the client
	broken error        // why HTTP could not be made
	at     atomic.Int32 // which of several URLs has answered
}

// Client returns a client of the hub.
func (p Hub) Client() *Client {
	c := &Client{URL: strings.TrimSuffix(p.URL, "/"), hub: p}
	if c.HTTP, c.broken = p.httpClient(); c.broken != nil {
		c.HTTP = http.DefaultClient
	}
	return c
}

// Do sends a request and returns a successful response. accept is its wanted media type. A
// refusal of the hub is a Refusal. Of several hubs the next one is asked where one does not answer or does
// not serve yet, unless it may have taken the request.
func (c *Client) Do(ctx context.Context, method, path, accept string, body any) (*http.Response, error) {
	return c.doWithin(ctx, 0, method, path, accept, body)
}

// doWithin is Do for a hub that answers within a time; 0 for any time.
func (c *Client) doWithin(ctx context.Context, limit time.Duration, method, path, accept string, body any) (*http.Response, error) {
	var send []byte
	if body != nil {
		var err error
		if send, err = json.Marshal(body); err != nil {
			return nil, err
		}
	}
	urls := splitURLs(c.URL)
	first := int(c.at.Load())
	for i := 0; ; i++ {
		n := (first + i) % len(urls)
		resp, err := c.do(ctx, urls[n], limit, method, path, accept, send)
		if err == nil || i == len(urls)-1 || !IsNoHub(err) || method != http.MethodGet && !isUntaken(err) {
			c.at.Store(int32(n))
			return resp, err
		}
	}
}

// expectBytes is the size of a body above which the hub is asked first whether it takes it: an answer to a body that is
// still being sent may be lost.
const expectBytes = 1 << 20

// errSilent ends a request to a hub that does not answer in time.
var errSilent = errors.New("the hub does not answer")

// do sends a request to the hub at a URL.
func (c *Client) do(ctx context.Context, at string, limit time.Duration, method, path, accept string, body []byte) (*http.Response, error) {
	err := c.hub.Wrong
	var u *url.URL
	if err == nil {
		u, err = hubURL(at, c.hub.Named)
	}
	if err == nil {
		err = cmp.Or(c.broken, c.hub.guardToken(u.Scheme == "https", u.Hostname()))
	}
	if err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, at+path, bytes.NewReader(body))
	if err != nil {
		return nil, err
	}
	for name, values := range c.Header {
		r.Header[name] = values
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", accept)
	if len(body) > expectBytes {
		r.Header.Set("Expect", "100-continue")
	}
	if c.hub.Token != "" {
		r.Header.Set("Authorization", "Bearer "+c.hub.Token)
	}
	resp, err := c.send(r, limit)
	switch {
	case errors.Is(err, errSilent):
		return nil, unavailable{error: fmt.Errorf("the hub at %s has not answered within %s, as one that is stopped or overloaded: try again, or name another with %s", at, limit, c.hub.Named)}
	case err != nil:
		return nil, unreachable(at, c.hub.Named, err)
	}
	if resp.StatusCode >= 300 {
		defer resp.Body.Close()
		return nil, c.problem(at, resp)
	}
	return resp, nil
}

// send sends a request. It returns errSilent if no answer begins within a time; 0 is any time.
func (c *Client) send(r *http.Request, limit time.Duration) (*http.Response, error) {
	if limit <= 0 {
		return c.HTTP.Do(r)
	}
	ctx, cancel := context.WithCancelCause(r.Context())
	timer := time.AfterFunc(limit, func() { cancel(errSilent) })
	resp, err := c.HTTP.Do(r.WithContext(ctx))
	if timer.Stop() && err == nil {
		resp.Body = endingBody{resp.Body, cancel}
		return resp, nil
	}
	if errors.Is(context.Cause(ctx), errSilent) {
		err = errSilent
	}
	if resp != nil {
		resp.Body.Close()
	}
	cancel(nil)
	return nil, err
}

// endingBody ends its request when it is closed.
type endingBody struct {
	io.ReadCloser
	end context.CancelCauseFunc
}

// Close implements io.Closer.
func (b endingBody) Close() error {
	defer b.end(nil)
	return b.ReadCloser.Close()
}

// What the hub says of a token without more to say of it, in the words of Parallax.
const (
	badToken     = "Invalid authentication token"
	expiredToken = "Token has expired"
)

// problem returns the error of a response that is not a success.
func (c *Client) problem(at string, resp *http.Response) error {
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // an incomplete body is no problem document
	p, ok := readProblem(resp.StatusCode, b)
	if !ok {
		if err := explainTLS(at, c.hub.Named, string(b)); err != nil {
			return err
		}
		return NotHub(at, c.hub.Named, resp.Status)
	}
	if p.Code == core.CodeUnknownAgent || p.Code == core.CodeUnknownDomain {
		p.Detail += "; 'dragoman agents -o wide' lists who is here"
	}
	f := core.NewFault(p.Code, "%s", p.Detail)
	if p.Code == core.CodeUnauthenticated {
		f = c.hub.refused(p.Detail)
		if why := strings.TrimPrefix(p.Detail, badToken+": "); c.hub.Token != "" && c.hub.Cert == "" && why != badToken && why != expiredToken {
			f = core.NewFault(p.Code, "the hub refuses the token: %s", why) // of a JSON Web Token it says why
		}
	}
	if resp.StatusCode == http.StatusServiceUnavailable {
		switch {
		case p.Code == core.CodeOverloaded && resp.Header.Get("Retry-After") != "":
			return unavailable{error: Refusal{f}, untaken: true} // the hub starts, or has no room for it
		case p.Code == core.CodeUnreachable:
			return unavailable{error: Refusal{f}} // it stops, or is drained
		}
	}
	return Refusal{f}
}

// problem is why the hub refuses a request.
type problem struct {
	Detail string    `json:"detail"`
	Code   core.Code `json:"code"`
}

// readProblem reads the body of a refusal: a problem document, or the error of MCP, whose code the status tells.
func readProblem(status int, body []byte) (p problem, ok bool) {
	if m, bad := jsonrpc.Read(body, strictjson.Limits{}); bad == nil && m.Err != nil {
		p.Detail = m.Err.Message
		switch status {
		case http.StatusUnauthorized:
			p.Code, p.Detail = core.CodeUnauthenticated, badToken
		case http.StatusForbidden:
			p.Code = core.CodeNotAuthorized
		case http.StatusRequestEntityTooLarge:
			p.Code = core.CodeTooLarge
		case http.StatusTooManyRequests, http.StatusServiceUnavailable:
			p.Code = core.CodeOverloaded
		default:
			p.Code = core.CodeInvalid
		}
		return p, true
	}
	return p, json.Unmarshal(body, &p) == nil && p.Code != ""
}

// Refusal is a Fault of the hub whose error text omits the code.
type Refusal struct{ *core.Fault }

// Error implements error.
func (r Refusal) Error() string { return r.Message }

// Unwrap returns the Fault.
func (r Refusal) Unwrap() error { return r.Fault }

// Get decodes a document, which a hub has at once: one that begins no answer within [ResponseTimeout] is
// treated as absent.
func (c *Client) Get(ctx context.Context, path string, v any) error {
	resp, err := c.doWithin(ctx, ResponseTimeout, http.MethodGet, path, "application/json", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

// Gap is a part of a stream of events that is no longer kept: From to To of a task, or to its end
// if To is zero; or what came after a task.
type Gap struct {
	Task     core.TaskID
	From, To uint64
	After    core.TaskID
}

// Line is one line of a stream of events.
type Line struct {
	ID       string // the position in the stream of all tasks
	Task     core.TaskID
	Cursor   core.Cursor
	Gap      *Gap
	Shutdown *struct{ Reason string }
	Error    *struct{ Detail string } // why the hub ends the stream here
	core.Event
}

// UnmarshalJSON implements json.Unmarshaler; core.Event's would decode the event alone.
func (l *Line) UnmarshalJSON(b []byte) error {
	var head struct {
		ID       string
		Task     core.TaskID
		Cursor   core.Cursor
		Gap      *Gap
		Shutdown *struct{ Reason string }
		Error    *struct{ Detail string }
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	l.ID, l.Task, l.Cursor, l.Gap, l.Shutdown, l.Error = head.ID, head.Task, head.Cursor, head.Gap, head.Shutdown, head.Error
	if l.Gap != nil || l.Shutdown != nil || l.Error != nil {
		return nil
	}
	return l.Event.UnmarshalJSON(b)
}

// ResponseTimeout is how long a command waits for a response that should be immediate.
const ResponseTimeout = 10 * time.Second

// NDJSON is the media type of a stream of events, one JSON object per line.
const NDJSON = "application/x-ndjson"

// Follow reads a stream of events to its end and calls take with each line, and with its
// text. It returns what take returned, or errCut if the connection was lost or the hub says why it
// ends the stream.
func Follow(resp *http.Response, take func(l Line, raw []byte) error) error {
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		raw, err := r.ReadBytes('\n')
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			var l Line
			if err := json.Unmarshal(raw, &l); err != nil {
				return fmt.Errorf("the hub sent a line that is not an event: %w", err)
			}
			if l.Error != nil {
				return fmt.Errorf("%w: the hub says: %s", errCut, l.Error.Detail)
			}
			if err := take(l, raw); err != nil {
				return err
			}
		}
		switch {
		case errors.Is(err, io.EOF):
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errCut, err)
		}
	}
}

var errCut = errors.New("the connection to the hub was cut off")

// IsCut reports whether an error of Follow means that the connection was lost.
func IsCut(err error) bool { return errors.Is(err, errCut) }

// CutOff returns the error of a stream of events that ended too early, with what to do next.
// err is what Follow returned.
func CutOff(err error, then string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%w: the hub has gone, or it no longer accepts your token; %s", errCut, then)
	case errors.Is(err, errCut):
		return fmt.Errorf("%w; %s", err, then)
	}
	return err
}

// TailHint is the text on how to follow a task.
func TailHint(task core.TaskID) string {
	return fmt.Sprintf("'dragoman tail %s' shows what becomes of the task", task)
}

// Post sends a document and decodes the response.
func (c *Client) Post(ctx context.Context, path string, body, v any) error {
	return c.Send(ctx, http.MethodPost, path, body, v)
}

// Send is Post for any method.
func (c *Client) Send(ctx context.Context, method, path string, body, v any) error {
	resp, err := c.Do(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

// TaskPath returns a path below that of a task.
func TaskPath(id core.TaskID, what string) string {
	return "/v1/tasks/" + url.PathEscape(string(id)) + "/" + what
}

// Cancel asks the hub to cancel a task and returns its state.
func (c *Client) Cancel(ctx context.Context, id core.TaskID, reason string) (state string, err error) {
	var task struct{ State string }
	err = c.Post(ctx, TaskPath(id, "cancel"), map[string]string{"reason": reason}, &task)
	return task.State, err
}

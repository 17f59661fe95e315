package main

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
	"os"
	"strings"
	"time"

	"github.com/spf13/pflag"

	"github.com/dragoman-hub/dragoman/core"
)

// hubPlace are the flags that say where the hub is.
type hubPlace struct {
	hub, token, grpc string

	named func() string // where the address of the hub stands
}

// hubFlags declares the flags of every command that talks to a hub.
func hubFlags(fs *pflag.FlagSet) *hubPlace {
	p := &hubPlace{}
	const variable, flag = "DRAGOMAN_HUB", "hub"
	fromEnviron := os.Getenv(variable)
	fs.StringVar(&p.hub, flag, cmp.Or(fromEnviron, "http://127.0.0.1:8080"), "`address` of the hub (DRAGOMAN_HUB)")
	p.named = func() string {
		if fromEnviron != "" && !fs.Changed(flag) {
			return variable
		}
		return "--" + flag
	}
	fs.StringVar(&p.token, "token", os.Getenv("DRAGOMAN_TOKEN"), "`token` to authenticate with (DRAGOMAN_TOKEN)")
	fs.Lookup("token").DefValue = "" // a help text shows no secret
	return p
}

func (p *hubPlace) place() place {
	return place{http: p.hub, named: p.named(), grpc: p.grpc, token: p.token}
}

// hubURL reads the address of a hub, which stands in the flag or variable named.
func hubURL(text, named string) (*url.URL, error) {
	u, err := url.Parse(strings.TrimSuffix(text, "/"))
	if err != nil || u.Host == "" || u.Scheme != "http" && u.Scheme != "https" {
		return nil, &exit{exitUsage, fmt.Errorf("%s %q: write it as http://host:port", named, text)}
	}
	return u, nil
}

// client speaks the REST interface of a hub.
type client struct {
	base  string
	named string // where base stands, for errors
	token string
	http  *http.Client
}

func (p *hubPlace) client() *client { return p.place().client() }

func (p place) client() *client {
	return &client{base: strings.TrimSuffix(p.http, "/"), named: p.named, token: p.token, http: &http.Client{}}
}

// do sends a request and returns the answer when it is a success. accept is the
// form that is wanted.
func (c *client) do(ctx context.Context, method, path, accept string, body any) (*http.Response, error) {
	var send io.Reader
	if body != nil {
		b, err := json.Marshal(body)
		if err != nil {
			return nil, err
		}
		send = bytes.NewReader(b)
	}
	if _, err := hubURL(c.base, c.named); err != nil {
		return nil, err
	}
	r, err := http.NewRequestWithContext(ctx, method, c.base+path, send)
	if err != nil {
		return nil, err
	}
	if body != nil {
		r.Header.Set("Content-Type", "application/json")
	}
	r.Header.Set("Accept", accept)
	if c.token != "" {
		r.Header.Set("Authorization", "Bearer "+c.token)
	}
	resp, err := c.http.Do(r)
	if err != nil {
		return nil, unreachable(c.base, c.named, err)
	}
	if resp.StatusCode >= 400 {
		defer resp.Body.Close()
		return nil, c.problem(resp)
	}
	return resp, nil
}

// problem makes an error of a refusal.
func (c *client) problem(resp *http.Response) error {
	var p struct {
		Title  string    `json:"title"`
		Detail string    `json:"detail"`
		Code   core.Code `json:"code"`
	}
	b, _ := io.ReadAll(io.LimitReader(resp.Body, 64<<10)) // what came is told, whole or not
	if json.Unmarshal(b, &p) != nil || p.Code == "" {
		return elsewhere(c.base, c.named, resp.Status)
	}
	if p.Code == core.CodeUnknownAgent || p.Code == core.CodeUnknownDomain {
		p.Detail += "; 'dragoman agents -o wide' lists who is here"
	}
	f := core.NewFault(p.Code, "%s", p.Detail)
	if p.Code == core.CodeUnauthenticated {
		f = wantsToken(c.token)
	}
	return &exit{codeOf(f), refusal{f}}
}

// refusal is a Fault of the hub as a person reads it: without its code.
type refusal struct{ *core.Fault }

// Error implements error.
func (r refusal) Error() string { return r.Message }

// Unwrap returns the Fault.
func (r refusal) Unwrap() error { return r.Fault }

// codeOf is the exit code of a fault.
func codeOf(f *core.Fault) int {
	switch f.Code {
	case core.CodeTimeout:
		return exitTimeout
	case core.CodeInvalid:
		return exitUsage
	}
	return exitFailed
}

// get reads a document.
func (c *client) get(ctx context.Context, path string, v any) error {
	resp, err := c.do(ctx, http.MethodGet, path, "application/json", nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

// line is one line of a stream of events.
type line struct {
	Task     core.TaskID `json:"task"`
	Cursor   core.Cursor `json:"cursor"`
	Gap      *struct{ From, To uint64 }
	Shutdown *struct{ Reason string }
	core.Event
}

// UnmarshalJSON reads a line; core.Event would otherwise read it all.
func (l *line) UnmarshalJSON(b []byte) error {
	var head struct {
		Task     core.TaskID `json:"task"`
		Cursor   core.Cursor `json:"cursor"`
		Gap      *struct{ From, To uint64 }
		Shutdown *struct{ Reason string }
	}
	if err := json.Unmarshal(b, &head); err != nil {
		return err
	}
	l.Task, l.Cursor, l.Gap, l.Shutdown = head.Task, head.Cursor, head.Gap, head.Shutdown
	if l.Gap != nil || l.Shutdown != nil {
		return nil
	}
	return l.Event.UnmarshalJSON(b)
}

// patience is how long a command waits for what should be quick.
const patience = 10 * time.Second

const jsonLines = "application/x-ndjson"

// follow reads a stream of events line by line, to its end. raw is the line as it
// came. It returns errCut when the connection was, and what take returned.
func follow(resp *http.Response, take func(l line, raw []byte) error) error {
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		raw, err := r.ReadBytes('\n')
		if raw = bytes.TrimSpace(raw); len(raw) > 0 {
			var l line
			if err := json.Unmarshal(raw, &l); err != nil {
				return fmt.Errorf("the hub sent a line that is no event: %w", err)
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

// cutOff says of a stream of events that ended too early what to do next. err is
// what follow returned.
func cutOff(err error, then string) error {
	switch {
	case err == nil:
		return fmt.Errorf("%w: the hub has gone; %s", errCut, then)
	case errors.Is(err, errCut):
		return fmt.Errorf("%w; %s", err, then)
	}
	return err
}

// goOn is how to hear what becomes of a task.
func goOn(task core.TaskID) string {
	return fmt.Sprintf("'dragoman tail %s' shows what becomes of the task", task)
}

// post sends a document and reads the one that answers it.
func (c *client) post(ctx context.Context, path string, body, v any) error {
	return c.send(ctx, http.MethodPost, path, body, v)
}

// send is post for any method.
func (c *client) send(ctx context.Context, method, path string, body, v any) error {
	resp, err := c.do(ctx, method, path, "application/json", body)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	return json.NewDecoder(resp.Body).Decode(v)
}

// taskPath is where something of a task is.
func taskPath(id core.TaskID, what string) string {
	return "/v1/tasks/" + url.PathEscape(string(id)) + "/" + what
}

// cancel asks the hub to stop a task and returns where that leaves it.
func (c *client) cancel(ctx context.Context, id core.TaskID, reason string) (state string, err error) {
	var task struct{ State string }
	err = c.post(ctx, taskPath(id, "cancel"), map[string]string{"reason": reason}, &task)
	return task.State, err
}

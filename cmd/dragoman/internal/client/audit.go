package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
	"net/url"
)

// Audit calls take with every line of the audit of a hub, "" for the one that is asked, oldest first
// and without its line feed; the line is valid during the call. It returns the name of the hub, ""
// for a hub alone, and what take returned.
func (c *Client) Audit(ctx context.Context, of string, take func(line []byte) error) (hub string, err error) {
	path := "/v1/audit"
	if of != "" {
		path += "?hub=" + url.QueryEscape(of)
	}
	resp, err := c.Do(ctx, http.MethodGet, path, NDJSON, nil)
	if err != nil {
		return "", err
	}
	hub = resp.Header.Get("Dragoman-Hub")
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return hub, nil
		case err != nil:
			return hub, fmt.Errorf("%w: %w", errCut, err)
		}
		if err := take(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return hub, err
		}
	}
}

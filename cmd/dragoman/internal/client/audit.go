package client

import (
	"bufio"
	"bytes"
	"context"
	"errors"
	"fmt"
	"io"
	"net/http"
)

// Audit calls take with every line of the audit, oldest first and without its line feed; the
// line is valid during the call. It returns what take returned.
func (c *Client) Audit(ctx context.Context, take func(line []byte) error) error {
	resp, err := c.Do(ctx, http.MethodGet, "/v1/audit", NDJSON, nil)
	if err != nil {
		return err
	}
	defer resp.Body.Close()
	r := bufio.NewReaderSize(resp.Body, 64<<10)
	for {
		line, err := r.ReadBytes('\n')
		switch {
		case errors.Is(err, io.EOF) && len(line) == 0:
			return nil
		case err != nil:
			return fmt.Errorf("%w: %w", errCut, err)
		}
		if err := take(bytes.TrimSuffix(line, []byte("\n"))); err != nil {
			return err
		}
	}
}

package rest

import (
	"mime"
	"net/http"
	"net/url"
	"slices"
	"strconv"
	"strings"

	"github.com/dragoman-hub/dragoman/core"
	"github.com/dragoman-hub/dragoman/core/suggest"
)

// negotiate returns the offer that the Accept header of the client names with the greatest
// weight, the first of several. If it names none, it returns the first offer.
func negotiate(r *http.Request, offers ...string) string {
	best, weight := offers[0], 0.0
	for _, header := range r.Header.Values("Accept") {
		for entry := range strings.SplitSeq(header, ",") {
			media, params, err := mime.ParseMediaType(entry)
			if err != nil {
				continue
			}
			q := 1.0
			if text, ok := params["q"]; ok {
				if q, err = strconv.ParseFloat(text, 64); err != nil {
					continue
				}
			}
			for _, o := range offers {
				if media == o && q > weight {
					best, weight = o, q
				}
			}
		}
	}
	return best
}

// checkParameters refuses a query that cannot be read or has a parameter that is not known: what
// a misspelt filter leaves out would be taken for its answer.
func checkParameters(r *http.Request, known []string) error {
	given, err := url.ParseQuery(r.URL.RawQuery)
	if err != nil {
		return core.NewFault(core.CodeInvalid, "the query cannot be read: %s", strings.ReplaceAll(err.Error(), "\n", " "))
	}
	var unknown []string
	for name := range given {
		if !slices.Contains(known, name) {
			unknown = append(unknown, name)
		}
	}
	if len(unknown) == 0 {
		return nil
	}
	name := slices.Min(unknown)
	shown := strconv.Quote(name[:min(len(name), 64)])
	if near := suggest.Nearest(name, known); near != "" {
		return core.NewFault(core.CodeInvalid, "unknown query parameter %s: did you mean %s?", shown, near)
	}
	if len(known) == 0 {
		return core.NewFault(core.CodeInvalid, "unknown query parameter %s: this path has none", shown)
	}
	return core.NewFault(core.CodeInvalid, "unknown query parameter %s: use %s", shown, strings.Join(known, ", "))
}

// flag reads a boolean query parameter; without a value it is true.
func flag(r *http.Request, name string, otherwise bool) (bool, error) {
	q := r.URL.Query()
	if !q.Has(name) {
		return otherwise, nil
	}
	text := q.Get(name)
	if text == "" {
		return true, nil
	}
	v, err := strconv.ParseBool(text)
	if err != nil {
		return false, core.NewFault(core.CodeInvalid, "?%s=%s: send true or false", name, text)
	}
	return v, nil
}

// number reads a query parameter that is a number from 1 to maximum; if it is absent or empty,
// number returns otherwise.
func number(r *http.Request, name string, otherwise, maximum int) (int, error) {
	text := r.URL.Query().Get(name)
	if text == "" {
		return otherwise, nil
	}
	n, err := strconv.Atoi(text)
	if err != nil || n < 1 || n > maximum {
		return 0, core.NewFault(core.CodeInvalid, "?%s=%s: send a number from 1 to %d", name, text, maximum)
	}
	return n, nil
}

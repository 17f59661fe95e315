package console

import (
	"bytes"
	"crypto/sha256"
	"embed"
	"encoding/hex"
	"fmt"
	"io/fs"
	"net/http"
	"path"
	"strings"
	"time"
)

// Root is the path of the page, and Files that of everything it loads.
const (
	Root  = "/"
	Files = "/console/"
)

// Policy is the Content-Security-Policy of the page: it loads nothing but its own files, runs no
// inline script, reads no text as HTML, and talks to its own hub alone.
const Policy = "default-src 'none'; script-src 'self'; style-src 'self'; connect-src 'self'; img-src 'self' data:; " +
	"base-uri 'none'; form-action 'self'; frame-ancestors 'none'; require-trusted-types-for 'script'; trusted-types 'none'"

// document is the one page; the views are in its URL's fragment.
const document = "index.html"

//go:embed files
var embedded embed.FS

// types are the media types of the files, by extension. The machine's own table is not asked.
var types = map[string]string{
	".html": "text/html; charset=utf-8",
	".js":   "text/javascript; charset=utf-8",
	".css":  "text/css; charset=utf-8",
	".svg":  "image/svg+xml",
	".txt":  "text/plain; charset=utf-8",
}

// asset is a file in memory.
type asset struct {
	text      []byte
	mediaType string
	tag       string
}

// assets reads the embedded files, which cannot fail.
func assets() map[string]asset {
	all := map[string]asset{}
	_ = fs.WalkDir(embedded, "files", func(p string, d fs.DirEntry, _ error) error {
		if d.IsDir() {
			return nil
		}
		text, err := embedded.ReadFile(p)
		if err != nil {
			return err
		}
		sum := sha256.Sum256(text)
		all[strings.TrimPrefix(p, "files/")] = asset{text, types[path.Ext(p)], fmt.Sprintf("%q", hex.EncodeToString(sum[:8]))}
		return nil
	})
	return all
}

// New returns the handler of the page and its files. It answers 404 for a name
// that it does not have.
func New() http.Handler {
	all := assets()
	return http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		name := strings.TrimPrefix(r.URL.Path, Files)
		if r.URL.Path == Root || name == "" {
			name = document
		}
		a, ok := all[name]
		if !ok {
			http.Error(w, "the console has no such file", http.StatusNotFound)
			return
		}
		h := w.Header()
		h.Set("Content-Type", a.mediaType)
		h.Set("Content-Security-Policy", Policy)
		h.Set("X-Content-Type-Options", "nosniff")
		h.Set("Referrer-Policy", "no-referrer")
		h.Set("Cross-Origin-Opener-Policy", "same-origin")
		h.Set("Cross-Origin-Resource-Policy", "same-origin")
		// A hub of another version must not run with the files of this one.
		h.Set("Cache-Control", "no-cache")
		h.Set("ETag", a.tag)
		http.ServeContent(w, r, name, time.Time{}, bytes.NewReader(a.text))
	})
}

package console_test

import (
	"io/fs"
	"net/http"
	"net/http/httptest"
	"os"
	"path"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/dragoman-hub/dragoman/adapters/console"
)

// maxBytes is the size of all files together, uncompressed.
const maxBytes = 600 << 10

func get(t *testing.T, target string, headers ...string) *httptest.ResponseRecorder {
	t.Helper()
	r := httptest.NewRequestWithContext(t.Context(), http.MethodGet, target, nil)
	for i := 0; i < len(headers); i += 2 {
		r.Header.Set(headers[i], headers[i+1])
	}
	w := httptest.NewRecorder()
	console.New().ServeHTTP(w, r)
	return w
}

func TestThePageAndItsFilesAreServedUnderTheirPolicy(t *testing.T) {
	types := map[string]string{".html": "text/html; charset=utf-8", ".js": "text/javascript; charset=utf-8", ".css": "text/css; charset=utf-8", ".svg": "image/svg+xml", ".txt": "text/plain; charset=utf-8"}
	targets := map[string]string{console.Root: ".html", console.Files: ".html"}
	for _, name := range console.Names() {
		targets[console.Files+name] = path.Ext(name)
	}
	for target, ext := range targets {
		w := get(t, target)
		if w.Code != http.StatusOK || w.Body.Len() == 0 {
			t.Errorf("%s: got %d and %d bytes, want it served", target, w.Code, w.Body.Len())
		}
		for header, want := range map[string]string{
			"Content-Type": types[ext], "Content-Security-Policy": console.Policy, "X-Content-Type-Options": "nosniff",
			"Referrer-Policy": "no-referrer", "Cache-Control": "no-cache",
		} {
			if got := w.Header().Get(header); got != want || want == "" {
				t.Errorf("%s: got %s %q, want %q", target, header, got, want)
			}
		}
		if again := get(t, target, "If-None-Match", w.Header().Get("ETag")); again.Code != http.StatusNotModified || again.Body.Len() != 0 {
			t.Errorf("%s with its tag: got %d, want 304", target, again.Code)
		}
	}
}

func TestAFileThatIsNotThereIsNotFound(t *testing.T) {
	for _, target := range []string{"/console/none.js", "/console/../console.go", "/console/files/app.js", "/console//app.js", "/console/%2e%2e/app.js"} {
		if w := get(t, target); w.Code != http.StatusNotFound {
			t.Errorf("%s: got %d, want 404", target, w.Code)
		}
	}
}

func TestThePolicyAllowsNothingButTheHubItself(t *testing.T) {
	policy := console.Policy
	for _, want := range []string{"default-src 'none'", "script-src 'self'", "connect-src 'self'", "base-uri 'none'", "frame-ancestors 'none'", "require-trusted-types-for 'script'", "trusted-types 'none'"} {
		if !strings.Contains(policy, want) {
			t.Errorf("got the policy %q, want %q in it", policy, want)
		}
	}
	if strings.Contains(policy, "unsafe") {
		t.Errorf("got the policy %q, want nothing unsafe", policy)
	}
}

// files returns the text of each file in the repository.
func files(t *testing.T) map[string]string {
	t.Helper()
	all := map[string]string{}
	err := fs.WalkDir(os.DirFS("files"), ".", func(name string, d fs.DirEntry, err error) error {
		if err != nil || d.IsDir() {
			return err
		}
		text, err := os.ReadFile(path.Join("files", name))
		all[name] = string(text)
		return err
	})
	if err != nil {
		t.Fatal(err)
	}
	return all
}

func TestEveryFileIsEmbeddedAndReferencedAndEveryReferenceIsThere(t *testing.T) {
	reference := regexp.MustCompile(`(?:from '\./|(?:href|src)="/console/)([^'"]+)['"]`)
	all := files(t)
	referenced := map[string]bool{"index.html": true}
	for name, text := range all {
		if !slices.Contains(console.Names(), name) {
			t.Errorf("%s is not embedded", name)
		}
		for _, m := range reference.FindAllStringSubmatch(text, -1) {
			referenced[m[1]] = true
			if _, ok := all[m[1]]; !ok {
				t.Errorf("%s loads %s, which is not there", name, m[1])
			}
		}
	}
	for name := range all {
		if path.Ext(name) == ".js" && !strings.Contains(all["index.html"], console.Files+name) {
			t.Errorf("index.html does not preload %s, which costs a round trip", name)
		}
		if !referenced[name] {
			t.Errorf("%s is loaded by no other file", name)
		}
	}
}

func TestTheFilesAreSmall(t *testing.T) {
	total := 0
	for _, text := range files(t) {
		total += len(text)
	}
	if total > maxBytes {
		t.Errorf("got %d bytes, want at most %d", total, maxBytes)
	}
}

// What agents and clients say is untrusted: it becomes text nodes, never markup or code.
func TestNoTextBecomesMarkupOrCode(t *testing.T) {
	unsafe := regexp.MustCompile(`innerHTML|outerHTML|insertAdjacentHTML|document\.write|DOMParser|createContextualFragment|setHTML|srcdoc|\beval\b|new Function|javascript:|import\([^']|import\('[^.]|new EventSource|\son\w+="`)
	elsewhere := regexp.MustCompile(`(https?:)?//[a-z0-9.-]+\.[a-z]{2,}`)
	for name, text := range files(t) {
		if strings.HasPrefix(name, "vendor.") {
			continue // the libraries of others could make HTML, which is not called, and which the policy refuses
		}
		if found := unsafe.FindAllString(text, -1); found != nil {
			t.Errorf("%s: got %q, want none of it", name, found)
		}
		for _, found := range elsewhere.FindAllString(text, -1) {
			if found != "http://www.w3.org" && found != "https://html.spec.whatwg.org" {
				t.Errorf("%s: got the address %s, want nothing from elsewhere", name, found)
			}
		}
		if path.Ext(name) == ".html" && regexp.MustCompile(`(?s)<script[^>]*>[^<]|<style|\sstyle=`).MatchString(text) {
			t.Errorf("%s: got an inline script or style, want none: the policy refuses it", name)
		}
	}
}

package e2e

import (
	"bufio"
	"bytes"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"image"
	"image/png"
	"os"
	"os/exec"
	"path/filepath"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/dragoman-hub/dragoman/core/coretest/tier"
)

// browser is a Chromium without a window, driven by the DevTools protocol over two pipes: a message
// is JSON and ends with a zero byte (https://chromedevtools.github.io/devtools-protocol/).
type browser struct {
	*testing.T
	origin string // of the hub; a request to anywhere else is a complaint

	in         *os.File
	mu         sync.Mutex
	last       int
	waiting    map[int]chan devtools
	complaints []string
}

// devtools is a message of the protocol.
type devtools struct {
	ID        int             `json:"id,omitempty"`
	SessionID string          `json:"sessionId,omitempty"`
	Method    string          `json:"method,omitempty"`
	Params    json.RawMessage `json:"params,omitempty"`
	Result    json.RawMessage `json:"result,omitempty"`
	Error     *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
}

// chromiums are the names of the program, by distribution.
var chromiums = []string{"chromium", "chromium-browser", "google-chrome", "chrome"}

// newBrowser starts a browser for the pages of a hub. A violation of the policy of a page, an error of
// its scripts and a request that leaves the hub fail the test.
func newBrowser(t *testing.T, origin string) *browser {
	t.Helper()
	tier.Full(t, "it opens a browser")
	var path string
	for _, name := range chromiums {
		if found, err := exec.LookPath(name); err == nil {
			path = found
			break
		}
	}
	if path == "" {
		notRun(t, "it needs Chromium: .ci/chromium installs Debian's package")
	}
	theirIn, in, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	out, theirOut, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	// The sandbox wants rights that containers lack; the page is our own.
	cmd := exec.Command(path, "--headless=new", "--no-sandbox", "--disable-gpu", "--disable-dev-shm-usage", "--no-first-run", "--disable-background-networking",
		"--disable-component-update", "--disable-sync", "--disable-extensions", "--window-size=1200,900", "--user-data-dir="+t.TempDir(), "--remote-debugging-pipe", "about:blank")
	cmd.ExtraFiles = []*os.File{theirIn, theirOut}
	cmd.WaitDelay = time.Second
	if err := cmd.Start(); err != nil {
		t.Fatal(err)
	}
	theirIn.Close()
	theirOut.Close()
	b := &browser{T: t, origin: origin, in: in, waiting: map[int]chan devtools{}}
	read := make(chan struct{})
	go func() {
		defer close(read)
		b.read(out)
	}()
	t.Cleanup(func() {
		_, _ = b.send(devtools{Method: "Browser.close"})
		in.Close()
		ended := make(chan struct{})
		go func() { _ = cmd.Wait(); close(ended) }()
		select {
		case <-ended:
		case <-time.After(10 * time.Second):
			_ = cmd.Process.Kill()
			<-ended
		}
		out.Close()
		<-read
		b.mu.Lock()
		defer b.mu.Unlock()
		for _, c := range b.complaints {
			t.Error(c)
		}
	})
	return b
}

// read passes on answers, and keeps complaints.
func (b *browser) read(out *os.File) {
	r := bufio.NewReader(out)
	for {
		text, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			defer b.mu.Unlock()
			for id, ch := range b.waiting {
				close(ch)
				delete(b.waiting, id)
			}
			b.waiting = nil
			return
		}
		var m devtools
		if json.Unmarshal(text[:len(text)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		if ch := b.waiting[m.ID]; m.ID != 0 && ch != nil {
			ch <- m
			delete(b.waiting, m.ID)
		}
		if complaint := b.complaint(m); complaint != "" {
			b.complaints = append(b.complaints, complaint)
		}
		b.mu.Unlock()
	}
}

// complaint returns what is wrong with an event of the browser, or nothing.
func (b *browser) complaint(m devtools) string {
	switch m.Method {
	case "Runtime.exceptionThrown":
		return "a script of the page failed: " + string(m.Params)
	case "Log.entryAdded":
		var p struct {
			Entry struct{ Source, Level, Text string }
		}
		_ = json.Unmarshal(m.Params, &p)
		if p.Entry.Source != "network" && p.Entry.Level == "error" || strings.Contains(p.Entry.Text, "Content Security Policy") {
			return "the browser complains: " + p.Entry.Source + ": " + p.Entry.Text
		}
	case "Audits.issueAdded":
		if strings.Contains(string(m.Params), "ContentSecurityPolicyIssue") {
			return "the policy of the page was violated: " + string(m.Params)
		}
	case "Network.requestWillBeSent":
		var p struct{ Request struct{ URL string } }
		_ = json.Unmarshal(m.Params, &p)
		if u := p.Request.URL; u != "" && !strings.HasPrefix(u, b.origin+"/") && !strings.HasPrefix(u, "data:") && !strings.HasPrefix(u, "blob:"+b.origin+"/") {
			return "a request left the hub: " + u
		}
	}
	return ""
}

var errBrowserGone = errors.New("the browser is gone")

// send sends a command and returns its result.
func (b *browser) send(m devtools) (json.RawMessage, error) {
	b.mu.Lock()
	if b.waiting == nil {
		b.mu.Unlock()
		return nil, errBrowserGone
	}
	b.last++
	m.ID = b.last
	ch := make(chan devtools, 1)
	b.waiting[m.ID] = ch
	text, err := json.Marshal(m)
	if err == nil {
		_, err = b.in.Write(append(text, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case r, ok := <-ch:
		switch {
		case !ok:
			return nil, errBrowserGone
		case r.Error != nil:
			return nil, errors.New(r.Error.Message)
		}
		return r.Result, nil
	case <-time.After(watchdog):
		return nil, fmt.Errorf("%s: no answer", m.Method)
	}
}

// tab is a page of a browser.
type tab struct {
	*browser
	session string
}

// open opens an address of the hub in a new tab.
func (b *browser) open(address string) *tab {
	b.Helper()
	p := &tab{browser: b}
	var target struct{ TargetID, SessionID string }
	p.call("Target.createTarget", map[string]any{"url": "about:blank"}, &target)
	p.call("Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true}, &target)
	p.session = target.SessionID
	for _, domain := range []string{"Page", "Runtime", "Log", "Network", "Audits"} {
		p.call(domain+".enable", nil, nil)
	}
	p.visit(address)
	return p
}

// visit goes to an address of the hub.
func (p *tab) visit(address string) {
	p.Helper()
	p.call("Page.navigate", map[string]any{"url": p.origin + address}, nil)
}

// reload reloads the page, and returns when the old one has gone.
func (p *tab) reload() {
	p.Helper()
	p.await(`window.old = true`)
	p.call("Page.reload", nil, nil)
	p.await(`!window.old`)
}

// call sends a command of the tab.
func (p *tab) call(method string, params, result any) {
	p.Helper()
	m := devtools{SessionID: p.session, Method: method}
	if params != nil {
		m.Params = plainJSON(params)
	}
	text, err := p.send(m)
	if err == nil && result != nil {
		err = json.Unmarshal(text, result)
	}
	if err != nil {
		p.Fatalf("%s: %v", method, err)
	}
}

// run evaluates an expression in the page, and waits for the promise that it may be.
func (p *tab) run(expression string) (json.RawMessage, error) {
	text, err := p.send(devtools{SessionID: p.session, Method: "Runtime.evaluate", Params: plainJSON(map[string]any{
		"expression": expression, "awaitPromise": true, "returnByValue": true, "userGesture": true,
	})})
	if err != nil {
		return nil, err
	}
	var r struct {
		Result           struct{ Value json.RawMessage }
		ExceptionDetails *struct{ Exception struct{ Description string } }
	}
	if err := json.Unmarshal(text, &r); err != nil {
		return nil, err
	}
	if r.ExceptionDetails != nil {
		return nil, errors.New(r.ExceptionDetails.Exception.Description)
	}
	return r.Result.Value, nil
}

// await waits until an expression is true in the page, and returns its value. The page may be loaded
// anew meanwhile.
func (p *tab) await(expression string) string {
	p.Helper()
	const poll = `new Promise((found, none) => { const end = Date.now() + %d; const look = async () => {
		let v; try { v = await (%s); } catch (e) { v = undefined; }
		if (v) found(v); else if (Date.now() > end) none(new Error('it does not become true')); else setTimeout(look, 20);
	}; look(); })`
	var value json.RawMessage
	var err error
	for range 5 {
		if value, err = p.run(fmt.Sprintf(poll, watchdog.Milliseconds(), expression)); err == nil {
			var text string
			if json.Unmarshal(value, &text) != nil {
				text = string(value)
			}
			return text
		}
		if !strings.Contains(err.Error(), "context") && !strings.Contains(err.Error(), "navigated") {
			break
		}
	}
	body, _ := p.run(`location.href + "\n" + document.body.innerText`)
	p.Fatalf("%s: %v; the page is %s", expression, err, body)
	return ""
}

// shows waits until an element has a text.
func (p *tab) shows(selector, text string) {
	p.Helper()
	p.await(fmt.Sprintf("[...document.querySelectorAll(%s)].some((e) => e.textContent.includes(%s))", plainJSON(selector), plainJSON(text)))
}

// nameOf returns the name by which a screen reader calls an element.
func (p *tab) nameOf(selector string) string {
	p.Helper()
	var document struct{ Root struct{ NodeID int } }
	p.call("DOM.getDocument", nil, &document)
	var node struct{ NodeID int }
	p.call("DOM.querySelector", map[string]any{"nodeId": document.Root.NodeID, "selector": selector}, &node)
	var tree struct {
		Nodes []struct{ Name struct{ Value string } }
	}
	p.call("Accessibility.getPartialAXTree", map[string]any{"nodeId": node.NodeID, "fetchRelatives": false}, &tree)
	if len(tree.Nodes) != 1 {
		p.Fatalf("%s: got %d nodes, want 1", selector, len(tree.Nodes))
	}
	return tree.Nodes[0].Name.Value
}

// element is an element of a page, as a screen reader finds it.
type element struct {
	*tab
	object string
}

// byRole waits for the element that has a role and a name for a screen reader; if several have, it is the first.
func (p *tab) byRole(role, name string) element {
	p.Helper()
	found := struct {
		Nodes []struct{ BackendDOMNodeID int }
	}{}
	again := time.NewTicker(20 * time.Millisecond)
	defer again.Stop()
	for end := time.Now().Add(watchdog); time.Now().Before(end); <-again.C {
		var document struct{ Root struct{ NodeID int } }
		p.call("DOM.getDocument", map[string]int{"depth": 0}, &document)
		p.call("Accessibility.queryAXTree", map[string]any{"nodeId": document.Root.NodeID, "role": role, "accessibleName": name}, &found)
		if len(found.Nodes) == 0 {
			continue
		}
		var node struct{ Object struct{ ObjectID string } }
		p.call("DOM.resolveNode", map[string]int{"backendNodeId": found.Nodes[0].BackendDOMNodeID}, &node)
		return element{p, node.Object.ObjectID}
	}
	body, _ := p.run(`location.href + "\n" + document.body.innerText`)
	p.Fatalf("there is no %s named %q; the page is %s", role, name, body)
	return element{}
}

// get returns what a function returns of which the element is this.
func (e element) get(function string) string {
	e.Helper()
	var r struct{ Result struct{ Value any } }
	e.call("Runtime.callFunctionOn", map[string]any{"objectId": e.object, "functionDeclaration": function, "returnByValue": true, "awaitPromise": true}, &r)
	return fmt.Sprint(r.Result.Value)
}

// click clicks on it with the mouse.
func (e element) click() {
	e.Helper()
	e.clickAt(e.get(`function() { this.scrollIntoView({block: 'center'}); const r = this.getBoundingClientRect(); return JSON.stringify({x: r.x + r.width / 2, y: r.y + r.height / 2}); }`))
}

// click clicks with the mouse on an element once it is there.
func (p *tab) click(selector string) {
	p.Helper()
	p.clickAt(p.await(fmt.Sprintf(`(() => { const e = document.querySelector(%s); e.scrollIntoView({block: 'center'}); const r = e.getBoundingClientRect();
		return r.width && JSON.stringify({x: r.x + r.width / 2, y: r.y + r.height / 2}); })()`, plainJSON(selector))))
}

// clickAt clicks at a place of the page, as JSON has it.
func (p *tab) clickAt(place string) {
	p.Helper()
	var at struct{ X, Y float64 }
	if err := json.Unmarshal([]byte(place), &at); err != nil {
		p.Fatal(err)
	}
	for _, kind := range []string{"mousePressed", "mouseReleased"} {
		p.call("Input.dispatchMouseEvent", map[string]any{"type": kind, "x": at.X, "y": at.Y, "button": "left", "clickCount": 1}, nil)
	}
}

// key presses keys, one after another.
func (p *tab) key(keys ...string) {
	p.Helper()
	for _, key := range keys {
		down := map[string]any{"type": "keyDown", "key": key}
		if len(key) == 1 {
			down["text"] = key
		}
		if key == "Enter" {
			down["text"], down["windowsVirtualKeyCode"] = "\r", 13
		}
		p.call("Input.dispatchKeyEvent", down, nil)
		p.call("Input.dispatchKeyEvent", map[string]any{"type": "keyUp", "key": key}, nil)
	}
}

// write writes into what has the focus.
func (p *tab) write(text string) {
	p.Helper()
	p.call("Input.insertText", map[string]any{"text": text}, nil)
}

// pictures is where pictures of the pages are kept; "" keeps none.
var pictures = flag.String("console.pictures", "", "the directory for pictures of the console's views")

// picture keeps a picture of the page.
func (p *tab) picture(name string) {
	p.Helper()
	if *pictures == "" {
		return
	}
	shot := p.screenshot()
	var small bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&small, reduced(shot, shot.Bounds())); err != nil {
		p.Fatal(err)
	}
	if err := os.WriteFile(filepath.Join(*pictures, name+".png"), small.Bytes(), 0o600); err != nil {
		p.Fatal(err)
	}
}

// screenshot returns what the page shows.
func (p *tab) screenshot() image.Image {
	p.Helper()
	var shot struct{ Data []byte }
	p.call("Page.captureScreenshot", map[string]string{"format": "png"}, &shot)
	page, err := png.Decode(bytes.NewReader(shot.Data))
	if err != nil {
		p.Fatal(err)
	}
	return page
}

// seconds returns how much of the processor all processes of the browser have used.
func (b *browser) seconds() (all float64) {
	b.Helper()
	var info struct{ ProcessInfo []struct{ CPUTime float64 } }
	text, err := b.send(devtools{Method: "SystemInfo.getProcessInfo"})
	if err == nil {
		err = json.Unmarshal(text, &info)
	}
	if err != nil {
		b.Fatal(err)
	}
	for _, p := range info.ProcessInfo {
		all += p.CPUTime
	}
	return all
}

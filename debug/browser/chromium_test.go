package browser

import (
	"bufio"
	"encoding/json"
	"errors"
	"fmt"
	"os"
	"os/exec"
	"strings"
	"sync"
	"testing"
	"time"
)

// chromium is a browser that is spoken to over its DevTools protocol through a
// pair of pipes, JSON ended by a zero byte.
type chromium struct {
	cmd *exec.Cmd
	to  *os.File

	mu    sync.Mutex // guards below
	id    int
	calls map[int]chan message
	pages map[string]*page
	lost  bool
}

type message struct {
	ID     int             `json:"id,omitempty"`
	Method string          `json:"method,omitempty"`
	Params json.RawMessage `json:"params,omitempty"`
	Result json.RawMessage `json:"result,omitempty"`
	Error  *struct {
		Message string `json:"message"`
	} `json:"error,omitempty"`
	Session string `json:"sessionId,omitempty"`
}

// page is one open page, with its errors and its requests.
type page struct {
	t       *testing.T
	b       *chromium
	session string

	mu       sync.Mutex
	errors   []string // of its console, and exceptions
	requests []string // URLs
}

func findChromium() (string, error) {
	if name := os.Getenv("TRIPMETER_CHROMIUM"); name != "" {
		return exec.LookPath(name)
	}
	for _, name := range []string{"chromium", "chromium-browser", "google-chrome"} {
		if path, err := exec.LookPath(name); err == nil {
			return path, nil
		}
	}
	return "", errors.New("no Chromium in PATH: install it (apt-get install chromium), or name it in TRIPMETER_CHROMIUM")
}

// start runs a browser with a new profile until the test ends.
func start(t *testing.T) *chromium {
	path, err := findChromium()
	if err != nil {
		t.Fatal(err)
	}
	readOrders, orders, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	answers, writeAnswers, err := os.Pipe()
	if err != nil {
		t.Fatal(err)
	}
	b := &chromium{to: orders, calls: map[int]chan message{}, pages: map[string]*page{}}
	b.cmd = exec.Command(path, "--headless", "--no-sandbox", "--disable-gpu", "--disable-quic", "--no-first-run",
		"--disable-background-networking", "--disable-component-update", "--disable-sync", "--hide-scrollbars",
		"--remote-debugging-pipe", "--user-data-dir="+t.TempDir(), "about:blank")
	b.cmd.ExtraFiles = []*os.File{readOrders, writeAnswers} // 3 and 4
	if err := b.cmd.Start(); err != nil {
		t.Fatalf("%s does not start: %v", path, err)
	}
	readOrders.Close()
	writeAnswers.Close()
	done := make(chan struct{})
	go func() {
		defer close(done)
		b.read(answers)
	}()
	t.Cleanup(func() {
		b.call("", "Browser.close", nil) // an error is a browser that is gone
		b.cmd.Wait()
		orders.Close()
		<-done
	})
	return b
}

func (b *chromium) read(answers *os.File) {
	defer answers.Close()
	r := bufio.NewReader(answers)
	for {
		data, err := r.ReadBytes(0)
		if err != nil {
			b.mu.Lock()
			b.lost = true
			for _, c := range b.calls {
				close(c)
			}
			clear(b.calls)
			b.mu.Unlock()
			return
		}
		var m message
		if json.Unmarshal(data[:len(data)-1], &m) != nil {
			continue
		}
		b.mu.Lock()
		c, p := b.calls[m.ID], b.pages[m.Session]
		if m.ID != 0 {
			delete(b.calls, m.ID)
		}
		b.mu.Unlock()
		switch {
		case m.ID != 0 && c != nil:
			c <- m
		case p != nil:
			p.heard(m)
		}
	}
}

func (b *chromium) call(session, method string, params any) (json.RawMessage, error) {
	p, err := json.Marshal(params)
	if err != nil {
		return nil, err
	}
	c := make(chan message, 1)
	b.mu.Lock()
	if b.lost {
		b.mu.Unlock()
		return nil, errors.New("the browser is gone")
	}
	b.id++
	id := b.id
	b.calls[id] = c
	m := message{ID: id, Method: method, Session: session}
	if params != nil {
		m.Params = p
	}
	data, err := json.Marshal(m)
	if err == nil {
		_, err = b.to.Write(append(data, 0))
	}
	b.mu.Unlock()
	if err != nil {
		return nil, err
	}
	select {
	case m, ok := <-c:
		if !ok {
			return nil, errors.New("the browser is gone")
		}
		if m.Error != nil {
			return nil, fmt.Errorf("%s: %s", method, m.Error.Message)
		}
		return m.Result, nil
	case <-time.After(time.Minute): // a browser that hangs
		return nil, fmt.Errorf("%s: no answer in a minute", method)
	}
}

// open opens a page of that size.
func (b *chromium) open(t *testing.T, width, height int, phone, dark bool) *page {
	t.Helper()
	p := &page{t: t, b: b}
	var target struct{ TargetID string }
	p.into(&target, "", "Target.createTarget", map[string]any{"url": "about:blank"})
	var attached struct{ SessionID string }
	p.into(&attached, "", "Target.attachToTarget", map[string]any{"targetId": target.TargetID, "flatten": true})
	p.session = attached.SessionID
	b.mu.Lock()
	b.pages[p.session] = p
	b.mu.Unlock()
	for _, domain := range []string{"Page", "Runtime", "Network", "Log"} {
		p.do(domain+".enable", nil)
	}
	p.do("Emulation.setDeviceMetricsOverride", map[string]any{"width": width, "height": height, "deviceScaleFactor": 1, "mobile": phone})
	scheme := "light"
	if dark {
		scheme = "dark"
	}
	p.do("Emulation.setEmulatedMedia", map[string]any{"features": []map[string]string{{"name": "prefers-color-scheme", "value": scheme}}})
	return p
}

func (p *page) into(v any, session, method string, params any) {
	p.t.Helper()
	data, err := p.b.call(session, method, params)
	if err != nil {
		p.t.Fatal(err)
	}
	if err := json.Unmarshal(data, v); err != nil {
		p.t.Fatalf("%s: %v", method, err)
	}
}

func (p *page) do(method string, params any) {
	p.t.Helper()
	var nothing struct{}
	p.into(&nothing, p.session, method, params)
}

// heard notes what the page says and asks for.
func (p *page) heard(m message) {
	p.mu.Lock()
	defer p.mu.Unlock()
	switch m.Method {
	case "Runtime.exceptionThrown":
		p.errors = append(p.errors, string(m.Params))
	case "Log.entryAdded":
		var e struct {
			Entry struct{ Level, Text, URL string }
		}
		json.Unmarshal(m.Params, &e)
		if e.Entry.Level == "error" || e.Entry.Level == "warning" {
			p.errors = append(p.errors, e.Entry.Text+" "+e.Entry.URL)
		}
	case "Runtime.consoleAPICalled":
		p.errors = append(p.errors, string(m.Params))
	case "Network.requestWillBeSent":
		var e struct{ Request struct{ URL string } }
		json.Unmarshal(m.Params, &e)
		if !strings.HasPrefix(e.Request.URL, "data:") {
			p.requests = append(p.requests, e.Request.URL)
		}
	}
}

// eval evaluates an expression in the page.
func eval[T any](p *page, expression string) T {
	p.t.Helper()
	var r struct {
		Result           struct{ Value T }
		ExceptionDetails *struct{ Text string }
	}
	p.into(&r, p.session, "Runtime.evaluate", map[string]any{"expression": expression, "returnByValue": true, "awaitPromise": true})
	if r.ExceptionDetails != nil {
		p.t.Fatalf("%s: %s", expression, r.ExceptionDetails.Text)
	}
	return r.Result.Value
}

// until waits for an expression to be true.
func (p *page) until(expression string) {
	p.t.Helper()
	for range 300 {
		if eval[bool](p, expression) {
			return
		}
		time.Sleep(100 * time.Millisecond) // a browser lives in real time
	}
	p.t.Fatalf("in half a minute this did not come true: %s\n%s", expression, eval[string](p, "document.body ? document.body.innerText : ''"))
}

func (p *page) press(key string) {
	p.t.Helper()
	for _, kind := range []string{"keyDown", "keyUp"} {
		e := map[string]any{"type": kind, "key": key}
		if len(key) == 1 && kind == "keyDown" {
			e["text"] = key
		}
		if key == "Tab" {
			e["windowsVirtualKeyCode"] = 9
		}
		p.do("Input.dispatchKeyEvent", e)
	}
}

// shot is a PNG of the whole page, or of its upper part.
func (p *page) shot(height int) []byte {
	p.t.Helper()
	width := eval[int](p, "document.documentElement.clientWidth")
	if height == 0 {
		height = eval[int](p, "document.documentElement.scrollHeight")
	}
	var r struct{ Data []byte }
	p.into(&r, p.session, "Page.captureScreenshot", map[string]any{
		"format": "png", "captureBeyondViewport": true,
		"clip": map[string]any{"x": 0, "y": 0, "width": width, "height": height, "scale": 1},
	})
	return r.Data
}

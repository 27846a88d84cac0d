package browser

import (
	"bytes"
	"cmp"
	"context"
	"flag"
	"fmt"
	"image"
	"image/color"
	"image/png"
	"io"
	"maps"
	"math/rand/v2"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/debug"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

// stage is a program under load, with its page.
type stage struct {
	url      string
	provider *providertest.Provider
	meter    *meter.Meter
	stop     func() // ends the load and waits for it
}

// play is what goes on.
type play struct {
	options  transport.Options
	provider providertest.Options
	tenants  int
	workers  int // each sends one call after another
	crowd    int // calls that are sent at once
	cap      int // max_tokens
}

func (s play) start(t *testing.T) *stage {
	t.Helper()
	if s.provider.Latency == nil {
		s.provider.Latency = func(providertest.Call) providertest.Timing {
			return providertest.Timing{FirstByte: 150 * time.Millisecond, PerToken: time.Millisecond}
		}
	}
	p, err := providertest.New(s.provider)
	if err != nil {
		t.Fatal(err)
	}
	m := meter.New(meter.Options{Tenant: func(r *http.Request) string { return r.Header.Get("X-Team") }})
	o := s.options
	o.Base, o.Trace = p.RoundTripper(), m.Trace("openai")
	rt, err := transport.New(o)
	if err != nil {
		t.Fatal(err)
	}
	m.Watch("openai", rt)
	server := httptest.NewServer(debug.Handler(m, debug.Options{}))
	ctx, cancel := context.WithCancel(t.Context())
	var all sync.WaitGroup
	client := &http.Client{Transport: rt}
	one := func(r *rand.Rand) {
		team := int(float64(s.tenants) * r.Float64() * r.Float64() * r.Float64()) // some ask for more than others
		body := fmt.Sprintf(`{"model":"gpt-4o-mini","max_tokens":%d,"messages":[{"role":"user","content":%q}]}`, s.cap, strings.Repeat("what is a token bucket? ", 1+r.IntN(40)))
		req, err := http.NewRequestWithContext(ctx, "POST", "http://api.example/v1/chat/completions", strings.NewReader(body))
		if err != nil {
			panic(err)
		}
		if s.tenants > 0 {
			req.Header.Set("X-Team", fmt.Sprintf("team-%d", team+1))
		}
		resp, err := client.Do(req)
		if err != nil {
			return
		}
		io.Copy(io.Discard, resp.Body)
		resp.Body.Close()
	}
	for i := range s.workers + s.crowd {
		r := rand.New(rand.NewPCG(uint64(i), 7))
		all.Go(func() {
			for one(r); i < s.workers && ctx.Err() == nil; {
				one(r)
			}
		})
	}
	var once sync.Once
	stop := func() {
		once.Do(func() {
			cancel()
			p.Close()
			all.Wait()
			server.CloseClientConnections()
			server.Close()
		})
	}
	t.Cleanup(stop)
	return &stage{server.URL + "/debug/tripmeter/", p, m, stop}
}

var (
	ample = play{
		options:  transport.Options{RPM: 6000, TPM: 6_000_000},
		provider: providertest.Options{Limits: providertest.Limits{RPM: 6000, TPM: 6_000_000}, Charge: providertest.Settle, Output: providertest.Uniform(20, 300)},
		workers:  10, cap: 400,
	}
	busy = play{
		options:  transport.Options{RPM: 1200, TPM: 300_000, MaxInFlight: 40},
		provider: providertest.Options{Limits: providertest.Limits{RPM: 1200, TPM: 300_000}, Capacity: 10 * time.Second, Charge: providertest.Settle, Output: providertest.Uniform(20, 300)},
		tenants:  10, workers: 60, cap: 400,
	}
	owing = play{
		options:  transport.Options{RPM: 1200, TPM: 60_000, Provider: profile.Unknown().Charging(estimate.ChargeActual)},
		provider: providertest.Options{Limits: providertest.Limits{RPM: 1200, TPM: 60_000}, Charge: providertest.Actual, Output: providertest.Constant(3000), Latency: func(providertest.Call) providertest.Timing { return providertest.Timing{FirstByte: time.Second} }},
		tenants:  3, workers: 12, cap: 4000,
	}
	crowded = play{
		options:  transport.Options{RPM: 1800, TPM: 600_000},
		provider: providertest.Options{Limits: providertest.Limits{RPM: 1800, TPM: 600_000}, Charge: providertest.Settle, Output: providertest.Uniform(20, 300)},
		tenants:  1000, crowd: 14_000, cap: 400,
	}
)

// pause refuses the next call and asks for half a minute.
func (s *stage) pause() {
	s.provider.Script(providertest.Step{Kind: providertest.Refuse, RetryAfter: 30 * time.Second})
}

// quiet checks the properties that a page must have in every state.
func (p *page) quiet(s *stage) {
	p.t.Helper()
	p.mu.Lock()
	for _, e := range p.errors {
		p.t.Errorf("the console: %s", e)
	}
	for _, url := range p.requests {
		if !strings.HasPrefix(url, s.url) && url != "about:blank" {
			p.t.Errorf("a request to %s", url)
		}
	}
	if len(p.requests) < 2 {
		p.t.Errorf("only %d requests were seen", len(p.requests))
	}
	p.mu.Unlock()
	if wide := eval[int](p, "document.documentElement.scrollWidth - document.documentElement.clientWidth"); wide > 0 {
		p.t.Errorf("the page is %d pixels too wide", wide)
	}
	const nameless = `[...document.querySelectorAll('button, a, [role=img], [role=region], section')].filter(e => !(e.getAttribute('aria-label') || e.getAttribute('aria-labelledby') || e.textContent.trim())).map(e => e.outerHTML).join()`
	if e := eval[string](p, nameless); e != "" {
		p.t.Errorf("without a name: %s", e)
	}
	const lost = `[...document.querySelectorAll('[aria-labelledby]')].filter(e => !document.getElementById(e.getAttribute('aria-labelledby'))).length`
	if n := eval[int](p, lost); n != 0 {
		p.t.Errorf("%d labels point nowhere", n)
	}
}

func (p *page) load(s *stage) {
	p.t.Helper()
	p.do("Page.navigate", map[string]any{"url": s.url})
	p.until("document.documentElement && Number(document.documentElement.dataset.drawn || 0) >= 2")
}

func (p *page) says(words string) {
	p.t.Helper()
	p.until(fmt.Sprintf("document.body.innerText.includes(%q)", words))
}

func TestIdlePageSaysSo(t *testing.T) {
	b := start(t)
	idle := ample
	idle.workers, idle.crowd = 0, 1 // limits show with the first call
	s := idle.start(t)
	p := b.open(t, 1280, 800, false, false)
	p.load(s)
	p.says("Nobody waits.")
	p.says("requests per minute")
	p.quiet(s)
}

// Under load the page moves by itself: numbers change, the lines have points,
// and the sentence says what the next call waits for.
func TestPageFollowsTheLoad(t *testing.T) {
	b := start(t)
	s := busy.start(t)
	p := b.open(t, 1280, 800, false, false)
	p.load(s)
	p.says("calls wait. The next goes in about")
	before := eval[string](p, "document.getElementById('tiles').innerText")
	p.until(fmt.Sprintf("document.getElementById('tiles').innerText !== %q", before))
	p.until("document.querySelectorAll('#line tbody tr').length > 5 && document.querySelectorAll('#tenants tbody tr').length > 5")
	p.until("document.querySelector('#charts .plot path.one').getAttribute('d').split('L').length > 3")
	p.quiet(s)
}

func TestPauseShowsItsReason(t *testing.T) {
	b := start(t)
	s := busy.start(t)
	p := b.open(t, 1280, 800, false, false)
	p.load(s)
	s.pause()
	p.says("is paused for")
	p.until("document.querySelector('#scopes .paused') !== null && document.querySelector('#happened li') !== null")
	p.quiet(s)
}

func TestDebtShows(t *testing.T) {
	b := start(t)
	s := owing.start(t)
	p := b.open(t, 1280, 800, false, false)
	p.load(s)
	p.says("in debt")
	p.until("document.querySelector('rect.debt') !== null")
	p.quiet(s)
}

// A thousand tenants and ten thousand in the line: the page stays short, and says
// how many more there are.
func TestCrowdFits(t *testing.T) {
	b := start(t)
	s := crowded.start(t)
	p := b.open(t, 1280, 800, false, false)
	p.load(s)
	p.says("more wait behind them.")
	p.says("(rest)")
	st := s.meter.Read(0, 0)
	if w := st.Budgets[0].Waiting; w < 10_000 {
		t.Errorf("only %d wait", w)
	}
	if n := eval[int](p, "document.querySelectorAll('*').length"); n > 2500 {
		t.Errorf("%d elements", n)
	}
	p.quiet(s)
}

// The page is held and themed by keyboard, its parts are reached by Tab, and it
// fits on a phone.
func TestKeyboardAndPhone(t *testing.T) {
	b := start(t)
	s := busy.start(t)
	p := b.open(t, 375, 740, true, true)
	p.load(s)
	p.press("h")
	p.says("Held")
	held := eval[string](p, "document.getElementById('tiles').innerText")
	time.Sleep(2500 * time.Millisecond) // time in which the page would have moved
	if now := eval[string](p, "document.getElementById('tiles').innerText"); now != held {
		t.Error("the page moves while it is held")
	}
	p.press("h")
	p.says("Live")
	if got := eval[string](p, "document.getElementById('said').textContent"); !strings.Contains(got, "wait") {
		t.Errorf("who listens hears %q", got)
	}
	dark := eval[string](p, "getComputedStyle(document.body).backgroundColor")
	p.press("t")
	p.press("t")
	p.press("t")
	p.press("t") // light
	if light := eval[string](p, "getComputedStyle(document.body).backgroundColor"); light == dark {
		t.Errorf("in dark and in light the page is %s", light)
	}
	p.press("Tab")
	if got := eval[string](p, "document.activeElement.className"); got != "skip" {
		t.Errorf("Tab leads to %q first", got)
	}
	seen := map[string]bool{}
	for range 8 {
		p.press("Tab")
		seen[eval[string](p, "document.activeElement.id || document.activeElement.textContent")] = true
	}
	for _, id := range []string{"hold", "theme", "JSON", "line", "tenants"} {
		if !seen[id] {
			t.Errorf("Tab does not lead to %s: %v", id, seen)
		}
	}
	p.quiet(s)
}

// A program that ends is seen, not mistaken for one that is idle.
func TestLostConnectionShows(t *testing.T) {
	b := start(t)
	s := busy.start(t)
	p := b.open(t, 1280, 800, false, false)
	p.load(s)
	s.stop()
	p.says("What you see is old.")
}

var (
	screenshots = flag.String("screenshots", "", "take the pictures of the docs into that folder; takes two minutes")
	only        = flag.String("only", "", "of the pictures, take only the one of that name")
	span        = flag.Duration("span", 90*time.Second, "how long the load runs before a picture")
)

// far reports whether a colour has no near one in a palette.
func far(c color.RGBA, p color.Palette) bool {
	near := p.Convert(c).(color.RGBA)
	d := func(a, b uint8) int { return (int(a) - int(b)) * (int(a) - int(b)) }
	return d(c.R, near.R)+d(c.G, near.G)+d(c.B, near.B) > 300
}

// small repaints a PNG with 256 colours, which a page hardly shows.
func small(t *testing.T, data []byte) []byte {
	img, err := png.Decode(bytes.NewReader(data))
	if err != nil {
		t.Error(err)
		return data
	}
	b := img.Bounds()
	n := map[color.RGBA]int{}
	at := func(x, y int) color.RGBA { return color.RGBAModel.Convert(img.At(x, y)).(color.RGBA) }
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			n[at(x, y)]++
		}
	}
	most := slices.SortedFunc(maps.Keys(n), func(a, b color.RGBA) int { return cmp.Compare(n[b], n[a]) })
	var palette color.Palette
	for i, c := range most {
		// Most are blends at the edge of letters. After the commonest only those are
		// taken that have no neighbour yet, so that no thin line loses its colour.
		if i < 128 || len(palette) < 256 && far(c, palette) {
			palette = append(palette, c)
		}
	}
	index := map[color.RGBA]uint8{}
	for _, c := range most {
		index[c] = uint8(palette.Index(c))
	}
	out := image.NewPaletted(b, palette)
	for y := b.Min.Y; y < b.Max.Y; y++ {
		for x := b.Min.X; x < b.Max.X; x++ {
			out.SetColorIndex(x, y, index[at(x, y)])
		}
	}
	var w bytes.Buffer
	if err := (&png.Encoder{CompressionLevel: png.BestCompression}).Encode(&w, out); err != nil {
		t.Error(err)
		return data
	}
	return w.Bytes()
}

func TestScreenshots(t *testing.T) {
	if *screenshots == "" {
		return // the pictures are made by hand, and looked at
	}
	b := start(t)
	var all sync.WaitGroup
	for _, c := range []struct {
		name          string
		play          play
		width, height int
		phone, dark   bool
		pause         bool
	}{
		{"idle", func() play { p := ample; p.workers, p.crowd = 0, 1; return p }(), 1200, 0, false, false, false},
		{"room", ample, 1200, 0, false, false, false},
		{"load", busy, 1200, 0, false, false, false},
		{"dark", busy, 1200, 0, false, true, false},
		{"pause", busy, 1200, 0, false, false, true},
		{"debt", owing, 1200, 0, false, false, false},
		{"crowd", crowded, 1200, 0, false, false, false},
		{"top", busy, 1200, 720, false, false, false},
		{"phone", busy, 375, 0, true, false, false},
	} {
		if *only != "" && *only != c.name {
			continue
		}
		s := c.play.start(t)
		p := b.open(t, c.width, 800, c.phone, c.dark)
		p.load(s)
		all.Go(func() {
			if c.name == "debt" {
				time.Sleep(*span / 8)
				p.says("in debt")
			} else {
				time.Sleep(*span)
			}
			if c.pause {
				s.pause()
				p.says("is paused for")
				time.Sleep(4 * time.Second)
			}
			if err := os.WriteFile(filepath.Join(*screenshots, "page-"+c.name+".png"), small(t, p.shot(c.height)), 0o644); err != nil {
				t.Error(err)
			}
		})
	}
	all.Wait()
}

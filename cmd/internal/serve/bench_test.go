package serve

import (
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"net/http/httputil"
	"net/url"
	"runtime"
	"slices"
	"strings"
	"sync"
	"testing"
	"time"
)

// BenchmarkStreams is the time to the first byte of a stream while a thousand are
// open. It goes through the gateway and through a plain ReverseProxy in the same
// run. Each client reads one event, sends the next call, and so on, so that the
// machine is busy and no call waits for a limit.
func BenchmarkStreams(b *testing.B) {
	const open1000 = 1000
	hold := make(chan struct{})
	up := httptest.NewServer(http.HandlerFunc(func(w http.ResponseWriter, r *http.Request) {
		io.Copy(io.Discard, r.Body)
		w.Header().Set("Content-Type", "text/event-stream")
		fmt.Fprint(w, "data: {\"choices\":[{\"delta\":{\"content\":\"abc \"}}]}\n\n")
		w.(http.Flusher).Flush()
		if r.Header.Get("X-Hold") != "" {
			select {
			case <-hold:
			case <-r.Context().Done():
			}
		}
		fmt.Fprint(w, "data: [DONE]\n\n")
	}))
	defer up.Close()
	defer close(hold)
	target, _ := url.Parse(up.URL)
	base := baseTransport()
	defer base.CloseIdleConnections()
	bare := &httputil.ReverseProxy{
		Rewrite: func(r *httputil.ProxyRequest) { r.SetURL(target) }, Transport: base, FlushInterval: -1,
		BufferPool: buffers{}, ErrorLog: log.New(io.Discard, "", 0),
	}
	c, err := Parse([]byte(strings.Replace(plain, "URL", up.URL, 1)+"rpm = 1000000000\n"), secrets1)
	if err != nil {
		b.Fatal(err)
	}
	g, err := newGateway(c, base, log.New(io.Discard, "", 0), nil)
	if err != nil {
		b.Fatal(err)
	}
	handlers := []http.Handler{bare, g}
	var urls []string
	for _, h := range handlers {
		s := httptest.NewServer(h)
		s.Config.ErrorLog = log.New(io.Discard, "", 0)
		defer s.Close()
		urls = append(urls, s.URL+"/v1/chat/completions")
	}
	client := &http.Client{Transport: &http.Transport{MaxIdleConnsPerHost: open1000, DisableCompression: true}}
	defer client.CloseIdleConnections()
	call := func(url string, held bool) (*http.Response, time.Duration) {
		r, _ := http.NewRequest("POST", url, strings.NewReader(`{"model":"gpt-4o-mini","stream":true,"messages":[{"role":"user","content":"Say abc."}]}`))
		r.Header.Set("Content-Type", "application/json")
		if held {
			r.Header.Set("X-Hold", "1")
		}
		at := time.Now()
		resp, err := client.Do(r)
		if err != nil {
			b.Fatal(err)
		}
		if _, err := io.ReadFull(resp.Body, make([]byte, 1)); err != nil {
			b.Fatal(err)
		}
		return resp, time.Since(at)
	}
	var memory [2]uint64
	var bodies []io.Closer
	for i, url := range urls {
		before := alive()
		var mu sync.Mutex
		var all sync.WaitGroup
		for range open1000 {
			all.Go(func() {
				resp, _ := call(url, true)
				mu.Lock()
				bodies = append(bodies, resp.Body)
				mu.Unlock()
			})
		}
		all.Wait()
		memory[i] = (alive() - before) / open1000
	}
	var first [2][]time.Duration
	for b.Loop() {
		for i := range 2 { // one after the other, so that both meet the same machine
			resp, took := call(urls[i], false)
			io.Copy(io.Discard, resp.Body)
			resp.Body.Close()
			first[i] = append(first[i], took)
		}
	}
	for i, name := range []string{"plain", "gateway"} {
		slices.Sort(first[i])
		b.ReportMetric(float64(first[i][len(first[i])/2].Microseconds()), name+"-p50-us")
		b.ReportMetric(float64(first[i][len(first[i])*99/100].Microseconds()), name+"-p99-us")
		b.ReportMetric(float64(memory[i]), name+"-B/stream")
	}
	for _, c := range bodies {
		c.Close()
	}
}

// alive is the memory that a collection found in use, stacks included.
func alive() uint64 {
	runtime.GC()
	var m runtime.MemStats
	runtime.ReadMemStats(&m)
	return m.HeapAlloc + m.StackInuse
}

// Batch sends every request of a file in the OpenAI Batch API's format through
// tripmeter, now and not within 24 hours, and writes the answers.
//
//	go run ./examples/batch -in requests.jsonl -rpm 500 -tpm 200000 > answers.jsonl
//
// It shows the library and nothing more: one http.Client for many goroutines,
// which wait their turn in it. For a job that runs overnight, goes on where it
// stopped and says what went wrong, there is the command "tripmeter batch".
//
// The key is OPENAI_API_KEY. Without one it talks to a provider in this process,
// whose answers are invented.
package main

import (
	"bytes"
	"cmp"
	"errors"
	"flag"
	"fmt"
	"io"
	"log"
	"net/http"
	"os"
	"sync"

	"github.com/tripmeter/tripmeter/internal/batchfile"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/transport"
)

func main() {
	log.SetFlags(0)
	in := flag.String("in", "", "requests, a JSON line each")
	base := flag.String("base-url", "", "where the urls of the requests are; unset: api.openai.com, or the provider in this process")
	rpm := flag.Int64("rpm", 0, "requests a minute; 0 is learned from the answers")
	tpm := flag.Int64("tpm", 0, "tokens a minute; 0 is learned")
	flag.Parse()
	if *in == "" {
		log.Fatal("batch: set -in to a file of requests, a JSON line each")
	}
	f, err := os.Open(*in)
	if err != nil {
		log.Fatal(err)
	}
	defer f.Close()
	j := job{key: os.Getenv("OPENAI_API_KEY"), base: *base}
	// Each model of the file has limits of its own, found from its answers. Other
	// users of this client go first: a batch can wait.
	o := transport.Options{RPM: *rpm, TPM: *tpm, MaxInFlight: 512, Scopes: transport.Scopes{Class: func(*http.Request) limit.Class { return limit.Batch }}}
	if j.key == "" && j.base == "" {
		log.Print("no key: the answers are invented")
		box, err := providertest.New(providertest.Options{Limits: providertest.Limits{RPM: cmp.Or(*rpm, 3000), TPM: cmp.Or(*tpm, 600_000)}})
		if err != nil {
			log.Fatal(err)
		}
		o.Base = box.RoundTripper()
	}
	j.base = cmp.Or(j.base, "https://api.openai.com")
	rt, err := transport.New(o)
	if err != nil {
		log.Fatal(err)
	}
	j.client = &http.Client{Transport: rt}
	if failed, err := j.run(f, os.Stdout); err != nil || failed > 0 {
		log.Fatalf("%d requests have no answer; %v", failed, err)
	}
}

// job sends requests through one client.
type job struct {
	client    *http.Client
	base, key string

	mu     sync.Mutex // guards what is written, and failed
	failed int
}

// run sends every request of in, and writes each answer when it is there.
func (j *job) run(in io.Reader, out io.Writer) (failed int, err error) {
	var all sync.WaitGroup
	defer all.Wait()
	room := make(chan struct{}, 1024) // requests in memory; the rest stays in the file
	lines := batchfile.NewLines(in)
	for n := 1; ; n++ {
		line, long, end := lines.Next()
		if len(bytes.TrimSpace(line)) > 0 {
			r, bad := batchfile.ParseRequest(line, long)
			room <- struct{}{}
			all.Go(func() {
				defer func() { <-room }()
				a := batchfile.Answer{ID: fmt.Sprint("batch_req_", n), CustomID: &r.CustomID}
				err := bad
				if err == nil {
					a.Response, err = j.ask(r)
				}
				if err != nil {
					a.Error = &batchfile.Failure{Code: "request_failed", Message: err.Error()}
				}
				j.write(out, a)
			})
		}
		if end != nil {
			all.Wait()
			if errors.Is(end, io.EOF) {
				end = nil
			}
			return j.failed, end
		}
	}
}

// ask sends one request. The client waits until the limits let it go.
func (j *job) ask(r batchfile.Request) (*batchfile.Response, error) {
	req, err := http.NewRequest(r.Method, batchfile.Join(j.base, r.URL), bytes.NewReader(r.Body))
	if err != nil {
		return nil, err
	}
	req.Header.Set("Content-Type", "application/json")
	req.Header.Set("Authorization", "Bearer "+j.key)
	resp, err := j.client.Do(req)
	if err != nil {
		return nil, err
	}
	defer resp.Body.Close()
	body, err := io.ReadAll(resp.Body)
	if err != nil {
		return nil, err
	}
	return &batchfile.Response{StatusCode: resp.StatusCode, RequestID: resp.Header.Get("X-Request-Id"), Body: batchfile.AsJSON(body)}, nil
}

func (j *job) write(out io.Writer, a batchfile.Answer) {
	line, err := batchfile.Encode(a)
	j.mu.Lock()
	defer j.mu.Unlock()
	if err == nil {
		_, err = out.Write(line)
	}
	if err != nil || a.Response == nil || a.Response.StatusCode/100 != 2 {
		j.failed++
	}
}

// Workers sends every request of a file from several processes, under one budget
// in Redis or Valkey.
//
//	docker compose up -d
//	go run ./examples/workers -redis 127.0.0.1:6379 -workers 4 -in requests.jsonl
//
// Each line of the file is the body of a chat completion. A worker takes every n-th
// line. The limits are those of the account, in every worker; no worker knows the
// number of workers. A worker that is killed and started again goes on with its
// part of the budget.
//
// Without -base-url it talks to a provider in this process that enforces limits.
// The key is taken from OPENAI_API_KEY.
package main

import (
	"bufio"
	"bytes"
	"context"
	"encoding/json"
	"errors"
	"flag"
	"fmt"
	"io"
	"net"
	"net/http"
	"os"
	"os/exec"
	"strings"
	"sync"
	"time"

	"github.com/redis/rueidis"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/redislimit"
	adapter "github.com/tripmeter/tripmeter/redislimit/rueidis"
	"github.com/tripmeter/tripmeter/transport"
)

type config struct {
	Redis, In, BaseURL, Budget string
	Workers, Worker, InFlight  int
	RPM, TPM                   int64
}

// A result is what one worker came to, or all of them.
type result struct {
	Answered, Refused, Failed int // refused: attempts that the provider in this process answered with 429
	Tokens                    int64
}

func main() {
	if job := os.Getenv("TRIPMETER_WORKER"); job != "" {
		var c config
		if err := json.Unmarshal([]byte(job), &c); err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(2)
		}
		r, err := work(context.Background(), c)
		if err != nil {
			fmt.Fprintln(os.Stderr, "worker:", err)
			os.Exit(1)
		}
		json.NewEncoder(os.Stdout).Encode(r)
		return
	}
	c := config{}
	flag.StringVar(&c.Redis, "redis", "127.0.0.1:6379", "the store of the budget")
	flag.StringVar(&c.Budget, "budget", "example", "its name: workers with the same one share it")
	flag.StringVar(&c.In, "in", "", "bodies of requests, one a line")
	flag.StringVar(&c.BaseURL, "base-url", "", "the provider, such as https://api.openai.com; empty: one in this process")
	flag.IntVar(&c.Workers, "workers", 4, "processes")
	flag.IntVar(&c.InFlight, "in-flight", 64, "calls under way at once, of all workers together")
	flag.Int64Var(&c.RPM, "rpm", 500, "requests a minute")
	flag.Int64Var(&c.TPM, "tpm", 200_000, "tokens a minute")
	flag.Parse()
	start := time.Now()
	r, err := run(c)
	if err != nil {
		fmt.Fprintln(os.Stderr, "workers:", err)
		os.Exit(1)
	}
	fmt.Printf("%d answered, %d refused, %d failed, %d tokens in %v\n", r.Answered, r.Refused, r.Failed, r.Tokens, time.Since(start).Round(100*time.Millisecond))
}

// run starts the workers and adds up what they say.
func run(c config) (total result, err error) {
	if c.In == "" || c.Workers < 1 {
		return total, errors.New("-in names a file of requests, and -workers is at least 1")
	}
	if c.BaseURL == "" {
		box, e := providertest.New(providertest.Options{
			Limits: providertest.Limits{RPM: c.RPM, TPM: c.TPM}, Algorithm: providertest.Bucket,
			Capacity: 12 * time.Second, RequestCapacity: 12 * time.Second, Charge: providertest.Settle,
		})
		if e != nil {
			return total, e
		}
		defer func() { total.Refused = int(box.Stats().Refused) }()
		ln, err := net.Listen("tcp", "127.0.0.1:0")
		if err != nil {
			return total, err
		}
		srv := &http.Server{Handler: box}
		go srv.Serve(ln)
		defer srv.Close()
		c.BaseURL = "http://" + ln.Addr().String()
	}
	self, err := os.Executable()
	if err != nil {
		return total, err
	}
	var mu sync.Mutex
	var all sync.WaitGroup
	for i := range c.Workers {
		c.Worker = i
		job, err := json.Marshal(c)
		if err != nil {
			return total, err
		}
		all.Go(func() {
			cmd := exec.Command(self)
			cmd.Env = append(os.Environ(), "TRIPMETER_WORKER="+string(job))
			cmd.Stderr = os.Stderr
			out, e := cmd.Output()
			var r result
			if e == nil {
				e = json.Unmarshal(out, &r)
			}
			mu.Lock()
			defer mu.Unlock()
			err = errors.Join(err, e)
			total.Answered += r.Answered
			total.Failed += r.Failed
			total.Tokens += r.Tokens
		})
	}
	all.Wait()
	return total, err
}

// work sends every n-th line of the file under the budget in the store.
func work(ctx context.Context, c config) (r result, err error) {
	client, err := rueidis.NewClient(rueidis.ClientOption{InitAddress: []string{c.Redis}, DisableCache: true})
	if err != nil {
		return r, fmt.Errorf("redis at %s: %w", c.Redis, err)
	}
	defer client.Close()
	ledger, err := redislimit.New(redislimit.Options{
		Name: c.Budget, Runner: adapter.New(client), MaxInFlight: c.InFlight,
		Limits: []limit.Limit{
			{Name: "rpm", Rate: limit.PerMinute(c.RPM), Burst: max(1, c.RPM/6)},
			{Name: "tpm", Unit: limit.Tokens, Rate: limit.PerMinute(c.TPM), Burst: max(1, c.TPM/6)},
		},
	})
	if err != nil {
		return r, err
	}
	defer ledger.Close()
	shared, err := budget.New(budget.Options{Ledger: ledger})
	if err != nil {
		return r, err
	}
	rt, err := transport.New(transport.Options{Scopes: transport.Scopes{Budget: shared}})
	if err != nil {
		return r, err
	}
	return sendAll(ctx, c, &http.Client{Transport: rt})
}

// sendAll sends every n-th line of the file, as many at once as may be under way.
func sendAll(ctx context.Context, c config, caller *http.Client) (r result, err error) {
	f, err := os.Open(c.In)
	if err != nil {
		return r, err
	}
	defer f.Close()
	lines := bufio.NewScanner(f)
	lines.Buffer(nil, 16<<20)
	var mu sync.Mutex
	var all sync.WaitGroup
	room := make(chan struct{}, c.InFlight)
	for n := 0; lines.Scan(); n++ {
		if n%c.Workers != c.Worker || len(bytes.TrimSpace(lines.Bytes())) == 0 {
			continue
		}
		body := bytes.Clone(lines.Bytes())
		room <- struct{}{}
		all.Go(func() {
			status, used, e := send(ctx, caller, c.BaseURL, body)
			<-room
			mu.Lock()
			defer mu.Unlock()
			switch {
			case e != nil:
				r.Failed++
				err = errors.Join(err, e)
			case status == http.StatusOK:
				r.Answered++
				r.Tokens += used
			default:
				r.Failed++
			}
		})
	}
	all.Wait()
	return r, errors.Join(err, lines.Err())
}

// send makes one call. The budget, the retries and the settlement are the client's.
func send(ctx context.Context, client *http.Client, base string, body []byte) (status int, used int64, err error) {
	req, err := http.NewRequestWithContext(ctx, "POST", strings.TrimRight(base, "/")+"/v1/chat/completions", bytes.NewReader(body))
	if err != nil {
		return 0, 0, err
	}
	req.Header.Set("Content-Type", "application/json")
	if key := os.Getenv("OPENAI_API_KEY"); key != "" {
		req.Header.Set("Authorization", "Bearer "+key)
	}
	resp, err := client.Do(req)
	if err != nil {
		return 0, 0, err
	}
	defer resp.Body.Close()
	var told struct {
		Usage struct {
			Total int64 `json:"total_tokens"`
		}
	}
	if err := json.NewDecoder(resp.Body).Decode(&told); err != nil && resp.StatusCode == http.StatusOK {
		return 0, 0, err
	}
	_, err = io.Copy(io.Discard, resp.Body)
	return resp.StatusCode, told.Usage.Total, err
}

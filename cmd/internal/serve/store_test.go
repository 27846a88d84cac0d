package serve

import (
	"bytes"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httptest"
	"os"
	"path/filepath"
	"strconv"
	"strings"
	"sync"
	"syscall"
	"testing"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/boxtest"
	"github.com/tripmeter/tripmeter/cmd/internal/redistest"
	"github.com/tripmeter/tripmeter/providertest"
)

// Over a store too a wait that the client cannot bear is refused at once, with the
// time after which the call could have gone; and a second gateway knows of it.
func TestEarlyRefusalOverAStore(t *testing.T) {
	address := redistest.Start(t)
	env := func(name string) string {
		if name == "REDIS" {
			return address + "/0"
		}
		return secrets1(name)
	}
	p, up := boxtest.Start(t, providertest.Options{})
	c, err := Parse([]byte("redis_env = \"REDIS\"\n"+strings.Replace(plain, "URL", up, 1)+"key_env = \"PROVIDER_KEY\"\nrpm = 1\nburst = \"1m\"\n"), env)
	if err != nil {
		t.Fatal(err)
	}
	logger := log.New(io.Discard, "", 0)
	var urls []string
	for range 2 {
		s, err := openStore(c, logger)
		if err != nil {
			t.Fatal(err)
		}
		base := baseTransport()
		g, err := newGateway(c, base, logger, s)
		if err != nil {
			t.Fatal(err)
		}
		server := httptest.NewServer(g)
		t.Cleanup(func() {
			server.Close()
			g.now.Load().upstreams[0].m.Close()
			base.CloseIdleConnections()
			s.Close()
		})
		urls = append(urls, server.URL+"/v1/chat/completions")
	}
	if a := post(t, urls[0], chat); a.status != 200 {
		t.Fatal(a)
	}
	for i, url := range urls {
		a := post(t, url, chat, MaxWaitHeader, "20")
		after, _ := strconv.Atoi(a.header.Get("Retry-After"))
		if a.status != 429 || !strings.Contains(a.body, "gateway_wait_too_long") || after < 30 || after > 60 {
			t.Errorf("gateway %d: %+v", i, a)
		}
	}
	if n := p.Stats().Requests; n != 1 {
		t.Errorf("%d calls reached the provider", n)
	}
}

// Two gateways on one store ask for three times what the provider allows: they
// share the limit, and nobody is refused.
func TestGatewaysShareAStore(t *testing.T) {
	address := redistest.Start(t)
	const rpm = 1200
	p, up := boxtest.Start(t, providertest.Options{Limits: providertest.Limits{RPM: rpm}, Capacity: 10 * time.Second})
	env := func(name string) string {
		if name == "REDIS" {
			return address + "/0"
		}
		return secrets1(name)
	}
	var urls []string
	var signals []chan os.Signal
	codes := make(chan int, 2)
	var logged lines
	for i := range 2 {
		listen := port(t)
		name := filepath.Join(t.TempDir(), fmt.Sprint(i, ".toml"))
		text := fmt.Sprintf("listen = %q\nadmin = \"off\"\nredis_env = \"REDIS\"\n", listen) + strings.Replace(plain, "URL", up, 1) + fmt.Sprintf("key_env = \"PROVIDER_KEY\"\nrpm = %d\nburst = \"1s\"\n", rpm)
		if err := os.WriteFile(name, []byte(text), 0o600); err != nil {
			t.Fatal(err)
		}
		stop := make(chan os.Signal, 1)
		signals = append(signals, stop)
		go func() { codes <- Run([]string{"-config", name}, env, stop, &logged) }()
		url := "http://" + listen
		eventually(t, "the gateway answers", func() bool {
			resp, err := http.Get(url + "/none")
			if err == nil {
				resp.Body.Close()
			}
			return err == nil
		})
		urls = append(urls, url)
	}
	begin := time.Now()
	var all sync.WaitGroup
	for i := range 12 {
		all.Go(func() {
			for time.Since(begin) < 3*time.Second {
				if a := post(t, urls[i%2]+"/v1/chat/completions", chat); a.status != 200 {
					t.Errorf("%+v\n%s", a, logged.String())
					return
				}
			}
		})
	}
	all.Wait()
	s := p.Stats()
	t.Logf("%d served, %d refused by the provider", s.Completed, s.Refused)
	if s.Refused != 0 || s.Completed < 20 {
		t.Errorf("%d served, %d refused by the provider", s.Completed, s.Refused)
	}
	for _, stop := range signals {
		stop <- syscall.SIGTERM
	}
	for range 2 {
		if code := <-codes; code != ExitDone {
			t.Errorf("exit code %d\n%s", code, logged.String())
		}
	}
}

// A store that is not there, or an address that is none, is said at the start,
// without the password in it.
func TestStoreThatIsNotThere(t *testing.T) {
	name := filepath.Join(t.TempDir(), "c.toml")
	os.WriteFile(name, []byte("redis_env = \"REDIS\"\n"+strings.Replace(plain, "URL", "http://h", 1)+"key_env = \"PROVIDER_KEY\"\n"), 0o600)
	for _, address := range []string{"redis://:canary@127.0.0.1:1/0", "canary"} {
		var stderr bytes.Buffer
		env := func(name string) string {
			if name == "REDIS" {
				return address
			}
			return secrets1(name)
		}
		if code := Run([]string{"-config", name}, env, nil, &stderr); code != ExitUsage || !strings.Contains(stderr.String(), "redis_env") || strings.Contains(stderr.String(), "canary") {
			t.Errorf("code %d, %s", code, stderr.String())
		}
	}
}

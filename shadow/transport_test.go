package shadow_test

import (
	"fmt"
	"io"
	"net/http"
	"strings"
	"sync"
	"testing"
	"testing/synctest"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/providertest"
	"github.com/tripmeter/tripmeter/shadow"
	"github.com/tripmeter/tripmeter/transport"
)

// under puts a client under limits on paper.
func under(base http.RoundTripper, o limit.Options, attempts int) (*http.Client, *shadow.Ledger, error) {
	paper, err := limit.New(o)
	if err != nil {
		return nil, nil, err
	}
	l := shadow.New(paper, shadow.Options{})
	b, err := budget.New(budget.Options{Ledger: l})
	if err != nil {
		return nil, nil, err
	}
	rt, err := transport.New(transport.Options{Base: base, Scopes: transport.Scopes{Budget: b}, Attempts: attempts})
	if err != nil {
		return nil, nil, err
	}
	return &http.Client{Transport: rt}, l, nil
}

func ask(c *http.Client) (status int, err error) {
	resp, err := c.Post("http://box/v1/chat/completions", "application/json",
		strings.NewReader(`{"model":"m","max_tokens":50,"messages":[{"role":"user","content":"hello"}]}`))
	if err != nil {
		return 0, err
	}
	io.Copy(io.Discard, resp.Body)
	resp.Body.Close()
	return resp.StatusCode, nil
}

// A provider takes one a second. Ten calls at once: in truth nine are refused, and
// on paper each of the nine would have waited and been spared that.
func TestRefusalsOfAProviderWouldHaveBeenSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Limits: providertest.Limits{RPM: 60}, Capacity: time.Second, Output: providertest.Constant(5)})
		if err != nil {
			t.Fatal(err)
		}
		c, l, err := under(p.RoundTripper(), limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(60)}}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		start := time.Now()
		var all sync.WaitGroup
		for range 10 {
			all.Go(func() {
				if _, err := ask(c); err != nil {
					t.Error(err)
				}
			})
		}
		all.Wait()
		if d := time.Since(start); d != 0 {
			t.Errorf("calls were delayed by %v", d)
		}
		time.Sleep(time.Minute)
		r := l.Report()
		if s := p.Stats(); s.Refused != 9 || r.RateLimited != 9 || r.Spared != 9 || r.Asked != 10 || r.Waiting != 0 {
			t.Errorf("the provider refused %d; %+v", s.Refused, r)
		}
	})
}

// The provider takes less than the paper says: refusals of calls that the paper
// would have sent as well are not spared, which tells that the limit is too high.
// (With headers the limit would be learned, and the paper be right.)
func TestRefusalsUnderTooHighALimitAreNotSpared(t *testing.T) {
	synctest.Test(t, func(t *testing.T) {
		p, err := providertest.New(providertest.Options{Limits: providertest.Limits{RPM: 60}, Capacity: time.Second, Dialect: providertest.NoHeaders})
		if err != nil {
			t.Fatal(err)
		}
		c, l, err := under(p.RoundTripper(), limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(60), Burst: 60}}}, 1)
		if err != nil {
			t.Fatal(err)
		}
		for range 10 {
			if _, err := ask(c); err != nil {
				t.Fatal(err)
			}
		}
		if r := l.Report(); r.RateLimited != 9 || r.Spared != 0 || r.Waited != 0 {
			t.Errorf("%+v", r)
		}
	})
}

func Example() {
	provider, err := providertest.New(providertest.Options{Output: providertest.Constant(5)})
	if err != nil {
		fmt.Println(err)
		return
	}
	client, ledger, err := under(provider.RoundTripper(), limit.Options{Limits: []limit.Limit{{Name: "rpm", Rate: limit.PerMinute(1)}}}, 3)
	if err != nil {
		fmt.Println(err)
		return
	}
	defer ledger.Close()
	for range 3 {
		if _, err := ask(client); err != nil {
			fmt.Println(err)
			return
		}
	}
	fmt.Println(ledger.Report())
	// Output:
	// 3 attempts asked. With these limits 2 would have waited.
	// The provider refused 0 (429); 0 would have been spared.
}

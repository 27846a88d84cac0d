package serve

import (
	"bytes"
	"cmp"
	"context"
	"crypto/sha256"
	"encoding/json"
	"errors"
	"fmt"
	"io"
	"log"
	"net/http"
	"net/http/httputil"
	"os"
	"path"
	"slices"
	"strconv"
	"strings"
	"sync"
	"sync/atomic"
	"time"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/cmd/internal/store"
	"github.com/tripmeter/tripmeter/estimate"
	seen "github.com/tripmeter/tripmeter/meter"
)

// gateway is the handler that clients reach. It may be reloaded while it works.
type gateway struct {
	base  http.RoundTripper // to the providers; outlives every configuration
	log   *log.Logger
	stats *stats
	seen  *seen.Meter // of all calls, for the page
	store *shared     // shared budgets; nil: they are in this process

	now atomic.Pointer[table]
}

// table is one configuration at work.
type table struct {
	c         *Config
	upstreams []*upstream
	tenants   map[[sha256.Size]byte]*Tenant
}

// upstream is one provider at work.
type upstream struct {
	*Upstream
	g     *gateway
	proxy *httputil.ReverseProxy

	m *meter.Meter
}

func newGateway(c *Config, base http.RoundTripper, logger *log.Logger, budgets *shared) (*gateway, error) {
	g := &gateway{base: base, log: logger, seen: seen.New(seen.Options{Tenant: meter.TenantOf}), store: budgets}
	g.stats = newStats(g.seen)
	return g, g.load(c)
}

// baseTransport is how providers are reached. It asks for no compression that
// the client did not ask for, so that bytes pass as they are.
func baseTransport() *http.Transport {
	t := http.DefaultTransport.(*http.Transport).Clone()
	t.DisableCompression = true
	t.MaxIdleConns, t.MaxIdleConnsPerHost = 0, 1024
	t.WriteBufferSize, t.ReadBufferSize = 32<<10, 32<<10
	return t
}

// load puts a configuration to work. An upstream keeps its budget: other limits
// and tenants hold for it from now on, and what was used, owed and paused stays.
// One whose provider, charge rule, capacity or kind of budget is another begins
// empty, so that no reload makes credit.
func (g *gateway) load(c *Config) error {
	old := g.now.Load()
	t := &table{c: c, tenants: map[[sha256.Size]byte]*Tenant{}}
	for i := range c.Tenants {
		t.tenants[c.Tenants[i].hash] = &c.Tenants[i]
	}
	kept := map[*upstream]bool{}
	for i := range c.Upstreams {
		u := &upstream{Upstream: &c.Upstreams[i], g: g}
		mc := u.config()
		if old != nil {
			for _, was := range old.upstreams {
				if was.Name != u.Name || was.base.Host != u.base.Host {
					continue
				}
				mc.StartEmpty = g.store == nil // else the credit is the store's
				m, ok, err := was.m.Reload(mc)
				if err != nil {
					return fmt.Errorf("upstream %s: %w", u.Name, err)
				}
				if ok {
					u.m, kept[was] = m, true
				}
			}
		}
		if u.m == nil {
			var err error
			if u.m, err = meter.New(mc); err != nil {
				return fmt.Errorf("upstream %s: %w", u.Name, err)
			}
		}
		u.proxy = &httputil.ReverseProxy{
			Rewrite: u.rewrite, Transport: u, FlushInterval: -1, BufferPool: buffers{},
			ErrorHandler: u.refuse, ErrorLog: g.log,
		}
		t.upstreams = append(t.upstreams, u)
	}
	// The longest path first; of equal ones the order of the file.
	slices.SortStableFunc(t.upstreams, func(a, b *upstream) int { return len(b.Path) - len(a.Path) })
	g.now.Store(t)
	if old != nil {
		for _, was := range old.upstreams {
			if !kept[was] { // its calls have time to end
				time.AfterFunc(time.Hour, was.m.Close)
			}
		}
	}
	return nil
}

// buffers are what answers are copied through.
type buffers struct{}

var pool = sync.Pool{New: func() any { b := make([]byte, 32<<10); return &b }}

func (buffers) Get() []byte  { return *pool.Get().(*[]byte) }
func (buffers) Put(b []byte) { pool.Put(&b) }

// call is what the gateway knows of one call. It is in the call's context.
type call struct {
	model     string
	wait      time.Duration
	line      *inLine
	anthropic bool
}

type callKey struct{}

func callOf(r *http.Request) *call { c, _ := r.Context().Value(callKey{}).(*call); return c }

// ServeHTTP passes a call on in its turn.
func (g *gateway) ServeHTTP(w http.ResponseWriter, r *http.Request) {
	t := g.now.Load()
	c := &call{anthropic: r.Header.Get("Anthropic-Version") != "" || strings.HasSuffix(r.URL.Path, "/messages")}
	token := keyOf(r)
	tenant, known := (*Tenant)(nil), true
	if len(t.tenants) > 0 {
		tenant, known = t.tenants[sha256.Sum256([]byte(token))]
	}
	if !known {
		g.deny(w, c, http.StatusUnauthorized, "invalid_api_key", "tripmeter: this gateway does not know the token; ask its operator for one")
		return
	}
	if r.Method == http.MethodConnect || !strings.HasPrefix(r.URL.Path, "/") {
		g.deny(w, c, http.StatusBadRequest, "invalid_request", "tripmeter: the request must name a path")
		return
	}
	control := http.NewResponseController(w)
	stall := t.c.StallTimeout.or(time.Minute)
	control.SetWriteDeadline(time.Now().Add(stall))
	control.SetReadDeadline(time.Now().Add(t.c.ReadTimeout.or(time.Minute)))
	if err := c.read(w, r, int64(t.c.MaxBody)); err != nil {
		var large *http.MaxBytesError
		switch {
		case errors.As(err, &large):
			g.deny(w, c, http.StatusRequestEntityTooLarge, "request_too_large", fmt.Sprintf("tripmeter: the request body is larger than max_body, %d bytes", t.c.MaxBody))
		case r.Context().Err() != nil && !errors.Is(err, os.ErrDeadlineExceeded):
			panic(http.ErrAbortHandler)
		default:
			g.deny(w, c, http.StatusRequestTimeout, "request_timeout", "tripmeter: the request body did not come whole")
		}
		return
	}
	if r.GetBody != nil || r.Body == nil || r.Body == http.NoBody {
		// The request is here: the client may be silent from now on. net/http would
		// take the end of a deadline for the end of the client.
		control.SetReadDeadline(time.Time{})
	}
	u := t.route(r.URL.Path, c.model, tenant)
	if u == nil {
		g.deny(w, c, http.StatusNotFound, "no_upstream", "tripmeter: no upstream of this gateway has this path and model")
		return
	}
	c.wait = time.Duration(u.MaxWait)
	if d, ok := bearable(r.Header); ok {
		c.wait = min(c.wait, d)
	}
	ctx := context.WithValue(r.Context(), callKey{}, c)
	batch, name := strings.EqualFold(r.Header.Get(PriorityHeader), "batch"), ""
	if tenant != nil {
		batch, name = batch || tenant.Priority == "batch", tenant.Name
	}
	line, leave := waitFor(meter.WithCaller(ctx, name, batch), c.wait)
	defer leave()
	c.line = line
	w = &guarded{ResponseWriter: w, control: control, stall: stall}
	u.proxy.ServeHTTP(w, r.WithContext(line))
	control.SetWriteDeadline(time.Now().Add(stall)) // for what net/http still writes
}

// read reads a JSON body into memory, so that its model is known and it can be
// sent again. Others stream.
func (c *call) read(w http.ResponseWriter, r *http.Request, limit int64) error {
	if r.Body == nil || r.Body == http.NoBody {
		return nil
	}
	r.Body = http.MaxBytesReader(w, r.Body, limit)
	if !estimate.Readable(r.Header.Get("Content-Type")) {
		return nil
	}
	body, err := io.ReadAll(r.Body)
	if err != nil {
		return err
	}
	r.Body.Close()
	r.GetBody = func() (io.ReadCloser, error) { return io.NopCloser(bytes.NewReader(body)), nil }
	r.Body, _ = r.GetBody()
	r.ContentLength, r.TransferEncoding = int64(len(body)), nil
	r.Header.Del("Transfer-Encoding")
	c.model = meter.ModelOf(body, r.URL.Path)
	return nil
}

// keyOf is the key or token that a client sent.
func keyOf(r *http.Request) string {
	bearer := r.Header.Get("Authorization")
	if scheme, key, ok := strings.Cut(bearer, " "); ok && strings.EqualFold(scheme, "Bearer") {
		bearer = strings.TrimSpace(key)
	}
	return cmp.Or(r.Header.Get("X-Api-Key"), r.Header.Get("Api-Key"), r.Header.Get("X-Goog-Api-Key"), bearer)
}

// route finds the upstream of a call, nil if there is none.
func (t *table) route(p, model string, tenant *Tenant) *upstream {
	for _, u := range t.upstreams {
		if u.Path != "" && p != u.Path && !strings.HasPrefix(p, u.Path+"/") {
			continue
		}
		if tenant != nil && len(tenant.Upstreams) > 0 && !slices.Contains(tenant.Upstreams, u.Name) {
			continue
		}
		if len(u.Models) > 0 && !slices.ContainsFunc(u.Models, func(pattern string) bool {
			ok, _ := path.Match(pattern, model)
			return ok
		}) {
			continue
		}
		return u
	}
	return nil
}

// secrets are the fields in which clients send keys.
var secrets = []string{"Authorization", "X-Api-Key", "Api-Key", "X-Goog-Api-Key"}

// rewrite makes the request to the provider of the client's.
func (u *upstream) rewrite(p *httputil.ProxyRequest) {
	p.Out.URL.Path = strings.TrimPrefix(p.Out.URL.Path, u.Path)
	p.Out.URL.RawPath = strings.TrimPrefix(p.Out.URL.RawPath, u.Path)
	p.SetURL(u.base)
	p.Out.Header.Del(MaxWaitHeader)
	p.Out.Header.Del(PriorityHeader)
	if u.key == "" {
		return
	}
	for _, name := range secrets {
		p.Out.Header.Del(name)
	}
	if q := p.Out.URL.Query(); q.Has("key") { // Gemini's way; a tenant's token must not travel
		q.Del("key")
		p.Out.URL.RawQuery = q.Encode()
	}
	switch u.Provider {
	case "anthropic":
		p.Out.Header.Set("X-Api-Key", u.key)
	case "azure":
		p.Out.Header.Set("Api-Key", u.key)
	case "gemini":
		p.Out.Header.Set("X-Goog-Api-Key", u.key)
	default:
		p.Out.Header.Set("Authorization", "Bearer "+u.key)
	}
}

// RoundTrip sends a call within the limits of its budget.
func (u *upstream) RoundTrip(r *http.Request) (*http.Response, error) {
	resp, err := u.m.RoundTrip(r)
	u.g.stats.answered(u.Name, resp, err)
	return resp, err
}

// config is how the budget is made, and the way to the provider.
func (u *upstream) config() meter.Config {
	c := u.meter()
	c.Base, c.MaxRetryAfter, c.MaxBody = u.g.base, time.Duration(u.MaxWait), u.maxBody
	c.Name, c.Seen = u.Name, u.g.seen
	if s := u.g.store; s != nil {
		c.Store, c.Secret = s.Ledger, store.Secret(s.secret, u.key)
	}
	c.Hooks = meter.Hooks{Granted: func(r *http.Request, _ time.Duration) { callOf(r).line.granted() }}
	return c
}

// refuse answers a call that was not passed on, or whose provider did not
// answer.
func (u *upstream) refuse(w http.ResponseWriter, r *http.Request, err error) {
	c := callOf(r)
	g := u.g
	refusal, ours := meter.RefusalOf(err)
	switch {
	case ours && refusal.TooLarge:
		g.deny(w, c, http.StatusRequestEntityTooLarge, "request_too_large", safe(err)+"; no wait can admit it")
	case ours:
		h := w.Header()
		wait := refusal.Wait
		if wait > 0 {
			h.Set("Retry-After", strconv.FormatInt(int64((wait+time.Second-1)/time.Second), 10))
			h.Set("Retry-After-Ms", strconv.FormatInt(int64((wait+time.Millisecond-1)/time.Millisecond), 10))
		}
		if !u.SDKRetries {
			h.Set("X-Should-Retry", "false")
		}
		why := fmt.Sprintf("tripmeter: the wait would be %v, longer than the %v that this call can bear", wait.Round(time.Millisecond), c.wait)
		if refusal.Full {
			why = "tripmeter: the line is full"
		}
		g.deny(w, c, http.StatusTooManyRequests, "gateway_wait_too_long", why)
	case c.line.Context.Err() != nil: // the client has left
		panic(http.ErrAbortHandler)
	case errors.Is(err, context.DeadlineExceeded):
		g.deny(w, c, http.StatusTooManyRequests, "gateway_wait_too_long", "tripmeter: the call waited for as long as it can bear")
	default:
		if !u.SDKRetries {
			w.Header().Set("X-Should-Retry", "false")
		}
		g.log.Printf("upstream %s: %s", u.Name, safe(err))
		g.deny(w, c, http.StatusBadGateway, "upstream_unreachable", "tripmeter: the provider cannot be reached")
	}
}

// safe is the beginning of an error, up to a quote or a query.
func safe(err error) string {
	text := err.Error()
	if i := strings.IndexAny(text, "\"?"); i >= 0 {
		text = strings.TrimSpace(text[:i])
	}
	return text
}

// deny answers with an error in the shape of the client's API.
func (g *gateway) deny(w http.ResponseWriter, c *call, status int, code, message string) {
	g.stats.refused(code)
	var v any
	if c.anthropic {
		kind := map[int]string{401: "authentication_error", 404: "not_found_error", 413: "request_too_large", 429: "rate_limit_error"}[status]
		v = map[string]any{"type": "error", "error": map[string]any{"type": cmp.Or(kind, "api_error"), "message": message}}
	} else {
		v = map[string]any{"error": map[string]any{"message": message, "type": "tripmeter", "param": nil, "code": code}}
	}
	b, err := json.Marshal(v)
	if err != nil {
		panic(err) // strings only
	}
	w.Header().Set("Content-Type", "application/json")
	w.Header().Set("Content-Length", strconv.Itoa(len(b)+1))
	w.WriteHeader(status)
	w.Write(append(b, '\n'))
}

// guarded gives a client a while to take each piece of an answer; there is no
// bound on the whole.
type guarded struct {
	http.ResponseWriter
	control *http.ResponseController
	stall   time.Duration
	began   bool
}

// Unwrap is for http.ResponseController.
func (g *guarded) Unwrap() http.ResponseWriter { return g.ResponseWriter }

func (g *guarded) WriteHeader(status int) {
	if !g.began {
		g.began = true
		g.control.SetReadDeadline(time.Time{}) // of a request that streams
	}
	g.ResponseWriter.WriteHeader(status)
}

func (g *guarded) Write(b []byte) (int, error) {
	g.control.SetWriteDeadline(time.Now().Add(g.stall))
	return g.ResponseWriter.Write(b)
}

// Flush sends what was written. A client that has left is seen by the next
// Write.
func (g *guarded) Flush() {
	g.control.SetWriteDeadline(time.Now().Add(g.stall))
	g.control.Flush()
}

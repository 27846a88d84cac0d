package serve

import (
	"bytes"
	"cmp"
	"crypto/sha256"
	"encoding/hex"
	"errors"
	"fmt"
	"net"
	"net/url"
	"path"
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/pelletier/go-toml/v2"

	"github.com/tripmeter/tripmeter/cmd/internal/meter"
	"github.com/tripmeter/tripmeter/profile"
)

// Config is the configuration file. An unknown key is an error with its line.
type Config struct {
	// Listen is where clients come; "" is 127.0.0.1:8080.
	Listen string `toml:"listen"`
	// Admin is where /healthz, /readyz and /metrics are; "" is 127.0.0.1:9464,
	// "off" is nowhere.
	Admin string `toml:"admin"`
	// MaxBody is the largest request body; 0 is 32 MB.
	MaxBody size `toml:"max_body"`
	// MaxHeader is the largest request header; 0 is 64 kB.
	MaxHeader size `toml:"max_header"`
	// ReadTimeout is how long a client may take to send a request; 0 is 1m.
	ReadTimeout span `toml:"read_timeout"`
	// StallTimeout is how long a client may leave an answer unread; 0 is 1m.
	StallTimeout span `toml:"stall_timeout"`
	// Drain is how long SIGTERM waits for calls that are under way; 0 is 10m.
	Drain span `toml:"drain"`
	// RedisEnv names the environment variable with the address of a Redis or
	// Valkey, such as redis://127.0.0.1:6379/0: gateways that use the same one share
	// their budgets. Unset, budgets are in this process.
	RedisEnv string `toml:"redis_env"`
	// SecretEnv names the environment variable with a secret that is the same in
	// all of them: with Redis, and keys that pass through, it must be set.
	SecretEnv string `toml:"secret_env"`
	// Upstreams are the providers.
	Upstreams []Upstream `toml:"upstream"`
	// Tenants, if there are any, are the only clients that are served.
	Tenants []Tenant `toml:"tenant"`

	redis, secret string
}

// An Upstream is one provider. Path and Models choose it: the longest path
// that fits, and among those of one path the first whose models fit.
type Upstream struct {
	Name string `toml:"name"`
	URL  string `toml:"url"`
	// Path is what a request's path begins with; it is taken off. "" is any.
	Path string `toml:"path"`
	// Models are patterns of model names, with *. None is any.
	Models []string `toml:"models"`
	// KeyEnv names the environment variable with the provider's key. Without
	// it the client's own key passes.
	KeyEnv string `toml:"key_env"`
	// Provider is a profile's name; "" is found by host.
	Provider string `toml:"provider"`
	Charge   string `toml:"charge"`
	// Budget is whose limits they are where keys pass through: "key", each
	// key's own (default), or "upstream", all keys' together.
	Budget    string `toml:"budget"`
	RPM       int64  `toml:"rpm"`
	TPM       int64  `toml:"tpm"`
	InputTPM  int64  `toml:"input_tpm"`
	OutputTPM int64  `toml:"output_tpm"`
	// InFlight is how many calls may be under way, Queue how many may wait, of all
	// keys together.
	InFlight int `toml:"in_flight"`
	Queue    int `toml:"queue"`
	// Burst is the capacity of the limits, as a time of their rate.
	Burst span `toml:"burst"`
	// MaxWait is the longest wait in the line; 0 is 10m. A longer one is refused
	// at once.
	MaxWait  span `toml:"max_wait"`
	Attempts int  `toml:"attempts"`
	// SDKRetries leaves the retries of official SDKs on; they come in as new
	// calls. Off, answers that they would repeat say x-should-retry: false.
	SDKRetries bool                 `toml:"sdk_retries"`
	Limits     map[string]modelRate `toml:"limits"`

	base    *url.URL
	key     string
	tenants map[string]meter.Tenant
	maxBody int64 // Config.MaxBody
}

// modelRate is the limits of one model.
type modelRate struct {
	RPM       int64 `toml:"rpm"`
	TPM       int64 `toml:"tpm"`
	InputTPM  int64 `toml:"input_tpm"`
	OutputTPM int64 `toml:"output_tpm"`
}

// A Tenant is a client with a token of its own, which it sends where it would
// send the provider's key.
type Tenant struct {
	Name string `toml:"name"`
	// TokenEnv names the environment variable with the token; TokenSHA256 is
	// its hash in hex. One of them must be set.
	TokenEnv    string `toml:"token_env"`
	TokenSHA256 string `toml:"token_sha256"`
	// Upstreams are the names of those it may use; none is all.
	Upstreams []string `toml:"upstreams"`
	// Weight is its share of a limit that other tenants wait for too; 0 is 1.
	Weight int `toml:"weight"`
	// Priority is "interactive" (default), or "batch": behind the others, with a
	// tenth of each limit. A client may ask for batch with PriorityHeader.
	Priority string `toml:"priority"`
	// Limits of its own at each upstream; 0 is none.
	RPM       int64 `toml:"rpm"`
	TPM       int64 `toml:"tpm"`
	InputTPM  int64 `toml:"input_tpm"`
	OutputTPM int64 `toml:"output_tpm"`

	hash [sha256.Size]byte
}

// span is a time such as "30s".
type span time.Duration

func (s *span) UnmarshalText(b []byte) error {
	d, err := time.ParseDuration(string(b))
	if err != nil || d < 0 {
		return fmt.Errorf("%q is not a time such as 30s", b)
	}
	*s = span(d)
	return nil
}

func (s span) or(d time.Duration) time.Duration { return cmp.Or(time.Duration(s), d) }

// size is a number of bytes such as "32MB".
type size int64

func (s *size) UnmarshalText(b []byte) error {
	text, unit := strings.ToLower(strings.TrimSpace(string(b))), int64(1)
	for _, u := range []struct {
		end string
		n   int64
	}{{"kb", 1 << 10}, {"mb", 1 << 20}, {"gb", 1 << 30}, {"b", 1}} {
		if t, ok := strings.CutSuffix(text, u.end); ok {
			text, unit = strings.TrimSpace(t), u.n
			break
		}
	}
	n, err := strconv.ParseInt(text, 10, 64)
	if err != nil || n < 0 || n > 1<<33/unit {
		return fmt.Errorf("%q is not a size such as 32MB", b)
	}
	*s = size(n * unit)
	return nil
}

// Parse reads a configuration. env gives the secrets. The error names the line
// or the key that is wrong, and no secret.
func Parse(data []byte, env func(string) string) (*Config, error) {
	var c Config
	d := toml.NewDecoder(bytes.NewReader(data)).DisallowUnknownFields()
	if err := d.Decode(&c); err != nil {
		return nil, located(err)
	}
	return &c, c.check(env)
}

// located says where a TOML error is.
func located(err error) error {
	var strict *toml.StrictMissingError
	if errors.As(err, &strict) && len(strict.Errors) > 0 {
		e := strict.Errors[0]
		row, _ := e.Position()
		return fmt.Errorf("line %d: unknown key %q", row, strings.Join(e.Key(), "."))
	}
	var at *toml.DecodeError
	if errors.As(err, &at) {
		row, column := at.Position()
		return fmt.Errorf("line %d, column %d: %s", row, column, strings.TrimPrefix(at.Error(), "toml: "))
	}
	return err
}

func (c *Config) check(env func(string) string) error {
	c.Listen = cmp.Or(c.Listen, "127.0.0.1:8080")
	c.Admin = cmp.Or(c.Admin, "127.0.0.1:9464")
	c.MaxBody = cmp.Or(c.MaxBody, 32<<20)
	c.MaxHeader = cmp.Or(c.MaxHeader, 64<<10)
	for key, addr := range map[string]string{"listen": c.Listen, "admin": c.Admin} {
		if _, _, err := net.SplitHostPort(addr); err != nil && !(key == "admin" && addr == "off") {
			return fmt.Errorf("%s: %q must be like 127.0.0.1:8080", key, addr)
		}
	}
	if len(c.Upstreams) == 0 {
		return errors.New("there is no [[upstream]]")
	}
	if c.RedisEnv != "" {
		if c.redis = env(c.RedisEnv); c.redis == "" {
			return fmt.Errorf("redis_env: the environment variable %s is not set", c.RedisEnv)
		}
	}
	if c.SecretEnv != "" {
		if c.secret = env(c.SecretEnv); len(c.secret) < 16 {
			return fmt.Errorf("secret_env: the environment variable %s must hold at least 16 characters", c.SecretEnv)
		}
	}
	if err := c.checkUpstreams(env); err != nil {
		return err
	}
	return c.checkTenants(env)
}

func (c *Config) checkUpstreams(env func(string) string) error {
	tenants := map[string]meter.Tenant{}
	for _, t := range c.Tenants {
		tenants[t.Name] = meter.Tenant{Weight: t.Weight, Limits: meter.Limits{RPM: t.RPM, TPM: t.TPM, InputTPM: t.InputTPM, OutputTPM: t.OutputTPM}}
	}
	names := map[string]bool{}
	for i := range c.Upstreams {
		u := &c.Upstreams[i]
		u.tenants, u.maxBody = tenants, int64(c.MaxBody)
		if u.Name == "" || names[u.Name] {
			return fmt.Errorf("upstream %d: name %q must be set and be its own", i+1, u.Name)
		}
		names[u.Name] = true
		if err := u.check(env, len(c.Tenants) > 0); err != nil {
			return fmt.Errorf("upstream %s: %w", u.Name, err)
		}
		if c.redis != "" && u.key == "" && c.secret == "" {
			return fmt.Errorf("upstream %s: with redis_env and without key_env, set secret_env", u.Name)
		}
	}
	return nil
}

func (c *Config) checkTenants(env func(string) string) error {
	names, hashes := map[string]bool{}, map[[sha256.Size]byte]bool{}
	for i := range c.Tenants {
		t := &c.Tenants[i]
		if t.Name == "" || names[t.Name] {
			return fmt.Errorf("tenant %d: name %q must be set and be its own", i+1, t.Name)
		}
		names[t.Name] = true
		if err := t.check(env); err != nil {
			return fmt.Errorf("tenant %s: %w", t.Name, err)
		}
		if hashes[t.hash] {
			return fmt.Errorf("tenant %s: another tenant has the same token", t.Name)
		}
		hashes[t.hash] = true
		for _, name := range t.Upstreams {
			if !slices.ContainsFunc(c.Upstreams, func(u Upstream) bool { return u.Name == name }) {
				return fmt.Errorf("tenant %s: upstreams: there is no upstream %q", t.Name, name)
			}
		}
	}
	return nil
}

func (u *Upstream) check(env func(string) string, tenants bool) error {
	base, err := meter.ParseBase(u.URL)
	if err != nil {
		return fmt.Errorf("url %w", err)
	}
	u.base = base
	if u.Path != "" && (!strings.HasPrefix(u.Path, "/") || path.Clean(u.Path) != strings.TrimSuffix(u.Path, "/") && u.Path != "/") {
		return fmt.Errorf("path %q must be like /openai", u.Path)
	}
	u.Path = strings.TrimSuffix(u.Path, "/")
	for _, m := range u.Models {
		if _, err := path.Match(m, ""); err != nil || m == "" {
			return fmt.Errorf("models: %q is no pattern", m)
		}
	}
	if u.KeyEnv != "" {
		if u.key = env(u.KeyEnv); u.key == "" {
			return fmt.Errorf("key_env: the environment variable %s is not set", u.KeyEnv)
		}
	} else if tenants {
		return errors.New("with tenants the key must be held here: set key_env")
	}
	if u.Provider == "" {
		u.Provider = profile.ForHost(base.Host).Name
	}
	p, ok := profile.ByName(u.Provider)
	if !ok {
		return fmt.Errorf("provider %q is not known; there are %s", u.Provider, strings.Join(profile.Names(), ", "))
	}
	u.Provider = p.Name
	switch u.Budget {
	case "":
		u.Budget = "key"
	case "key", "upstream":
	default:
		return fmt.Errorf("budget is %q: it must be key or upstream", u.Budget)
	}
	if err := notNegative(u.RPM, u.TPM, u.InputTPM, u.OutputTPM); err != nil {
		return err
	}
	for model, l := range u.Limits {
		if err := notNegative(l.RPM, l.TPM, l.InputTPM, l.OutputTPM); err != nil {
			return fmt.Errorf("limits.%s: %w", model, err)
		}
	}
	if u.InFlight < 0 || u.Queue < 0 || u.Attempts < 0 {
		return errors.New("in_flight, queue and attempts must not be negative")
	}
	u.Queue = cmp.Or(u.Queue, 10_000)
	u.MaxWait = cmp.Or(u.MaxWait, span(10*time.Minute))
	if _, err := meter.New(u.meter()); err != nil {
		return err
	}
	return nil
}

// notNegative looks at limits in the order of their keys.
func notNegative(limits ...int64) error {
	for i, n := range limits {
		if n < 0 {
			return fmt.Errorf("%s is %d: it must not be negative; 0 is learned", []string{"rpm", "tpm", "input_tpm", "output_tpm", "weight"}[i], n)
		}
	}
	return nil
}

// meter is the part of an upstream that its budget depends on. The longest wait is
// not: each call brings its own as a deadline.
func (u *Upstream) meter() meter.Config {
	c := meter.Config{
		Limits:   meter.Limits{RPM: u.RPM, TPM: u.TPM, InputTPM: u.InputTPM, OutputTPM: u.OutputTPM},
		Models:   map[string]meter.Limits{},
		Together: u.Budget == "upstream" && u.key == "", Tenants: u.tenants,
		Provider: u.Provider, Charge: u.Charge, Burst: time.Duration(u.Burst), InFlight: u.InFlight, MaxQueue: u.Queue,
		Attempts: u.Attempts, StopSDKRetries: !u.SDKRetries,
	}
	for model, l := range u.Limits {
		c.Models[model] = meter.Limits(l)
	}
	return c
}

func (t *Tenant) check(env func(string) string) error {
	if err := notNegative(t.RPM, t.TPM, t.InputTPM, t.OutputTPM, int64(t.Weight)); err != nil {
		return err
	}
	switch t.Priority {
	case "", "interactive", "batch":
	default:
		return fmt.Errorf("priority is %q: it must be interactive or batch", t.Priority)
	}
	switch {
	case (t.TokenEnv == "") == (t.TokenSHA256 == ""):
		return errors.New("set one of token_env and token_sha256")
	case t.TokenEnv != "":
		token := env(t.TokenEnv)
		if len(token) < 16 {
			return fmt.Errorf("token_env: the environment variable %s must hold a token of at least 16 characters", t.TokenEnv)
		}
		t.hash = sha256.Sum256([]byte(token))
	default:
		b, err := hex.DecodeString(t.TokenSHA256)
		if err != nil || len(b) != sha256.Size {
			return errors.New("token_sha256 must be 64 hex digits")
		}
		t.hash = [sha256.Size]byte(b)
	}
	return nil
}

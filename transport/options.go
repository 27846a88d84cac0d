package transport

import (
	"fmt"
	"log/slog"
	"net/http"
	"reflect"
	"strings"
	"time"

	"github.com/tripmeter/tripmeter/budget"
	"github.com/tripmeter/tripmeter/estimate"
	"github.com/tripmeter/tripmeter/limit"
	"github.com/tripmeter/tripmeter/profile"
	"github.com/tripmeter/tripmeter/retry"
)

// Options configure a [Transport]. Every field may be zero, which is unset:
// unlimited for a limit, the default for anything else. The zero Options learn
// the limits from the answers' headers. They are copied by [New].
type Options struct {
	// Base sends the requests; nil is [http.DefaultTransport].
	Base http.RoundTripper

	// Requests and tokens allowed a minute and a day, and input and output
	// tokens apart where the provider limits them apart. They bound all that
	// passes to one account together, over all its models; each host and each
	// credential is an account. A limit set here is a ceiling: headers may lower
	// it, nothing raises it. Unset limits are learned from headers, from the first
	// answer on, where answers say that they belong: mostly for each model.
	RPM, RPD, TPM, TPD, InputTPM, OutputTPM int64

	// Limits are further limits, of any window. Each may have a Burst of its own, in
	// units: so the bursts of requests and of tokens are set apart.
	Limits []limit.Limit

	// Burst is the capacity of every limit of a minute or less, as a time of
	// its rate: how much may go in one instant after idling. Set by hand it
	// bounds the size of a call too: one that costs more is refused at once.
	// Unset, it begins as the profile says: ten seconds for tokens and one for
	// requests, as a rule. It grows where traffic shows that more may go at once.
	// A larger call than that, up to the limit itself, waits for a full bucket.
	//
	// It is one time for requests and tokens. [limit.Limit.Burst] in Limits goes before
	// it, for that limit. What learned limits begin with is
	// [profile.Profile.RequestBurst] and TokenBurst.
	Burst time.Duration

	// MaxInFlight is how many calls may be under way, to the end of the body.
	MaxInFlight int

	// MaxQueue is how many calls may wait in the line; one more is refused.
	MaxQueue int

	// MaxWait is the longest a call waits in the line.
	MaxWait time.Duration

	// Scopes say what a call belongs to beside its account, and what binds there:
	// models, tenants, priorities, a budget that several Transports share.
	Scopes Scopes

	// Provider says how the provider limits and charges. Unset, it is found by
	// the host of each request. Set, it is that of every host. A provider that
	// charges in another way is [profile.Profile.Charging].
	Provider profile.Profile

	// Counter counts the text of prompts; nil is the fast count, which needs no
	// vocabulary. Package estimate/tiktoken has an exact one.
	Counter estimate.Counter

	// MaxBody is the largest request body, in bytes, that is read into memory
	// before it is sent, to price it; 0 is 4 MiB. These are priced by size and
	// streamed: larger bodies, uploads, other types than JSON, bodies with a
	// trailer, and bodies that have not ended after a tenth of a second. A body
	// that http.NewRequest made from memory is priced where it lies, up to 32 MiB.
	MaxBody int64

	// Attempts is how often a call may go out, the first included. Set by hand, it
	// holds for all answers. Unset, it is 3, and refusals for the rate are not among
	// them: those are bounded by ten minutes, or the context's end, and each time the
	// call waits in line again. Retry.RateLimitFor, if set, is that time also where
	// Attempts is set to 2 or more.
	Attempts int

	// Retry is the rest of what is tried again, and when. Its own Attempts must be
	// unset.
	Retry retry.Options

	// StopSDKRetries sets "X-Should-Retry: false" on responses that the official
	// SDKs would try again: 408, 409, 429, 5xx, and those with "X-Should-Retry:
	// true". openai-go and anthropic-sdk-go obey it. A Transport makes no other
	// change to a response. It cannot stop them when there is no response; their
	// own option.WithMaxRetries(0) can.
	StopSDKRetries bool

	// Skip lets matching requests pass unlimited and uncounted; nil skips none.
	Skip func(*http.Request) bool

	// FollowRule changes the charge rule when headers show for long enough
	// that the provider charges by another one. The rule of the profile "unknown" is
	// always changed. Trace.Doubted is called either way.
	FollowRule bool

	// Trace has hooks into the life of a call.
	Trace Trace
}

// Scopes are what calls have in common beside the account, and what binds there:
// the fields of [Options] that one program for several models, keys or users needs.
// The zero Scopes have none: each host and each credential is an account, and all
// calls are those of one tenant.
type Scopes struct {
	// Models are limits of models, beside those of the account.
	Models []ModelOptions

	// Account names the account that a request is charged to. Within a host, each
	// account has limits of its own. "" leaves it to the credential. Set it where
	// several keys share one account, or one key several. It is shown: it must be
	// no secret. Nil leaves all to the credential.
	Account func(*http.Request) string

	// Tenant names the tenant for whom a request is sent; "" is the common tenant.
	// Those who wait for the same limit share it fairly by tenant, in tokens. The
	// name is shown: for a name made of a token use [budget.Budget.Hash].
	// [WithTenant] and [Transport.Tenant] count before it.
	Tenant func(*http.Request) string

	// Tenants says what a tenant may have that [Transport.SetTenant] has not
	// named. It may be called by several goroutines, again for a tenant that was
	// idle. Options that cannot be are those of the zero TenantOptions. Nil is the
	// zero TenantOptions.
	Tenants func(name string) TenantOptions

	// Class is the priority of a request: [limit.Batch] gives way to
	// [limit.Interactive], the zero Class. [WithClass] counts before it.
	Class func(*http.Request) limit.Class

	// BatchFloor is the share of each limit, in per cent, that calls of the class
	// Batch get while interactive ones wait; 0 is 10.
	BatchFloor int

	// MaxPause is the longest wait of a provider that holds everybody; 0 is 24 hours,
	// the longest window that providers reset. A longer one may be a mistake. After
	// MaxPause one call goes at a time while that wait lasts, and the first that is
	// answered ends it. The refused call itself is never sent before the provider's
	// time, and [Transport.Resume] ends every wait at once.
	MaxPause time.Duration

	// Budget is used instead of one made from Options. The limits, waits and numbers
	// of Options and of Scopes must then be unset, and Tenants too: they belong to
	// it. Several Transports may share one: see [budget.New].
	Budget *budget.Budget
}

// DefaultMaxBody is what Options.MaxBody is when unset, in bytes.
const DefaultMaxBody = 4 << 20

// String names the numbers that are set, and nothing of Base, which may well
// carry a key.
func (o Options) String() string {
	var b strings.Builder
	b.WriteString("tripmeter options:")
	for _, f := range o.numbers() {
		if f.value != 0 {
			fmt.Fprintf(&b, " %s %v", f.name, f.shown())
		}
	}
	return b.String()
}

// GoString is String, for %#v.
func (o Options) GoString() string { return o.String() }

// LogValue is String, for package log/slog.
func (o Options) LogValue() slog.Value { return slog.StringValue(o.String()) }

type number struct {
	name  string
	value int64
	time  bool // value is a time.Duration
}

// shown is the number as people write it.
func (n number) shown() any {
	if n.time {
		return time.Duration(n.value)
	}
	return n.value
}

func (o *Options) numbers() []number {
	return []number{
		{"RPM", o.RPM, false}, {"RPD", o.RPD, false}, {"TPM", o.TPM, false}, {"TPD", o.TPD, false},
		{"InputTPM", o.InputTPM, false}, {"OutputTPM", o.OutputTPM, false},
		{"Burst", int64(o.Burst), true}, {"MaxBody", o.MaxBody, false}, {"Attempts", int64(o.Attempts), false},
		{"MaxInFlight", int64(o.MaxInFlight), false}, {"MaxQueue", int64(o.MaxQueue), false}, {"MaxWait", int64(o.MaxWait), true},
		{"Scopes.BatchFloor", int64(o.Scopes.BatchFloor), false}, {"Scopes.MaxPause", int64(o.Scopes.MaxPause), true},
	}
}

func (o *Options) check() error {
	for _, f := range o.numbers() {
		if f.value < 0 {
			return &ConfigError{f.name, f.shown(), "must not be negative; zero is unset"}
		}
	}
	if s := &o.Scopes; s.Budget != nil && (o.RPM|o.RPD|o.TPM|o.TPD|o.InputTPM|o.OutputTPM != 0 ||
		len(o.Limits)+len(s.Models) > 0 || o.Burst|o.MaxWait|s.MaxPause != 0 || o.MaxInFlight|o.MaxQueue|s.BatchFloor != 0 || s.Tenants != nil) {
		return &ConfigError{"Scopes.Budget", "set", "the limits belong to it; leave the other fields unset"}
	}
	if err := o.checkSizes(); err != nil {
		return err
	}
	if nilPointer(o.Base) {
		return &ConfigError{"Base", fmt.Sprintf("a nil %T", o.Base), "make it first, or leave the field unset"}
	}
	if nilPointer(o.Counter) {
		return &ConfigError{"Counter", fmt.Sprintf("a nil %T", o.Counter), "make it first, or leave the field unset"}
	}
	if o.Retry.Attempts != 0 {
		return &ConfigError{"Retry.Attempts", o.Retry.Attempts, "set Options.Attempts instead"}
	}
	if p := o.Provider; p.Name != "" {
		if reflect.DeepEqual(p, profile.Profile{Name: p.Name}) {
			return &ConfigError{"Provider", fmt.Sprintf("%q and nothing else", p.Name),
				"get it with profile.ByName; the names are " + strings.Join(profile.Names(), ", ")}
		}
		if err := p.Validate(); err != nil {
			return err
		}
	} else if !reflect.ValueOf(o.Provider).IsZero() {
		return &ConfigError{"Provider.Name", `""`, "a profile needs a name; start from profile.Unknown and change what differs"}
	}
	if o.MaxBody == 0 {
		o.MaxBody = DefaultMaxBody
	}
	return nil
}

// checkSizes refuses numbers that are too large, and models that cannot be. It names the
// field as the user wrote it.
func (o *Options) checkSizes() error {
	if n := o.Scopes.BatchFloor; n > 100 {
		return &ConfigError{"Scopes.BatchFloor", n, "must be from 0 to 100, in per cent"}
	}
	rates := []number{{"RPM", o.RPM, false}, {"RPD", o.RPD, false}, {"TPM", o.TPM, false}, {"TPD", o.TPD, false}, {"InputTPM", o.InputTPM, false}, {"OutputTPM", o.OutputTPM, false}}
	for i, m := range o.Scopes.Models {
		at := fmt.Sprintf("Scopes.Models[%d].", i)
		if len(m.Names) == 0 {
			return &ConfigError{at + "Names", "empty", "name a model, or * for every model"}
		}
		if m.MaxInFlight < 0 {
			return &ConfigError{at + "MaxInFlight", m.MaxInFlight, "must not be negative; zero is unset"}
		}
		rates = append(rates, number{at + "RPM", m.RPM, false}, number{at + "RPD", m.RPD, false}, number{at + "TPM", m.TPM, false},
			number{at + "TPD", m.TPD, false}, number{at + "InputTPM", m.InputTPM, false}, number{at + "OutputTPM", m.OutputTPM, false})
	}
	for _, f := range rates {
		if f.value < 0 {
			return &ConfigError{f.name, f.value, "must not be negative; zero is unset"}
		}
		if f.value > limit.MaxUnits {
			return &ConfigError{f.name, f.value, fmt.Sprintf("must be at most %d; zero is unset", int64(limit.MaxUnits))}
		}
	}
	return nil
}

// nilPointer reports whether v holds a pointer that points to nothing: its methods would
// panic at the first call.
func nilPointer(v any) bool {
	r := reflect.ValueOf(v)
	return r.Kind() == reflect.Pointer && r.IsNil()
}

// budget is what the options say of the budget.
func (o *Options) budget() budget.Options {
	b := budget.Options{
		Limits: o.limits(), Burst: o.Burst, MaxInFlight: o.MaxInFlight, MaxQueue: o.MaxQueue, MaxWait: o.MaxWait,
		MaxPause: o.Scopes.MaxPause, Floor: o.Scopes.BatchFloor, Profile: o.Provider,
	}
	for _, m := range o.Scopes.Models {
		b.Models = append(b.Models, m.budget())
	}
	if of := o.Scopes.Tenants; of != nil {
		b.Tenants = func(name string) budget.Tenant {
			t := of(name)
			if t.check() != nil {
				t = TenantOptions{}
			}
			return t.budget()
		}
	}
	return b
}

// limits are those that the options set.
func (o *Options) limits() []limit.Limit {
	var ls []limit.Limit
	for _, f := range []struct {
		n      int64
		unit   limit.Unit
		window time.Duration
	}{
		{o.RPM, limit.Requests, time.Minute},
		{o.RPD, limit.Requests, 24 * time.Hour},
		{o.TPM, limit.Tokens, time.Minute},
		{o.TPD, limit.Tokens, 24 * time.Hour},
		{o.InputTPM, limit.Input, time.Minute},
		{o.OutputTPM, limit.Output, time.Minute},
	} {
		if f.n > 0 {
			ls = append(ls, limit.Limit{
				Name: budget.NameOf(f.unit, f.window), Unit: f.unit, Rate: limit.Rate{N: f.n, Window: f.window},
			})
		}
	}
	return append(ls, o.Limits...)
}

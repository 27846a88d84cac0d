package redislimit

import (
	"time"

	"github.com/tripmeter/tripmeter/limit"
)

// A scope is what this process knows of a scope in the store.
type scope struct {
	name   string
	def    *definition // nil: it begins without limits or options
	there  bool        // the store had it when last asked
	refs   int         // paths that lead through it
	pinned bool        // it was configured here, so def must not be forgotten

	sums  sums // as last told
	trail trail
	spent int64 // when a whole burst went that no answer has judged yet; 0: none did

	allowances *limit.Allowances // as last told; nil is any amount
	spends     spending

	limits []known
	open   int   // MaxInFlight, as last told
	told   int64 // the epoch of the limits when they were
	paused int64 // until when, as last told, microseconds of the store

	notes []note // as last told, by key
	noted uint64 // how often they changed

	windowed int64 // until then, the store's instant, one of its limits is asked as a window
	ends     bool  // and has end books, asked or not

	call int64 // the last call that named it, and its place there
	at   int
}

// sums are debits and refunds over all time, modulo 2^52, in requests, input and
// output tokens. owed is input that settlements found above its estimate, since the first
// reading; 0 if there was none.
type sums struct {
	debits, refunds [3]int64
	owed            int64
}

// A definition is how a scope begins.
type definition struct {
	options limit.ScopeOptions
	limits  []limit.Limit
}

func (d *definition) set(l limit.Limit) {
	for i := range d.limits {
		if d.limits[i].Name == l.Name {
			if l.Rate == (limit.Rate{}) {
				d.limits = append(d.limits[:i:i], d.limits[i+1:]...)
			} else {
				d.limits[i] = l
			}
			return
		}
	}
	if l.Rate != (limit.Rate{}) {
		d.limits = append(d.limits, l)
	}
}

// known is a limit as the store last reported it, with its level at an instant.
type known struct {
	limit.Limit
	level int64 // whole units
	at    int64 // microseconds of the store
}

// A path is what calls of one kind take from. Paths are kept while somebody uses
// them.
type path struct {
	key    string
	class  limit.Class
	tenant *scope // nil for the common one
	scopes []*scope
	all    []*scope // root, scopes, tenant
	refs   int
	priced []int64 // callers in the line with a pricer, or who left it, in order

	call int64
	at   int
}

// scopeOf returns the scope of that name, and opens it when it is new.
func (l *Limiter) scopeOf(name string) *scope {
	s := l.scopes[name]
	if s != nil {
		return s
	}
	s = &scope{name: name, told: -1}
	if l.o.Open != nil && name != "" {
		o, limits := l.o.Open(name)
		d := &definition{options: o}
		for _, lim := range limits {
			if lim, err := checked(lim, "Open("+name+")"); err == nil && lim.Rate != (limit.Rate{}) {
				d.set(lim)
			}
		}
		if len(d.limits) > 0 || o != (limit.ScopeOptions{}) {
			s.def = d
		}
	}
	l.scopes[name] = s
	return s
}

// pathOf returns the path of an ask. The common case allocates nothing.
func (l *Limiter) pathOf(a *limit.Ask) *path {
	key := append(l.key[:0], byte(a.Class))
	key = append(append(key, a.Tenant...), 0)
	for _, s := range a.Scopes {
		key = append(append(key, s...), 0)
	}
	l.key = key
	p := l.paths[string(key)]
	if p != nil {
		return p
	}
	p = &path{key: string(key), class: a.Class, all: []*scope{l.root}}
	add := func(name string) *scope {
		s := l.scopeOf(name)
		for _, other := range p.all {
			if other == s {
				return nil
			}
		}
		s.refs++
		p.all = append(p.all, s)
		return s
	}
	for _, name := range a.Scopes {
		if name == a.Tenant {
			continue // it comes last
		}
		if s := add(name); s != nil {
			p.scopes = append(p.scopes, s)
		}
	}
	if a.Tenant != "" {
		p.tenant = add(a.Tenant)
	}
	l.paths[p.key] = p
	return p
}

// spare is how many unused paths are kept, so that a tenant who calls now and then
// costs no allocation.
const spare = 1024

func (l *Limiter) drop(p *path) {
	p.refs--
	if p.refs > 0 || len(l.paths) <= spare {
		return
	}
	delete(l.paths, p.key)
	for _, s := range p.all[1:] {
		if s.refs--; s.refs == 0 && !s.pinned {
			delete(l.scopes, s.name)
		}
	}
}

// mostSpan is the longest span that reaches the script, in microseconds, some 142 years.
// With the store's instant it stays below 2^53.
const mostSpan = 1 << 52

// micros is d in whole microseconds, rounded up, and at most mostSpan.
func micros(d time.Duration) int64 {
	us := int64(d / time.Microsecond)
	if d%time.Microsecond > 0 {
		us++
	}
	return min(us, mostSpan)
}

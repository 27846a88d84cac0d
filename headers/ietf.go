package headers

import (
	"slices"
	"strconv"
	"strings"
	"time"

	"github.com/dunglas/httpsfv"

	"github.com/tripmeter/tripmeter/internal/retryafter"
)

// The IETF fields (draft-ietf-httpapi-ratelimit-headers) changed their grammar
// under one name. All of it is read, each field line for itself: a bad line of
// one hop does not hide the good line of another.
//
//	-03 to -06  RateLimit-Limit: 100, 100;w=60, 1000;w=3600
//	-06, -07    RateLimit-Policy: 100;w=60
//	-07         RateLimit: limit=100, remaining=50, reset=5
//	-08 to -10  RateLimit-Policy: "hour";q=1000;w=3600;qu="requests";pk=:dXNlcg==:
//	            RateLimit: "hour";r=50;t=30
//
// The structured fields (RFC 9651) are read by httpsfv. An item that lacks its
// required q or r is unknown for itself. A line that breaks the grammar is read by
// readLoose, which takes only what has one reading; RFC 9651 section 4.2 would
// drop the line, and with it the only word that some hosts say of their limit.
// Two things more are lenient: a name may be a token, and pk may be anything
// between colons or quotes, for it is opaque and often no valid base64.

// parseList reads a line as a list. Its items are strings, tokens or integers
// with parameters; an inner list makes the line unknown.
func parseList(line string) (items []httpsfv.Item, ok bool) {
	line = trimOWS(line)
	if len(line) == 0 || len(line) > longestValue {
		return nil, false
	}
	// httpsfv panicked on input from the wire before v1.1.2
	// (GHSA-jj78-73gf-wr5j). A header may be unknown, but never end the program.
	defer func() {
		if recover() != nil {
			items, ok = nil, false
		}
	}()
	list, err := httpsfv.UnmarshalList([]string{quotePartitions(line)})
	if err != nil {
		return nil, false
	}
	for _, m := range list {
		item, isItem := m.(httpsfv.Item)
		if !isItem {
			return nil, false
		}
		items = append(items, item)
	}
	return items, len(items) > 0
}

// parseDictionary reads a line as a dictionary.
func parseDictionary(line string) (dict *httpsfv.Dictionary, ok bool) {
	line = trimOWS(line)
	if len(line) == 0 || len(line) > longestValue {
		return nil, false
	}
	defer func() {
		if recover() != nil { // as in parseList
			dict, ok = nil, false
		}
	}()
	dict, err := httpsfv.UnmarshalDictionary([]string{line})
	return dict, err == nil
}

// quotePartitions rewrites pk=:text: to pk="text" outside quotes. The text
// stays as it was sent, valid base64 or not.
func quotePartitions(line string) string {
	if !strings.Contains(line, "pk=:") {
		return line
	}
	var b strings.Builder
	quoted := false
	for i := 0; i < len(line); i++ {
		c := line[i]
		switch {
		case quoted && c == '\\' && i+1 < len(line):
			b.WriteByte(c)
			i++
			c = line[i]
		case c == '"':
			quoted = !quoted
		case !quoted && (c == ';' || c == ' ') && strings.HasPrefix(line[i+1:], "pk=:"):
			text, _, closed := strings.Cut(line[i+len(";pk=:"):], ":")
			if closed && !strings.ContainsAny(text, `"\`) {
				b.WriteByte(c)
				b.WriteString(`pk="` + text + `"`)
				i += len(";pk=:") + len(text)
				continue
			}
		}
		b.WriteByte(c)
	}
	return b.String()
}

// parseLimitList reads the value of a limit that names no dimension:
//
//	limit  = count [ "," policies ]
//	policy = count ";w=" seconds
//
// The first member is the limit nearest to exhaustion and repeats one of the
// policies, which are the rest. A line where it repeats none is refused. So is a
// later member without w that does not repeat the first, as two hops make it:
// "1,000" and "1,500;w=60" are numbers, not lists.
func parseLimitList(lines []string) (limit Count, policies []integerPolicy, ok bool) {
	limit = lowest(lines)
	for _, line := range lines {
		if strings.IndexByte(line, ';') < 0 {
			continue
		}
		items, ok := parseList(line)
		if !ok {
			continue
		}
		if first, more, ok := limitAndPolicies(items); ok {
			limit = lower(limit, first)
			policies = append(policies, more...)
		}
	}
	return limit, policies, limit.OK
}

func limitAndPolicies(items []httpsfv.Item) (first Count, policies []integerPolicy, ok bool) {
	for i, item := range items {
		n, isInteger := item.Value.(int64)
		if !isInteger || n < 0 {
			return Count{}, nil, false
		}
		if i == 0 {
			first = Count{n, true}
		}
		if w := windowOf(item.Params); w > 0 {
			policies = append(policies, integerPolicy{n, w})
			ok = ok || n == first.N
		} else if n != first.N {
			return Count{}, nil, false
		}
	}
	return first, policies, ok
}

// readIETF reads RateLimit, RateLimit-Policy and X-RateLimit-Policy. It reports
// whether any line could be read.
func (r *reader) readIETF(key string, lines []string) bool {
	state := len(key) == len("ratelimit")
	read := false
	for _, line := range lines {
		items, ok := parseList(line)
		for _, item := range items {
			r.readItem(item, state)
		}
		if !ok {
			ok = state && r.readDictionary(line) || r.readLoose(line, state)
		}
		read = read || ok
	}
	return read
}

func (r *reader) readItem(item httpsfv.Item, state bool) {
	var p Policy
	switch v := item.Value.(type) {
	case string:
		p.Name = v
	case httpsfv.Token:
		p.Name = string(v)
	case int64:
		if w := windowOf(item.Params); !state && w > 0 && v >= 0 {
			r.integerPolicies = append(r.integerPolicies, integerPolicy{v, w})
		}
		return
	default:
		return
	}
	p.Unit = textOf(item.Params, "qu")
	p.Partition = textOf(item.Params, "pk")
	if state {
		if p.Remaining = integerOf(item.Params, "r"); p.Remaining.OK {
			p.Reset = r.spanOf(item.Params, "t")
			r.states = append(r.states, p)
		}
		return
	}
	if p.Limit = integerOf(item.Params, "q"); p.Limit.OK && p.Limit.N >= 0 {
		p.Window = windowOf(item.Params)
		r.policies = append(r.policies, p)
	}
}

// readDictionary reads the form of draft 07.
func (r *reader) readDictionary(line string) bool {
	dict, ok := parseDictionary(line)
	if !ok {
		return false
	}
	var q Quota
	var v reset
	for _, name := range dict.Names() {
		m, _ := dict.Get(name)
		item, ok := m.(httpsfv.Item)
		if !ok {
			continue
		}
		n, ok := item.Value.(int64)
		if !ok {
			continue
		}
		switch name {
		case "limit":
			q.Limit = Count{n, true}
		case "remaining":
			q.Remaining = Count{n, true}
		case "reset":
			v = parseReset(strconv.FormatInt(n, 10), &r.clock)
		}
	}
	if !q.Limit.OK && !q.Remaining.OK && !v.OK {
		return false
	}
	s := r.find(slot{dim: unsuffixed, ietf: true})
	s.Limit = lower(s.Limit, q.Limit)
	s.Remaining = lower(s.Remaining, q.Remaining)
	s.later(v)
	return true
}

// readLoose reads a line that breaks the grammar of structured fields:
//
//	line  = item *( "," item )
//	item  = part *( ";" part )
//	part  = key [ " " ] "=" [ " " ] value / name
//	value = anything, with or without quotes
//
// as in `"fixed window";"api";q=500;w=300` (Hugging Face). An item is read where
// each of its keys stands once and its q or r is a whole number that is not
// negative. Of several names the last counts: the state names that one. A line
// with an item that cannot be read is unknown as a whole.
func (r *reader) readLoose(line string, state bool) bool {
	line = trimOWS(line)
	if len(line) == 0 || len(line) > longestValue {
		return false
	}
	var policies []Policy
	for _, item := range cutOutsideQuotes(line, ',') {
		p, ok := r.looseItem(item, state)
		if !ok {
			return false
		}
		policies = append(policies, p)
	}
	if state {
		r.states = append(r.states, policies...)
	} else {
		r.policies = append(r.policies, policies...)
	}
	return true
}

func (r *reader) looseItem(item string, state bool) (p Policy, ok bool) {
	seen := map[string]bool{}
	for _, part := range cutOutsideQuotes(item, ';') {
		key, value, has := strings.Cut(part, "=")
		key, value = strings.ToLower(trimOWS(key)), strings.Trim(value, "\" \t")
		if !has || strings.HasPrefix(key, `"`) {
			if name := strings.Trim(part, "\" \t"); name != "" {
				p.Name = name
			}
			continue
		}
		if seen[key] {
			return Policy{}, false
		}
		seen[key] = true
		n := parseCount(value)
		switch key {
		case "q":
			p.Limit = n
		case "r":
			p.Remaining = n
		case "w":
			if n.N > 0 && n.N <= int64(retryafter.Max/time.Second) {
				p.Window = time.Duration(n.N) * time.Second
			}
		case "t":
			p.Reset = parseReset(value, &r.clock).Span
		case "qu":
			p.Unit = value
		case "pk":
			p.Partition = strings.Trim(value, ":")
		}
	}
	need := p.Limit
	if state {
		need = p.Remaining
		p.Limit, p.Window = Count{}, 0
	} else {
		p.Remaining, p.Reset = Count{}, Span{}
	}
	return p, need.OK && need.N >= 0
}

// cutOutsideQuotes splits s at a byte that stands outside double quotes.
func cutOutsideQuotes(s string, at byte) (parts []string) {
	quoted, from := false, 0
	for i := 0; i < len(s); i++ {
		switch {
		case quoted && s[i] == '\\':
			i++
		case s[i] == '"':
			quoted = !quoted
		case s[i] == at && !quoted:
			parts = append(parts, s[from:i])
			from = i + 1
		}
	}
	if last := s[from:]; trimOWS(last) != "" { // a comma or semicolon may end the line
		parts = append(parts, last)
	}
	return parts
}

func integerOf(p *httpsfv.Params, key string) Count {
	v, _ := p.Get(key)
	n, ok := v.(int64)
	return Count{n, ok}
}

func textOf(p *httpsfv.Params, key string) string {
	v, _ := p.Get(key)
	switch v := v.(type) {
	case string:
		return v
	case httpsfv.Token:
		return string(v)
	}
	return ""
}

// windowOf reads w, seconds. Zero is unknown.
func windowOf(p *httpsfv.Params) time.Duration {
	c := integerOf(p, "w")
	if c.N <= 0 || c.N > int64(retryafter.Max/time.Second) {
		return 0
	}
	return time.Duration(c.N) * time.Second
}

// spanOf reads a number of seconds, whole or not, by the rules of parseReset.
func (r *reader) spanOf(p *httpsfv.Params, key string) Span {
	v, _ := p.Get(key)
	switch v := v.(type) {
	case int64:
		return parseReset(strconv.FormatInt(v, 10), &r.clock).Span
	case float64:
		return parseReset(strconv.FormatFloat(v, 'f', 3, 64), &r.clock).Span
	}
	return Span{}
}

// assembleIETF joins each state with its policy. Requests, where no other field
// speaks of them, is the state that binds: the one with the least remaining. A
// policy without a state says nothing about this request, so it feeds nothing.
func (r *reader) assembleIETF(info *Info) {
	if len(r.policies)+len(r.states) == 0 {
		return
	}
	all := slices.Clone(r.policies)
	taken := make([]bool, len(r.policies))
	for _, s := range r.states {
		free, fits := -1, -1
		for i, p := range r.policies {
			if p.Name != s.Name || p.Partition != s.Partition && p.Partition != "" && s.Partition != "" {
				continue
			}
			fits = i
			if !taken[i] {
				free = i
				break
			}
		}
		if fits >= 0 {
			s = joinPolicy(r.policies[fits], s)
		}
		if free >= 0 {
			taken[free] = true
			all[free] = s
		} else {
			all = append(all, s)
		}
	}
	var binding Quota
	for _, p := range all {
		s := slot{Quota: p.Quota, window: p.Window}
		if s.settle(r.status); s.gone {
			continue
		}
		p.Quota = s.Quota
		info.Policies = append(info.Policies, p)
		if p.Remaining.OK && (p.Unit == "" || p.Unit == "requests") &&
			(!binding.Remaining.OK || p.Remaining.N < binding.Remaining.N) {
			binding = p.Quota
		}
	}
	if !info.Requests.known() {
		info.Requests = binding
	}
}

// joinPolicy puts a state on top of its policy.
func joinPolicy(p, s Policy) Policy {
	p.Remaining, p.Reset = s.Remaining, s.Reset
	if s.Partition != "" {
		p.Partition = s.Partition
	}
	if p.Unit == "" {
		p.Unit = s.Unit
	}
	return p
}

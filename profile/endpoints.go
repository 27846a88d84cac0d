package profile

import (
	"fmt"
	"net/http"
	"path"
	"slices"
	"strings"
)

// A Use is what an endpoint does with a request. The zero Use is unlisted: the
// request is judged by its body.
type Use uint8

// The uses of endpoints.
const (
	Unlisted    Use = iota
	Generates       // a model writes: chat, messages, completions
	Embeds          // a model turns texts into vectors
	Reranks         // a model orders texts
	Moderates       // a model judges texts
	Images          // a model draws or films
	Speech          // a model speaks
	Transcribes     // a model listens, or reads pages
	Counts          // tokens are counted, and no model runs
	Uploads         // bytes are stored, and no model runs
	Manages         // anything else is made, read, changed or deleted, and no model runs
)

var uses = [...]string{"unlisted", "generates", "embeds", "reranks", "moderates", "images", "speech", "transcribes", "counts", "uploads", "manages"}

// String names the use.
func (u Use) String() string {
	if int(u) < len(uses) {
		return uses[u]
	}
	return "no use"
}

// Free reports whether no model runs. Such a call costs one request and no tokens,
// for any body, and is never too large for a limit on tokens.
func (u Use) Free() bool { return u >= Counts }

// An Endpoint is what is known of the calls to one path. The zero Endpoint is
// unlisted.
type Endpoint struct {
	// Method is the HTTP method, or "" for any.
	Method string

	// Path is the shape of the end of the path: segments between slashes, each a
	// pattern of path.Match, and "**" for one segment or more. What stands before
	// is a version, a project or a gateway's own, and does not matter.
	Path string

	// Does is what the endpoint does.
	Does Use

	// Creates: each call makes another lasting thing, such as a batch or a file. A
	// call that may have arrived must not be sent again without an Idempotency-Key.
	Creates bool

	// Items is the member of the body whose elements count as a request each; "" is
	// none: the call is one request.
	Items string

	// Source is the reference.
	Source string

	// of names the profiles whose API reference has the endpoint.
	of []string

	// own: the path means this with the providers of of only. Elsewhere the same
	// words may be anything, and the body judges.
	own bool
}

// Endpoint returns what the profile's provider does with a call. Most paths have
// the same meaning everywhere, so each profile searches the whole table. Of several
// shapes that fit, these come first, in this order:
//
//   - those of p.Endpoints;
//   - the shape with the most segments;
//   - the shape with the most literal bytes;
//   - the shape of the profile's own provider.
//
// Items of the table, and shapes of common words, hold only for the providers that
// have them.
//
// A call that is in no row is unlisted, except that no model runs for the methods whose
// meaning HTTP defines: GET, HEAD, OPTIONS, DELETE, PUT and PATCH.
func (p Profile) Endpoint(method, urlPath string) Endpoint {
	if method == "" {
		method = http.MethodGet // as in net/http
	}
	urlPath = strings.TrimRight(urlPath, "/")
	_, last := cutLast(urlPath)
	best, weight := (*Endpoint)(nil), -1
	look := func(e *Endpoint, s shape, own bool) {
		if e.Method != "" && e.Method != method || e.own && !own || !s.fits(urlPath) {
			return
		}
		w := 2 * s.weight
		if own {
			w++
		}
		if w > weight {
			best, weight = e, w
		}
	}
	for i := range p.Endpoints {
		look(&p.Endpoints[i], newShape(p.Endpoints[i].Path), true)
	}
	if best != nil {
		return *best
	}
	for _, list := range [...][]int{byLast[last], byPattern} {
		for _, i := range list {
			e := &endpoints[i]
			look(e, shapes[i], slices.Contains(e.of, p.Name))
		}
	}
	switch {
	case best != nil:
		e := *best
		if !slices.Contains(e.of, p.Name) {
			e.Items = ""
		}
		return e
	case method == http.MethodPatch:
		return Endpoint{Method: method, Does: Manages, Source: "RFC 5789 section 2: a resource is modified"}
	case method == http.MethodGet, method == http.MethodHead, method == http.MethodOptions, method == http.MethodDelete, method == http.MethodPut:
		return Endpoint{Method: method, Does: Manages, Source: "RFC 9110 section 9.3"}
	}
	return Endpoint{}
}

// shapes are the paths of endpoints, taken apart. byLast holds their indices by the
// last segment, byPattern those whose last segment is a pattern.
var shapes, byLast, byPattern = func() (shapes []shape, byLast map[string][]int, byPattern []int) {
	byLast = map[string][]int{}
	for i, e := range endpoints {
		s := newShape(e.Path)
		if last := s.segments[0]; last.kind == literal {
			byLast[last.text] = append(byLast[last.text], i)
		} else {
			byPattern = append(byPattern, i)
		}
		shapes = append(shapes, s)
	}
	return shapes, byLast, byPattern
}()

// validate reports a shape that cannot be searched for, or a use that is none.
func (e Endpoint) validate() error {
	for _, s := range strings.Split(e.Path, "/") {
		if _, err := path.Match(s, ""); err != nil || s == "" {
			return fmt.Errorf("profile: Endpoints: %q is no path shape: write segments between slashes, without a slash in front", e.Path)
		}
	}
	if e.Does == Unlisted || int(e.Does) >= len(uses) {
		return fmt.Errorf("profile: Endpoints: %q does nothing: set Does", e.Path)
	}
	return nil
}

// A shape is an Endpoint's Path, taken apart.
type shape struct {
	segments []segment // the last first
	weight   int       // how narrow it is
}

type segment struct {
	kind segmentKind
	text string // the literal part, or the pattern
}

type segmentKind uint8

const (
	literal   segmentKind = iota
	anything              // "*"
	many                  // "**"
	endsIn                // "*text"
	beginsAs              // "text*"
	patterned             // for path.Match
)

func newShape(p string) (s shape) {
	const special = `*?[\`
	for p != "" {
		var text string
		p, text = cutLast(p)
		g := segment{patterned, text}
		switch i := strings.IndexAny(text, special); {
		case text == "**":
			g = segment{many, ""}
		case text == "*":
			g = segment{anything, ""}
		case i < 0:
			g.kind = literal
		case text[i] != '*' || strings.ContainsAny(text[i+1:], special):
		case i == 0:
			g = segment{endsIn, text[1:]}
		case i == len(text)-1:
			g = segment{beginsAs, text[:i]}
		}
		s.segments = append(s.segments, g)
		s.weight += 1000 + len(strings.Trim(text, "*"))
	}
	return s
}

// fits reports whether s is the shape of the end of a path without a slash at its
// end.
func (s shape) fits(urlPath string) bool {
	for i, g := range s.segments {
		var p string
		if urlPath, p = cutLast(urlPath); p == "" {
			return false
		}
		if g.kind != many {
			if !g.matches(p) {
				return false
			}
			continue
		}
		for i+1 < len(s.segments) && urlPath != "" { // on at the next one that fits
			rest, q := cutLast(urlPath)
			if s.segments[i+1].matches(q) {
				break
			}
			urlPath = rest
		}
	}
	return true
}

func (g segment) matches(s string) bool {
	switch g.kind {
	case literal:
		return s == g.text
	case endsIn:
		return strings.HasSuffix(s, g.text)
	case beginsAs:
		return strings.HasPrefix(s, g.text)
	case patterned:
		ok, _ := path.Match(g.text, s)
		return ok
	}
	return true
}

// cutLast takes the last segment off a path.
func cutLast(s string) (rest, last string) {
	if i := strings.LastIndexByte(s, '/'); i >= 0 {
		return s[:i], s[i+1:]
	}
	return "", s
}

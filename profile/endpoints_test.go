package profile

import (
	"bufio"
	"fmt"
	"os"
	"slices"
	"strings"
	"testing"
)

// A call is one line of testdata/endpoints.txt:
//
//	provider method path use *( "creates" / items )
type call struct {
	provider, method, path, use string
	creates                     bool
	items                       string
}

func calls(t *testing.T) []call {
	t.Helper()
	f, err := os.Open("testdata/endpoints.txt")
	if err != nil {
		t.Fatal(err)
	}
	defer f.Close()
	var all []call
	for s := bufio.NewScanner(f); s.Scan(); {
		w := strings.Fields(s.Text())
		if w[0] == "#" {
			continue
		}
		c := call{provider: w[0], method: w[1], path: w[2], use: w[3]}
		for _, more := range w[4:] {
			if c.creates = c.creates || more == "creates"; more != "creates" {
				c.items = more
			}
		}
		all = append(all, c)
	}
	return all
}

// The table knows each endpoint of the API references under its own profile. Each
// row of the table decides a call of each of its providers.
func TestEachProvidersEndpointsAreKnown(t *testing.T) {
	decided := map[string]bool{}
	seen := map[string]int{}
	for _, c := range calls(t) {
		p, ok := ByName(c.provider)
		if !ok {
			t.Fatalf("no profile %s", c.provider)
		}
		seen[p.Name]++
		e := p.Endpoint(c.method, c.path)
		if e.Does.String() != c.use || e.Creates != c.creates || e.Items != c.items {
			t.Errorf("%s %s %s: %v, creates %v, items %q by %q; want %s, %v, %q", c.provider, c.method, c.path, e.Does, e.Creates, e.Items, e.Path, c.use, c.creates, c.items)
		}
		if len(e.of) == 0 || slices.Contains(e.of, p.Name) {
			decided[e.Method+" "+e.Path+" "+e.Does.String()+" "+p.Name] = true
		}
		// A version, a project or a gateway in front, and a slash behind, change nothing.
		if c.path != "/" {
			if again := p.Endpoint(c.method, "/gateway/of/ours"+c.path+"/"); again.Does != e.Does || again.Path != e.Path {
				t.Errorf("%s behind a gateway: %v by %q", c.path, again.Does, again.Path)
			}
		}
	}
	for _, name := range Names() {
		if seen[name] < 3 {
			t.Errorf("%s has %d calls", name, seen[name])
		}
	}
	for _, e := range endpoints {
		of := e.of
		if len(of) == 0 {
			of = []string{"unknown"}
		}
		for _, name := range of {
			if !decided[e.Method+" "+e.Path+" "+e.Does.String()+" "+name] {
				t.Errorf("no call of %s is decided by %s %s", name, e.Method, e.Path)
			}
		}
	}
}

func TestTheTableOfEndpointsIsSound(t *testing.T) {
	names := Names()
	seen := map[string]bool{}
	for _, e := range endpoints {
		id := fmt.Sprint(e.Method, e.Path, e.own && len(e.of) > 0, e.of)
		if seen[id] || e.Source == "" || e.Does == Unlisted || e.Path == "" || strings.HasPrefix(e.Path, "/") || e.own && len(e.of) == 0 {
			t.Errorf("%+v", e)
		}
		seen[id] = true
		for _, name := range e.of {
			if !slices.Contains(names, name) {
				t.Errorf("%s: no profile %s", e.Path, name)
			}
		}
		if e.Creates && e.Does == Counts {
			t.Errorf("%s counts and creates", e.Path)
		}
	}
}

// A path that runs no model runs none on any host, unless its words are common.
func TestAFreeEndpointIsFreeOnEveryHost(t *testing.T) {
	for _, c := range calls(t) {
		p, _ := ByName(c.provider)
		own := p.Endpoint(c.method, c.path)
		for _, name := range Names() {
			other, _ := ByName(name)
			e := other.Endpoint(c.method, c.path)
			if own.Does.Free() && !e.Does.Free() && !own.own {
				t.Errorf("%s %s is %v with %s, and %v with %s", c.method, c.path, own.Does, c.provider, e.Does, name)
			}
			if !own.Does.Free() && e.Does.Free() && own.Does != Unlisted && !e.own && !own.own {
				t.Errorf("%s %s is %v with %s, and %v with %s", c.method, c.path, own.Does, c.provider, e.Does, name)
			}
			if name != "gemini" && e.Items != "" {
				t.Errorf("%s counts items with %s", c.path, name)
			}
		}
	}
}

func TestUsesHaveNames(t *testing.T) {
	if Unlisted.Free() || Generates.Free() || Moderates.Free() || Transcribes.Free() || !Counts.Free() || !Uploads.Free() || !Manages.Free() {
		t.Error("what is free is not")
	}
	if Manages.String() != "manages" || Unlisted.String() != "unlisted" || Use(99).String() != "no use" {
		t.Error(Manages, Unlisted, Use(99))
	}
}

func TestAProfileMayHaveEndpointsOfItsOwn(t *testing.T) {
	p := Unknown()
	p.Endpoints = []Endpoint{
		{Method: "POST", Path: "ask", Does: Generates},
		{Path: "v1/embeddings", Does: Counts, Items: "input"},
		{Method: "POST", Path: "jobs/*/items", Does: Manages, Creates: true},
	}
	if err := p.Validate(); err != nil {
		t.Fatal(err)
	}
	for path, want := range map[string]Use{"/ask": Generates, "/v1/embeddings": Counts, "/x/v1/jobs/1/items": Manages, "/v1/batches": Manages, "/x/embeddings": Embeds, "/y": Unlisted} {
		if e := p.Endpoint("POST", path); e.Does != want {
			t.Errorf("%s: %+v, want %v", path, e, want)
		}
	}
	if e := p.Endpoint("POST", "/v1/embeddings"); e.Items != "input" {
		t.Errorf("%+v", e)
	}
	if e := p.Endpoint("", "/v1/chat/completions"); e.Does != Manages {
		t.Errorf("no method is GET: %+v", e)
	}
	for _, bad := range []Endpoint{{Path: "/a", Does: Counts}, {Path: "[", Does: Counts}, {Path: "a"}, {Does: Counts}, {Path: "a//b", Does: Counts}, {Path: "a", Does: 99}} {
		p.Endpoints = []Endpoint{bad}
		if p.Validate() == nil {
			t.Errorf("%+v is valid", bad)
		}
	}
}

func TestFindingAnEndpointAllocatesNothing(t *testing.T) {
	p, _ := ByName("openai")
	for _, path := range []string{"/v1/chat/completions", "/v1beta/models/m:countTokens", "/nothing/of/the/kind"} {
		if n := testing.AllocsPerRun(100, func() { p.Endpoint("POST", path) }); n != 0 {
			t.Errorf("%s: %v allocations", path, n)
		}
	}
}

func FuzzEndpoint(f *testing.F) {
	f.Add("POST", "/v1/chat/completions")
	f.Add("POST", "//model//a/b/c/converse//")
	f.Add("POST", "[]\\*/**/?")
	f.Fuzz(func(t *testing.T, method, path string) {
		for _, name := range []string{"openai", "unknown"} {
			p, _ := ByName(name)
			e := p.Endpoint(method, path)
			if e.Items != "" || e.Does == Unlisted && e.Creates {
				t.Errorf("%+v", e)
			}
			if e.Method != "" && method != "" && e.Method != method {
				t.Errorf("%s is decided by %s", method, e.Method)
			}
		}
	})
}

func BenchmarkEndpoint(b *testing.B) {
	p, _ := ByName("openai")
	b.ReportAllocs()
	for b.Loop() {
		p.Endpoint("POST", "/v1/chat/completions")
	}
}

func ExampleProfile_Endpoint() {
	p := ForHost("api.anthropic.com")
	for _, path := range []string{"/v1/messages", "/v1/messages/count_tokens", "/v1/messages/batches"} {
		e := p.Endpoint("POST", path)
		fmt.Println(path, e.Does, "free:", e.Does.Free(), "creates:", e.Creates)
	}
	// Output:
	// /v1/messages generates free: false creates: false
	// /v1/messages/count_tokens counts free: true creates: false
	// /v1/messages/batches manages free: true creates: true
}

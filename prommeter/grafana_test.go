package prommeter_test

import (
	"encoding/json"
	"net/http"
	"os"
	"regexp"
	"slices"
	"strings"
	"testing"

	"github.com/prometheus/client_golang/prometheus"
	"github.com/tripmeter/tripmeter/meter"
	"github.com/tripmeter/tripmeter/prommeter"
	"github.com/tripmeter/tripmeter/providertest"
)

type panel struct {
	ID         int
	Type       string
	Title      string
	GridPos    struct{ H, W, X, Y int }
	Datasource struct{ UID string }
	Targets    []struct {
		Expr         string
		LegendFormat string
		Datasource   struct{ UID string }
	}
}

// The dashboard names metrics and labels that exist, takes its data source as an
// input, and has no two panels in one place.
func TestDashboardFitsTheMetrics(t *testing.T) {
	text, err := os.ReadFile("grafana.json")
	if err != nil {
		t.Fatal(err)
	}
	var d struct {
		Inputs     []struct{ Name, PluginID string } `json:"__inputs"`
		ID         any
		Panels     []panel
		Templating struct {
			List []struct{ Name, Definition string }
		}
	}
	if err := json.Unmarshal(text, &d); err != nil {
		t.Fatal(err)
	}
	if len(d.Inputs) != 1 || d.Inputs[0].Name != "DS_PROMETHEUS" || d.Inputs[0].PluginID != "prometheus" || d.ID != nil {
		t.Errorf("inputs %+v, id %v", d.Inputs, d.ID)
	}

	// What the exporter shows: series name to labels.
	m, rt, _ := setup(t, meter.Options{Tenant: func(*http.Request) string { return "a" }}, providertest.Options{})
	post(t, rt)
	reg := prometheus.NewRegistry()
	reg.MustRegister(prommeter.New(m, prommeter.Options{}))
	families, err := reg.Gather()
	if err != nil {
		t.Fatal(err)
	}
	labels := map[string][]string{}
	for _, f := range families {
		var names []string
		for _, l := range f.Metric[0].Label {
			names = append(names, l.GetName())
		}
		if f.Metric[0].Histogram != nil {
			labels[f.GetName()+"_sum"], labels[f.GetName()+"_count"] = names, names
			labels[f.GetName()+"_bucket"] = append(names[:len(names):len(names)], "le")
			continue
		}
		labels[f.GetName()] = names
	}

	selector := regexp.MustCompile(`\b((?:tripmeter|gen_ai)_\w+)(?:\{([^}]*)\})?`)
	matcher := regexp.MustCompile(`(\w+)\s*(?:=~|!~|!=|=)`)
	grouping := regexp.MustCompile(`by \(([^)]*)\)`)
	seen, panels := map[string]bool{}, 0
	check := func(where, expr string) (has []string) {
		// Labels of the conventions are named as their metrics are.
		for _, s := range selector.FindAllStringSubmatch(grouping.ReplaceAllString(expr, ""), -1) {
			have, ok := labels[s[1]]
			if !ok {
				t.Errorf("%s: there is no %s", where, s[1])
			}
			seen[s[1]] = true
			has = append(has, have...)
			for _, l := range matcher.FindAllStringSubmatch(s[2], -1) {
				if !slices.Contains(have, l[1]) {
					t.Errorf("%s: %s has no label %s", where, s[1], l[1])
				}
			}
		}
		for _, g := range grouping.FindAllStringSubmatch(expr, -1) {
			for _, l := range strings.Split(g[1], ",") {
				if l = strings.TrimSpace(l); !slices.Contains(has, l) {
					t.Errorf("%s: grouped by %s, which no series has", where, l)
				}
			}
		}
		if strings.Count(expr, "(") != strings.Count(expr, ")") || strings.Count(expr, "{") != strings.Count(expr, "}") {
			t.Errorf("%s: brackets of %s", where, expr)
		}
		return has
	}
	ids := map[int]bool{}
	for i, p := range d.Panels {
		if ids[p.ID] {
			t.Errorf("two panels have id %d", p.ID)
		}
		ids[p.ID] = true
		for _, q := range d.Panels[:i] {
			if p.GridPos.X < q.GridPos.X+q.GridPos.W && q.GridPos.X < p.GridPos.X+p.GridPos.W && p.GridPos.Y < q.GridPos.Y+q.GridPos.H && q.GridPos.Y < p.GridPos.Y+p.GridPos.H {
				t.Errorf("%s lies on %s", p.Title, q.Title)
			}
		}
		if p.Type == "row" {
			continue
		}
		panels++
		if p.Datasource.UID != "${DS_PROMETHEUS}" || len(p.Targets) == 0 {
			t.Errorf("%s: data source %q, %d queries", p.Title, p.Datasource.UID, len(p.Targets))
		}
		for _, target := range p.Targets {
			has := check(p.Title, target.Expr)
			for _, l := range regexp.MustCompile(`\{\{(\w+)\}\}`).FindAllStringSubmatch(target.LegendFormat, -1) {
				if !slices.Contains(has, l[1]) {
					t.Errorf("%s: the legend names %s", p.Title, l[1])
				}
			}
		}
	}
	for _, v := range d.Templating.List {
		check(v.Name, v.Definition)
	}
	for name := range labels {
		base := strings.TrimSuffix(strings.TrimSuffix(strings.TrimSuffix(name, "_bucket"), "_count"), "_sum")
		if strings.HasPrefix(name, "tripmeter_") && !seen[name] && !seen[base+"_sum"] && !seen[base+"_bucket"] {
			t.Errorf("no panel shows %s", name)
		}
	}
	if panels < 15 || len(seen) < 20 {
		t.Errorf("only %d panels over %d metrics", panels, len(seen))
	}
}

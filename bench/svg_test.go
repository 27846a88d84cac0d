package bench

import (
	"bytes"
	"encoding/xml"
	"io"
	"strings"
	"testing"
	"time"
)

// Both pictures are XML, name every policy and panel, and say in words what they
// show.
func TestPicturesAreWhole(t *testing.T) {
	var rows []Row
	for _, s := range boardScenarios() {
		for i, p := range Policies {
			rows = append(rows, Row{Provider: s.provider, Rule: s.rule, Load: s.Load, Policy: p.Name, Used: .9, Refused: float64(i), Waits: []time.Duration{0, time.Second, time.Minute}})
		}
	}
	for name, draw := range map[string]func(io.Writer, []Row) error{"quota": quotaPlot, "waits": waitPlot} {
		var b bytes.Buffer
		if err := draw(&b, rows); err != nil {
			t.Fatal(err)
		}
		var v struct {
			Title string   `xml:"title"`
			Desc  string   `xml:"desc"`
			Text  []string `xml:"text"`
		}
		if err := xml.Unmarshal(b.Bytes(), &v); err != nil {
			t.Fatalf("%s: %v", name, err)
		}
		all := strings.Join(v.Text, "|")
		for _, p := range Policies {
			if !strings.Contains(all, p.Name) {
				t.Errorf("%s: no %s in the legend", name, p.Name)
			}
		}
		if v.Title == "" || !strings.Contains(v.Desc, "tripmeter: bucket of") || strings.Count(b.String(), "font-weight=\"bold\"") != 7 {
			t.Errorf("%s: %q, %q", name, v.Title, v.Desc)
		}
	}
}

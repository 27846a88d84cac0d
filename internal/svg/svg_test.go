package svg

import (
	"encoding/xml"
	"errors"
	"fmt"
	"io"
	"os"
	"regexp"
	"strings"
	"testing"
)

// Each picture is XML, has a title and a description, and uses
// only classes that have a colour in both schemes.
func TestPictureIsWhole(t *testing.T) {
	c := New(100, 50, `a <title> & "more"`, "what is to be seen")
	c.Text(1, 2, "start", `class="soft"`, "<&>")
	c.Line(0, 0, 1, 1, "grid")
	c.Rect(0, 0, 1, 1, "f7")
	c.Curve("s2", `stroke-dasharray="2 2"`, [][2]float64{{0, 0}, {1, 1}})
	for i := range 14 {
		c.Mark(i, 5, 5)
	}
	var b strings.Builder
	if _, err := c.WriteTo(&b); err != nil {
		t.Fatal(err)
	}
	d := xml.NewDecoder(strings.NewReader(b.String()))
	seen := map[string]int{}
	for {
		tok, err := d.Token()
		if errors.Is(err, io.EOF) {
			break
		} else if err != nil {
			t.Fatal(err)
		}
		if e, ok := tok.(xml.StartElement); ok {
			seen[e.Name.Local]++
			names := map[string]bool{} // encoding/xml lets an attribute come twice, browsers do not
			for _, a := range e.Attr {
				if names[a.Name.Local] {
					t.Errorf("%s has %s twice", e.Name.Local, a.Name.Local)
				}
				names[a.Name.Local] = true
			}
		}
	}
	if seen["title"] != 1 || seen["desc"] != 1 || seen["style"] != 1 {
		t.Errorf("elements %v", seen)
	}
	light, dark, ok := strings.Cut(style, "@media (prefers-color-scheme:dark)")
	if !ok {
		t.Fatal("no dark scheme")
	}
	for _, m := range regexp.MustCompile(`class="(\w+)"`).FindAllStringSubmatch(b.String(), -1) {
		if !strings.Contains(light, "."+m[1]+"{") || !strings.Contains(dark, "."+m[1]+"{") {
			t.Errorf("class %s has no colour in both schemes", m[1])
		}
	}
}

func TestScale(t *testing.T) {
	for _, c := range []struct {
		s       Scale
		v, want float64
	}{
		{Scale{Lo: 0, Hi: 10, From: 100, To: 0}, 5, 50},
		{Scale{Lo: 0, Hi: 10, From: 100, To: 0}, 20, 0},
		{Scale{Lo: 1, Hi: 100, From: 0, To: 10, Log: true}, 10, 5},
		{Scale{Lo: 3, Hi: 3, From: 7, To: 9}, 3, 7},
	} {
		if got := c.s.At(c.v); got != c.want {
			t.Errorf("%+v at %v: %v, want %v", c.s, c.v, got, c.want)
		}
	}
	for v, want := range map[float64]float64{0: 1, 1: 1, 1.1: 2, 3: 5, 51: 100, 2000: 2000} {
		if got := Nice(v); got != want {
			t.Errorf("Nice(%v) is %v, want %v", v, got, want)
		}
	}
}

func Example() {
	c := New(20, 20, "A dot", "One dot in the middle.")
	c.Dot(10, 10, 3, "f6")
	var b strings.Builder
	c.WriteTo(&b)
	fmt.Fprintln(os.Stdout, strings.Contains(b.String(), "prefers-color-scheme:dark"))
	// Output: true
}

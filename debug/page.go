package debug

import (
	_ "embed"
	"html/template"
	"io"
)

//go:embed page.html
var source string

//go:embed page.css
var css string

//go:embed page.js
var script string

// sections are the parts of the page that are drawn anew, by the name of their
// template and the id of their element.
var sections = [...]string{"why", "tiles", "scopes", "charts", "line", "tenants", "ends", "happened"}

var pages = template.Must(template.New("page").Parse(source))

// writePage writes the whole page, whose sections are those of f: they come from
// the same templates and are escaped already.
func writePage(w io.Writer, nonce string, f frame) error {
	part := map[string]template.HTML{}
	for i, name := range sections {
		part[name] = template.HTML(f.sections[i])
	}
	return pages.ExecuteTemplate(w, "page", map[string]any{
		"Nonce": nonce, "CSS": template.CSS(css), "Script": template.JS(script), "Part": part,
	})
}

package estimate

import "strings"

// A Family is a set of weights fitted to one tokenizer.
type Family uint8

// The families.
const (
	O200k Family = iota
	CL100k
)

// FamilyOf returns the family of a model.
func FamilyOf(model string) Family {
	if model == "gpt-4" || strings.HasPrefix(model, "gpt-3.5") || strings.HasPrefix(model, "gpt-4-") {
		return CL100k
	}
	return O200k
}

// CountJSONFor is a plain count by bytes, dearer for CL100k.
func CountJSONFor(f Family, raw []byte) int64 { return int64(len(raw)) * (250 + 50*int64(f)) }

// CountJSON is CountJSONFor of O200k.
func CountJSON(raw []byte) int64 { return CountJSONFor(O200k, raw) }

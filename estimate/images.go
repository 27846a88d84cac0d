package estimate

import "strings"

// An image costs tokens by its size in pixels, each family of models by a rule
// of its own. The model often stands behind the images in a body, and there can
// be many images. So a pass over the body keeps the sums for every rule (tiles,
// patches, ...). The rule of the model is applied to the sums at the end.

// The size that an image is taken to have when it cannot be read: it is behind
// a URL, in a file store, or in a format that is not known. Images by URL in
// recorded requests cost 255 tokens at gpt-4o, which is this size, and 16 to 325 at
// Claude.
const defaultEdge = 512 // pixels, both sides

// imageSums is what the images of one body add up to under each rule.
type imageSums struct {
	images    int64 // all
	tiles     int64 // of 512 pixels, OpenAI; none for detail low
	patch1536 int64 // of 32 pixels, at most 1536 an image
	patch2500 int64 // of 32 pixels, at most 2500 an image
	pixel750  int64 // pixels/750, longest edge 1568, Anthropic until 2025
	patch1568 int64 // of 28 pixels, longest edge 1568, at most 1568 an image
	patch4784 int64 // of 28 pixels, longest edge 2576, at most 4784 an image
	crops     int64 // of 768 pixels, Gemini 2.0
	rows28    int64 // of 28 pixels and one for each row, longest edge 1540, Mistral
	pixels772 int64 // pixels/772 of the scaled image, Nova
	tiles336  int64 // of 336 pixels, at most 16, and one for the whole, Llama 4 Scout
}

// less takes u from s, member by member.
func (s *imageSums) less(u *imageSums) {
	s.images -= u.images
	s.tiles -= u.tiles
	s.patch1536 -= u.patch1536
	s.patch2500 -= u.patch2500
	s.pixel750 -= u.pixel750
	s.patch1568 -= u.patch1568
	s.patch4784 -= u.patch4784
	s.crops -= u.crops
	s.rows28 -= u.rows28
	s.pixels772 -= u.pixels772
	s.tiles336 -= u.tiles336
}

func (s *imageSums) add(w, h int64, low bool) {
	// Sizes above this are not images any provider takes; the bound keeps the
	// products below far from overflow.
	const maxEdge = 1 << 20
	if w <= 0 || h <= 0 {
		w, h = defaultEdge, defaultEdge
	}
	w, h = min(w, maxEdge), min(h, maxEdge)
	s.images++
	if low {
		// Detail low sends a version of 512 by 512 pixels: no tile, 16 x 16 patches.
		pw, ph := fit(w, h, 512)
		s.patch1536 += grid(pw, ph, 32, 1536)
		s.patch2500 += grid(pw, ph, 32, 2500)
	} else {
		s.tiles += tiles(w, h)
		s.patch1536 += grid(w, h, 32, 1536)
		s.patch2500 += grid(w, h, 32, 2500)
	}
	fw, fh := fit(w, h, 1568)
	s.pixel750 += min(ceilDiv(fw*fh, 750), 1600)
	s.patch1568 += grid(fw, fh, 28, 1568)
	fw, fh = fit(w, h, 2576)
	s.patch4784 += grid(fw, fh, 28, 4784)
	s.crops += crops(w, h)
	fw, fh = fit(w, h, 1540)
	s.rows28 += (ceilDiv(fw, 28) + 1) * ceilDiv(fh, 28)
	s.pixels772 += novaPixels(w, h) / 772
	s.tiles336 += llamaTiles(w, h)
}

// novaPixels are the pixels of an image after Nova has scaled it: to the nearest of some
// proportions, in squares of 448 pixels, and further up to the image's own shorter side.
func novaPixels(w, h int64) int64 {
	const square, most = 448, 8000
	w, h = fit(w, h, most)
	long, short := max(w, h), min(w, h)
	a, b := int64(2), int64(2) // squares on the shorter side and on the longer
	switch {
	case 4*long < 5*short:
	case 4*long < 7*short:
		b = 3
	default:
		a, b = 1, min((long+short/2)/short, 9)
	}
	side := max(a*square, short)
	return side * side * b / a
}

// llamaTiles counts the tiles of an image as the processor of Llama 4 cuts it. Beside more
// than one stands a view of the whole.
func llamaTiles(w, h int64) int64 {
	n := grid(w, h, 336, 16)
	if n > 1 {
		n++
	}
	return n
}

// fit scales a size down, never up, until its longer side is at most edge.
func fit(w, h, edge int64) (int64, int64) {
	if long := max(w, h); long > edge {
		w, h = max(w*edge/long, 1), max(h*edge/long, 1)
	}
	return w, h
}

// tiles counts the 512 pixel tiles of an image that was fitted into 2048 x 2048
// and whose shorter side was then brought down to 768 (OpenAI vision guide).
func tiles(w, h int64) int64 {
	w, h = fit(w, h, 2048)
	if short := min(w, h); short > 768 {
		w, h = w*768/short, h*768/short
	}
	return ceilDiv(w, 512) * ceilDiv(h, 512)
}

// grid counts the patches of unit x unit pixels that cover an image, scaled down
// with its proportions kept until they are at most limit.
//
// The scale that brings the area to limit patches gives sqrt(limit*w/h) columns
// and sqrt(limit*h/w) rows. Both are rounded down. The number that lost more
// decides the scale, and the other follows from the proportions. With whole
// numbers: 1800 x 2400, limit 1536: 33 columns, 45 rows; 33*2400 < 45*1800, so
// the columns decide, and 33*2400/1800 = 44 rows make 1452, the published figure
// (OpenAI vision guide).
func grid(w, h, unit, limit int64) int64 {
	if n := ceilDiv(w, unit) * ceilDiv(h, unit); n <= limit {
		return n
	}
	cols, rows := max(isqrt(limit*w/h), 1), max(isqrt(limit*h/w), 1)
	if cols*h < rows*w {
		rows = ceilDiv(cols*h, w)
	} else {
		cols = ceilDiv(rows*w, h)
	}
	return min(cols*rows, limit)
}

// crops counts the crops that Gemini makes of an image: one when both sides are
// at most 384, else those of a side of min(w, h)/1.5 (Gemini, "Understand and
// count tokens": 960 x 540 makes 3 x 2).
func crops(w, h int64) int64 {
	if w <= 384 && h <= 384 {
		return 1
	}
	unit := max(min(w, h)*2/3, 1)
	// A narrow strip would be cut into thousands; no crop is smaller than 256.
	unit = max(unit, 256)
	return ceilDiv(w, unit) * ceilDiv(h, unit)
}

// An imageRule prices the sums for the models whose name begins with prefix.
type imageRule struct {
	prefix string
	base   int64 // tokens an image
	tile   int64 // tokens a tile of 512 pixels
	patch  sum   // which patches are counted
	factor int64 // thousandths of a token a patch
}

type sum uint8

const (
	noPatches sum = iota
	patches1536
	patches2500
	pixels750
	patches1568
	patches4784
	geminiCrops
	rows28
	pixels772
	tiles336
)

// imageRules are tried for the longest prefix that fits. Sources, November 2026:
// OpenAI vision guide; Anthropic vision page; Gemini "Understand and count tokens";
// Mistral vision guide; Amazon Nova, "Image understanding": 250 tokens and one for 772 pixels
// are within 7 % of its five examples and of two recorded pictures; Llama 4 Scout: 144
// tokens a tile (its processor), as recorded. Other Llama 4, granite, Gemini 2.5 and 3 as
// recorded, one price for all sizes (see makers.go).
var imageRules = []imageRule{
	{prefix: "gpt-4o", base: 85, tile: 170},
	{prefix: "gpt-4o-mini", base: 2833, tile: 5667},
	{prefix: "gpt-4.1", base: 85, tile: 170},
	{prefix: "gpt-4.5", base: 85, tile: 170},
	{prefix: "gpt-4.1-mini", patch: patches1536, factor: 1620},
	{prefix: "gpt-4.1-nano", patch: patches1536, factor: 2460},
	{prefix: "gpt-5", base: 70, tile: 140},
	{prefix: "gpt-5-mini", patch: patches1536, factor: 1620},
	{prefix: "gpt-5-nano", patch: patches1536, factor: 2460},
	{prefix: "gpt-5.4", patch: patches2500, factor: 1200},
	{prefix: "gpt-5.5", patch: patches2500, factor: 1200},
	{prefix: "o1", base: 75, tile: 150},
	{prefix: "o3", base: 75, tile: 150},
	{prefix: "o4-mini", patch: patches1536, factor: 1720},
	{prefix: "computer-use-preview", base: 65, tile: 129},
	{prefix: "claude", patch: patches4784, factor: 1000},
	{prefix: "claude-2", patch: pixels750, factor: 1000},
	{prefix: "claude-3", patch: pixels750, factor: 1000},
	{prefix: "claude-opus-4", patch: patches1568, factor: 1000},
	{prefix: "claude-sonnet-4", patch: patches1568, factor: 1000},
	{prefix: "claude-haiku-4", patch: patches1568, factor: 1000},
	{prefix: "claude-opus-4-7", patch: patches4784, factor: 1000},
	{prefix: "claude-sonnet-4-7", patch: patches4784, factor: 1000},
	{prefix: "claude-haiku-4-7", patch: patches4784, factor: 1000},
	{prefix: "claude-opus-4-8", patch: patches4784, factor: 1000},
	{prefix: "claude-sonnet-4-8", patch: patches4784, factor: 1000},
	{prefix: "claude-haiku-4-8", patch: patches4784, factor: 1000},
	{prefix: "gemini", base: 258},
	{prefix: "gemini-2-0", patch: geminiCrops, factor: 258_000},
	{prefix: "gemini-3", base: 1089},
	{prefix: "gemma", base: 258},
	{prefix: "nova", base: 250, patch: pixels772, factor: 1000},
	{prefix: "pixtral", patch: rows28, factor: 1000},
	{prefix: "mistral", patch: rows28, factor: 1000},
	{prefix: "ministral", patch: rows28, factor: 1000},
	{prefix: "magistral", patch: rows28, factor: 1000},
	{prefix: "llama-4", base: 1560},
	{prefix: "llama-4-scout", patch: tiles336, factor: 145_000},
	{prefix: "granite", base: 785},
}

// defaultImageRule serves models without a rule: that of gpt-4o.
var defaultImageRule = imageRule{base: 85, tile: 170}

func imageRuleOf(model string) imageRule {
	best := defaultImageRule
	for _, r := range imageRules {
		if len(r.prefix) > len(best.prefix) && strings.HasPrefix(model, r.prefix) {
			best = r
		}
	}
	return best
}

// tokens prices the images of a body for a model (a name as family returns it).
func (s *imageSums) tokens(model string) int64 {
	if s.images == 0 {
		return 0
	}
	r := imageRuleOf(model)
	n := addSat(mulSat(r.base, s.images), mulSat(r.tile, s.tiles))
	var patches int64
	switch r.patch {
	case patches1536:
		patches = s.patch1536
	case patches2500:
		patches = s.patch2500
	case pixels750:
		patches = s.pixel750
	case patches1568:
		patches = s.patch1568
	case patches4784:
		patches = s.patch4784
	case geminiCrops:
		patches = s.crops
	case rows28:
		patches = s.rows28
	case pixels772:
		patches = s.pixels772
	case tiles336:
		patches = s.tiles336
	}
	return addSat(n, ceilDiv(mulSat(patches, r.factor), 1000))
}
